"""Stop loses nothing, Reset leaves nothing, in any order."""

import pytest

PROMPT = "Count with me."
LONG = 400


@pytest.fixture(autouse=True)
def from_the_start(tiny_page):
    tiny_page.configure(max_tokens=24, temperature=0, seed=1)
    tiny_page.reset()


@pytest.fixture
def long_answers(tiny_page, from_the_start):
    tiny_page.configure(max_tokens=LONG)


def check_idle(answer):
    assert answer.errors == []
    assert answer.kv_length == answer.committed_tokens


def test_stop_keeps_what_is_there_and_reset_forgets_it(tiny_page, long_answers):
    rounds = []
    for _ in range(3):
        answer = tiny_page.generate(PROMPT, stop_after=8)
        check_idle(answer)
        assert answer.finish_reason == "abort"
        assert 8 <= len(answer.output_ids) < LONG
        assert answer.text == answer.streamed_text
        rounds.append(answer)
        tiny_page.reset()
        assert tiny_page.shown() == []
    n = min(len(answer.output_ids) for answer in rounds)
    assert len({tuple(answer.output_ids[:n]) for answer in rounds}) == 1
    assert rounds[0].ledger == rounds[1].ledger == rounds[2].ledger


def test_an_answer_after_reset_is_that_of_a_fresh_page(tiny_page, open_page):
    tiny_page.generate("Something else altogether.")
    tiny_page.reset()
    again = tiny_page.generate(PROMPT)
    fresh = open_page("models/tiny.gguf", temperature=0, max_tokens=24, seed=1).generate(PROMPT)
    assert (again.output_ids, again.text) == (fresh.output_ids, fresh.text)


def test_after_a_stop_the_conversation_goes_on(tiny_page, long_answers):
    stopped = tiny_page.generate(PROMPT, stop_after=8)
    tiny_page.configure(max_tokens=8)
    answer = tiny_page.generate("Go on.")
    check_idle(answer)
    assert answer.finish_reason == "length"
    assert answer.num_cached_tokens >= len(stopped.prompt_ids) // 16 * 16


def test_stop_right_after_generate(tiny_page, long_answers):
    n_endings = tiny_page.n_endings
    tiny_page.type(PROMPT)
    tiny_page.page.evaluate("['generate', 'stop'].forEach(id => document.getElementById(id).click())")
    answer = tiny_page.wait_answer(n_endings)
    check_idle(answer)
    assert answer.finish_reason == "abort"
    assert len(answer.output_ids) < LONG


def test_stop_twice(tiny_page, long_answers):
    n_endings = tiny_page.n_endings
    tiny_page.start(PROMPT)
    tiny_page.wait_tokens(4)
    tiny_page.stop()
    tiny_page.stop()
    answer = tiny_page.wait_answer(n_endings)
    check_idle(answer)
    assert answer.finish_reason == "abort"
    assert tiny_page.n_endings == n_endings + 1


def test_stop_while_idle_does_not_reach_the_next_answer(tiny_page):
    tiny_page.stop()
    answer = tiny_page.generate(PROMPT)
    check_idle(answer)
    assert (answer.finish_reason, len(answer.output_ids)) == ("length", 24)


def test_reset_while_generating(tiny_page, long_answers):
    tiny_page.start(PROMPT)
    tiny_page.wait_tokens(4)
    tiny_page.reset()
    assert tiny_page.shown() == tiny_page.shown("user") == []
    (_, state) = tiny_page.events("state")[-1]
    assert (state["state"], state["kv_length"]) == ("ready", 0)
    tiny_page.configure(max_tokens=24)
    answer = tiny_page.generate(PROMPT)
    check_idle(answer)
    tiny_page.reset()
    assert tiny_page.generate(PROMPT).output_ids == answer.output_ids


def test_reset_twice(tiny_page):
    first = tiny_page.generate(PROMPT)
    tiny_page.reset()
    tiny_page.reset()
    assert tiny_page.generate(PROMPT).output_ids == first.output_ids


def test_a_seed_decides_what_is_sampled(tiny_page):
    def sampled(seed):
        tiny_page.reset()
        tiny_page.configure(temperature=1.5, top_k=0, top_p=1, seed=seed)
        return tiny_page.generate(PROMPT).output_ids

    assert sampled(7) == sampled(7) != sampled(8)
