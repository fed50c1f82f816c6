"""Stop and Continue give the answer that nobody interrupted, token by token; a prompt being read can be stopped too."""

import pytest

from tests.support.leaks import submits, watch_leaks
from tests.support.site import serve
from tests.support.tiny_model import write_tiny_model

PROMPT = "Count with me."
MAX_TOKENS = 64
N_LONG = 1500
LONG_PROMPT = "".join(str(i * i % 7) for i in range(N_LONG))
GREEDY = {"temperature": 0, "seed": 1}
SEEDED = {"temperature": 0.8, "seed": 7}

# Click Stop at the k-th message about the prompt, as soon as it comes, and note when.
_STOP_IN_PREFILL = """k => {
    let n = 0;
    document.addEventListener("clutch", function listen(event) {
        if (JSON.parse(event.detail).phase !== "prefill" || ++n < k) return;
        document.removeEventListener("clutch", listen);
        window.stoppedAt = performance.timeOrigin + performance.now();
        document.getElementById("stop").click();
    });
}"""


@pytest.fixture(scope="module", params=[GREEDY, SEEDED], ids=["greedy", "seeded"])
def whole(request, tiny_page):
    """The settings, and the answer of a conversation that nobody interrupted."""
    tiny_page.reset()
    tiny_page.configure(max_tokens=MAX_TOKENS, **request.param)
    answer = tiny_page.generate(PROMPT)
    assert answer.finish_reason == "length"
    return request.param, answer


@pytest.fixture
def page(tiny_page, whole):
    tiny_page.reset()
    tiny_page.configure(max_tokens=MAX_TOKENS, **whole[0])
    return tiny_page


def check_whole(answer, expected):
    assert (answer.output_ids, answer.text, answer.finish_reason) == (expected.output_ids, expected.text, "length")
    assert answer.streamed_text == answer.text
    assert answer.errors == []
    assert answer.kv_length == answer.committed_tokens


@pytest.mark.parametrize("stop_after", [1, 2, 7, 31])
def test_a_stopped_answer_goes_on_as_if_nothing_had_been(page, whole, stop_after):
    stopped = page.generate(PROMPT, stop_after=stop_after)
    n_stopped = len(stopped.output_ids)
    assert stopped.finish_reason == "abort"
    assert stop_after <= n_stopped < MAX_TOKENS
    assert stopped.output_ids == whole[1].output_ids[:n_stopped]
    assert page.can_continue
    continued = page.continue_()
    check_whole(continued, whole[1])
    # One article, not two.
    assert len(page.shown()) == 1
    # From the kept keys and values: at most the last token is computed again.
    assert continued.num_cached_tokens >= len(stopped.prompt_ids) + n_stopped - 2


def test_stopped_again_and_again(page, whole):
    page.generate(PROMPT, stop_after=1)
    n_known = 0
    while True:
        answer = page.continue_(stop_after=5)
        assert len(answer.output_ids) > n_known
        n_known = len(answer.output_ids)
        assert answer.output_ids == whole[1].output_ids[:n_known]
        if answer.finish_reason != "abort":
            break
    check_whole(answer, whole[1])


@pytest.fixture(scope="module")
def long_page(new_page, tmp_path_factory):
    """The tiny model with a context that a long prompt fits in."""
    model = write_tiny_model(tmp_path_factory.mktemp("models") / "long.gguf", context_length=2048)
    with serve([model]) as url:
        page = new_page(url=url)
        watch_leaks(page.context)
        assert page.open("models/long.gguf", raw=1, max_tokens=8, **GREEDY) == "ready", page.error()
        yield page


@pytest.fixture(scope="module")
def long_whole(long_page):
    answer = long_page.generate(LONG_PROMPT)
    assert (len(answer.prompt_ids), answer.finish_reason) == (N_LONG, "length")
    return answer


@pytest.mark.parametrize("at_chunk", [1, 3, 10, 30])
def test_a_prompt_being_read_is_stopped_within_one_chunk(long_page, long_whole, at_chunk):
    long_page.reset()
    long_page.page.evaluate(_STOP_IN_PREFILL, at_chunk)
    stopped = long_page.generate(LONG_PROMPT)
    assert (stopped.finish_reason, stopped.output_ids, stopped.text) == ("abort", [], "")
    assert 0 < stopped.kv_length == stopped.committed_tokens < N_LONG
    # The mark may rise between the engine's look at it and the submit behind that look, never earlier.
    clicked_at = long_page.page.evaluate("window.stoppedAt")
    assert len([at for at in submits(long_page.page) if at > clicked_at]) <= 1
    continued = long_page.continue_()
    assert continued.num_cached_tokens == stopped.committed_tokens
    check_whole(continued, long_whole)
