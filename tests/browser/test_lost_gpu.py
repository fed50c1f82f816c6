"""The GPU is lost in the middle of an answer, for real: `device.destroy()` in the worker. The answer goes on."""

import pytest

from tests.support.leaks import alive, watch_leaks

PROMPT = "Count with me."
MAX_TOKENS = 64
_LOSE_AFTER = """n => {
    const channel = new BroadcastChannel("clutch-test-leaks");
    let tokens = 0;
    document.addEventListener("clutch", function listen(event) {
        const message = JSON.parse(event.detail);
        if (message.kind !== "delta" || (tokens += message.token_ids.length) < n) return;
        document.removeEventListener("clutch", listen);
        channel.postMessage("lose");
        channel.close();
    });
}"""


# A page of its own a test: the engine counts how often its GPU was lost.
@pytest.fixture(params=[{"temperature": 0}, {"temperature": 0.8, "seed": 7}], ids=["greedy", "seeded"])
def page(new_page, request):
    page = new_page()
    watch_leaks(page.context)
    assert page.open("models/tiny.gguf", max_tokens=MAX_TOKENS, **request.param) == "ready", page.error()
    return page


def test_an_answer_survives_its_gpu(page):
    golden = page.generate(PROMPT)
    page.reset()
    before = alive(page.page)
    n_endings, n_events = page.n_endings, len(page.events())
    page.page.evaluate(_LOSE_AFTER, 9)
    answer = page.generate(PROMPT)
    assert answer.output_ids == golden.output_ids
    assert answer.text == answer.streamed_text == golden.text
    assert (answer.finish_reason, answer.errors) == ("length", [])
    assert answer.kv_length == answer.committed_tokens
    assert [notice["code"] for notice in answer.notices] == ["E500"]
    assert page.notice()
    assert page.n_endings == n_endings + 1
    events = [event for _, event in page.events()[n_events:]]
    states = [event["state"] for event in events if event["kind"] == "state"]
    assert states == ["generating", "lost", "generating", "ready"]
    assert [event["kind"] for event in events].count("loaded") == 1
    assert page.shown() == [golden.text]
    page.reset()
    after = alive(page.page)
    assert (after.devices, after.buffers, after.bytes) == (before.devices, before.buffers, before.bytes)
    assert page.generate(PROMPT).output_ids == golden.output_ids
