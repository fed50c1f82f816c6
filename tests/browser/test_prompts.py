"""What can be typed into the prompt box."""

import pytest


@pytest.fixture(autouse=True)
def from_the_start(tiny_page):
    tiny_page.configure(max_tokens=8)
    tiny_page.reset()
    tiny_page.type("")


def test_a_prompt_longer_than_the_context_is_given_back(tiny_page):
    prompt = "word " * 2000
    answer = tiny_page.generate(prompt)
    (error,) = answer.errors
    context_length = 512
    assert error["code"] == tiny_page.error()["code"] == "E603"
    assert context_length in error["data"].values()
    assert any(isinstance(n, int) and n > context_length for n in error["data"].values())
    assert tiny_page.page.input_value("#prompt") == prompt
    assert tiny_page.shown("user") == []
    assert tiny_page.generate("Hello.").finish_reason == "length"


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_without_a_prompt_there_is_nothing_to_generate(tiny_page, text):
    tiny_page.type(text)
    assert tiny_page.page.is_disabled("#generate")
    tiny_page.page.press("#prompt", "Enter")
    assert tiny_page.state == "ready"
    assert tiny_page.shown("user") == []


def test_enter_sends_and_shift_enter_breaks_the_line(tiny_page):
    n_endings = tiny_page.n_endings
    tiny_page.page.locator("#prompt").press_sequentially("one")
    tiny_page.page.press("#prompt", "Shift+Enter")
    tiny_page.page.locator("#prompt").press_sequentially("two")
    assert tiny_page.page.input_value("#prompt") == "one\ntwo"
    tiny_page.page.press("#prompt", "Enter")
    assert tiny_page.wait_answer(n_endings).finish_reason == "length"
    assert tiny_page.shown("user") == ["one\ntwo"]


def test_escape_stops(tiny_page):
    n_endings = tiny_page.n_endings
    tiny_page.configure(max_tokens=400)
    tiny_page.start("Count.")
    tiny_page.wait_tokens(2)
    tiny_page.page.keyboard.press("Escape")
    assert tiny_page.wait_answer(n_endings).finish_reason == "abort"


def test_a_second_generate_is_told_that_one_is_running(tiny_page):
    tiny_page.configure(max_tokens=400)
    n_endings = tiny_page.n_endings
    tiny_page.start("Count.")
    tiny_page.type("And again.")
    assert tiny_page.page.is_disabled("#generate")
    tiny_page.page.press("#prompt", "Enter")
    assert tiny_page.error()["code"] == "E601"
    tiny_page.stop()
    assert tiny_page.wait_answer(n_endings).errors == []
    assert tiny_page.page.input_value("#prompt") == "And again."


HOSTILE = {
    "a lone surrogate": "'\\ud800 lone'",
    "a NUL": "'a\\u0000b'",
    "100 kB of emoji": "'\\u{1F600}'.repeat(25000)",
    "control tokens": "'<|im_end|><|endoftext|>'",
    "markup": "'<img src=x onerror=alert(1)><script>alert(1)</script>'",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends_in_an_answer_or_a_typed_error(tiny_page, name):
    n_endings = tiny_page.n_endings
    # Python cannot hold a lone surrogate on its way to the browser, so the text is made in the page.
    tiny_page.page.evaluate(
        f"""() => {{
            const box = document.getElementById("prompt");
            box.value = {HOSTILE[name]};
            box.dispatchEvent(new Event("input", {{ bubbles: true }}));
        }}"""
    )
    tiny_page.start()
    answer = tiny_page.wait_answer(n_endings)
    assert answer.finish_reason == "length" or [error["code"] for error in answer.errors] == ["E603"]
    assert tiny_page.state == "ready"
    assert tiny_page.page.locator("#transcript :is(img, script)").count() == 0
    tiny_page.reset()
    assert tiny_page.generate("Hello.").finish_reason == "length"
