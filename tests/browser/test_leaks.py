"""Stories that end where they began leave nothing behind: no buffer, no proxy, no reference, no wasm heap."""

import dataclasses

import pytest

from tests.support.leaks import alive, watch_leaks

PROMPT = "Count with me."
N_CYCLES = 200
N_WARM_UP = 100


@pytest.fixture(scope="module")
def counted_page(new_page):
    page = new_page()
    watch_leaks(page.context)
    assert page.open("models/tiny.gguf", temperature=0, max_tokens=12, seed=1) == "ready", page.error()
    return page


@pytest.fixture
def leaves_nothing(counted_page):
    """Run a story three times and compare what is alive after the first and the last: the first may fill caches."""
    page = counted_page

    def check(story):
        found = []
        for _ in range(3):
            page.reset()
            page.configure(max_tokens=12)
            story()
            page.reset()
            found.append(alive(page.page))
        after_first, *_, last = found
        # Python's own caches move its objects by a few; a kept answer would be more.
        assert abs(last.objects - after_first.objects) < 20
        assert dataclasses.replace(last, objects=0) == dataclasses.replace(after_first, objects=0)

    return check


def test_the_counters_count(counted_page):
    found = alive(counted_page.page)
    assert found.devices == 1
    assert found.buffers > 30 and found.bytes > 1 << 19
    assert found.proxies > 0 and found.references > 100
    assert found.objects > 10_000 and found.heap > 1 << 23


def test_an_answer(counted_page, leaves_nothing):
    leaves_nothing(lambda: counted_page.generate(PROMPT))


def test_a_stopped_answer_that_is_continued(counted_page, leaves_nothing):
    def story():
        counted_page.configure(max_tokens=400)
        counted_page.generate(PROMPT, stop_after=4)
        counted_page.continue_(stop_after=4)

    leaves_nothing(story)


def test_a_reset_while_generating(counted_page, leaves_nothing):
    def story():
        counted_page.configure(max_tokens=400)
        counted_page.start(PROMPT)
        counted_page.wait_tokens(4)

    leaves_nothing(story)


def test_a_refused_question(counted_page, leaves_nothing):
    leaves_nothing(lambda: counted_page.generate("word " * 2000))


_CYCLES = """async ([nCycles, nWarmUp]) => {
    const button = id => document.getElementById(id);
    const ended = test => new Promise(resolve => {
        const listen = event => {
            const message = JSON.parse(event.detail);
            if (!test(message)) return;
            document.removeEventListener("clutch", listen);
            resolve(message);
        };
        document.addEventListener("clutch", listen);
    });
    const prompt = button("prompt");
    for (let n = 0; n < nCycles; n++) {
        prompt.value = "Count with me.";
        prompt.dispatchEvent(new Event("input", { bubbles: true }));
        // Now in prefill, now after some tokens.
        const stopAt = n % 4;
        const at = stopAt ? { kind: "delta", seq_no: stopAt } : { kind: "started" };
        const stopped = ended(message => Object.entries(at).every(([name, value]) => message[name] === value));
        const finished = ended(({ kind }) => kind === "finished");
        const idle = ended(({ kind, state }) => kind === "state" && state === "ready");
        button("generate").click();
        await stopped;
        button("stop").click();
        await finished;
        await idle;
        const reset = ended(({ kind, state, kv_length }) => kind === "state" && state === "ready" && kv_length === 0);
        button("reset").click();
        await reset;
    }
}"""


def test_two_hundred_stops_and_resets(counted_page):
    page = counted_page
    page.reset()
    page.configure(max_tokens=12)
    golden = page.generate(PROMPT).output_ids
    page.reset()
    page.configure(max_tokens=400)
    n_endings = page.n_endings
    page.page.evaluate(_CYCLES, [N_WARM_UP, 0])
    warm = alive(page.page)
    page.page.evaluate(_CYCLES, [N_CYCLES - N_WARM_UP, 0])
    last = alive(page.page)
    assert page.n_endings == n_endings + N_CYCLES
    # One object a cycle would be a hundred.
    assert abs(last.objects - warm.objects) < 50
    assert dataclasses.replace(last, objects=0) == dataclasses.replace(warm, objects=0)
    page.configure(max_tokens=12)
    answer = page.generate(PROMPT)
    assert (answer.output_ids, answer.errors) == (golden, [])
