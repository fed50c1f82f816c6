"""A tab that is hidden or frozen, two tabs at once, a tab that goes away."""

import pytest

from tests.support.worker_patch import COUNTING, counts, patch_worker

PROMPT = "Count with me."


@pytest.fixture(scope="module")
def golden(tiny_page):
    tiny_page.reset()
    tiny_page.configure(max_tokens=120)
    return tiny_page.generate(PROMPT).output_ids


def test_a_frozen_tab_goes_on_where_it_was(tiny_page, golden):
    tiny_page.reset()
    n_endings = tiny_page.n_endings
    tiny_page.start(PROMPT)
    tiny_page.wait_tokens(3)
    session = tiny_page.context.new_cdp_session(tiny_page.page)
    session.send("Page.setWebLifecycleState", {"state": "frozen"})
    # Longer than the page waits for a heartbeat of a worker that hangs.
    tiny_page.page.wait_for_timeout(12_000)
    session.send("Page.setWebLifecycleState", {"state": "active"})
    answer = tiny_page.wait_answer(n_endings)
    assert (answer.output_ids, answer.errors) == (golden, [])


def test_two_tabs_answer_at_once(tiny_page, open_page, golden):
    other = open_page("models/tiny.gguf", temperature=0, max_tokens=120)
    tiny_page.reset()
    n_endings = tiny_page.n_endings, other.n_endings
    tiny_page.start(PROMPT)
    other.start(PROMPT)
    assert tiny_page.wait_answer(n_endings[0]).output_ids == golden
    assert other.wait_answer(n_endings[1]).output_ids == golden


def test_a_page_that_goes_away_takes_its_worker_along(new_page):
    page = new_page()
    patch_worker(page.context, COUNTING)
    assert page.open("models/tiny.gguf", temperature=0, max_tokens=400) == "ready"
    page.start(PROMPT)
    page.wait_tokens(3)
    # Another page of the same origin hears nobody answer on the worker's channel.
    listener = page.context.new_page()
    listener.goto(page.page.url.split("#")[0].split("?")[0] + "static/strings/en.json")
    assert counts(listener)["submits"] > 0
    page.page.goto("about:blank")
    # Ending a worker takes the browser a moment (158 ms with 1 GiB on the GPU, measured).
    assert listener.evaluate(
        """async () => {
            const channel = new BroadcastChannel("clutch-test-counts");
            const isAnswered = () => new Promise((resolve) => {
                channel.onmessage = () => resolve(true);
                channel.postMessage("ask");
                setTimeout(() => resolve(false), 500);
            });
            for (let attempt = 0; attempt < 10; attempt++) {
                if (!(await isAnswered())) return true;
                await new Promise((resolve) => setTimeout(resolve, 300));
            }
            return false;
        }"""
    )
