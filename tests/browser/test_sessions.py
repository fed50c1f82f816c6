"""Several chats in one page: golden answers at once, forks, saving, and turns that reuse the cache."""

import json
from pathlib import Path

import pytest

from tests.browser.conftest import TINY

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "smollm2_greedy.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in GOLDEN["prompts"]}
QUESTIONS = ("Count with me.", "And then?", "Why?", "Go on.")


def question_of(case):
    [message] = case["messages"]
    return message["content"]


@pytest.fixture
def page(tiny_page):
    """The tiny model's page with one empty chat."""
    while len(tiny_page.chats()) > 1:
        tiny_page.close_chat()
    tiny_page.configure(max_tokens=24, temperature=0, seed=1)
    tiny_page.reset()
    return tiny_page


def test_two_write_at_once_with_golden_ids_while_one_is_stopped_and_reset(default_page):
    page = default_page
    count, story, capital = (CASES[name] for name in ("count", "story", "capital"))
    first = page.session
    page.configure(max_tokens=16)
    page.start(question_of(count))
    page.wait_tokens(1, session=first)

    second = page.new_chat()
    page.start(question_of(story))
    page.wait_tokens(2, session=second)
    stopped_at = page.endings_of(second)
    page.stop()
    stopped = page.wait_answer(stopped_at, session=second)
    assert stopped.finish_reason == "abort"
    n_stopped = len(stopped.output_ids)
    assert 2 <= n_stopped < 16
    assert stopped.output_ids == story["output_ids"][:n_stopped]
    page.reset()
    assert page.shown() == []
    page.configure(max_tokens=8)
    before = page.endings_of(second)
    page.start(question_of(capital))
    answer = page.wait_answer(before, session=second)
    assert answer.output_ids == capital["output_ids"][:8]
    assert answer.num_cached_tokens < len(capital["prompt_ids"])

    page.switch(first)
    counted = page.wait_answer(0, session=first) if page.endings_of(first) == 0 else page.answer(first)
    assert counted.output_ids == count["output_ids"][:16]
    # They did write at once: the first had not ended when the second began to.
    order = [(event["kind"], event["session"]) for _, event in page.events() if event["kind"] in ("delta", "finished")]
    assert order.index(("delta", second)) < order.index(("finished", first))
    assert page.shown() == [counted.text]


def test_a_fork_shares_what_is_computed_and_goes_its_own_way(page):
    whole = page.generate(QUESTIONS[0])
    page.reset()
    page.generate(QUESTIONS[0], stop_after=9)
    pages = page.pool()["used"]
    source, forked = page.session, page.fork()
    assert page.pool()["used"] == pages
    assert page.pool()["shared"] == pages
    assert len(page.shown()) == 1
    for session in (forked, source):
        page.switch(session)
        assert page.continue_().output_ids == whole.output_ids


def test_a_saved_chat_goes_on_after_the_page_was_loaded_again(page, open_page):
    whole = page.generate(QUESTIONS[0])
    for with_kv in (False, True):
        page.reset()
        stopped = page.generate(QUESTIONS[0], stop_after=9)
        name = page.save(with_kv=with_kv)
        assert name == page.saved()[-1]
        assert page.open(TINY, temperature=0, max_tokens=24, seed=1) == "ready"
        assert page.shown() == []
        session = page.restore(page.wait_saved(name))
        assert page.shown("user") == [QUESTIONS[0]]
        assert page.shown() == [stopped.text]
        [(_, restored)] = [e for e in page.events("restored") if e[1]["session"] == session]
        assert (restored["kv_length"] > 0) == with_kv
        assert page.continue_().output_ids == whole.output_ids
        page.delete(len(page.saved()) - 1)
    assert page.saved() == []


def test_a_damaged_save_is_refused_and_nothing_is_lost(page):
    answer = page.generate(QUESTIONS[0])
    page.save()
    page.page.evaluate(
        """async () => {
            const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("sessions");
            for await (const handle of folder.values()) {
                const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
                bytes[200] ^= 1;
                const file = await handle.createWritable();
                await file.write(bytes);
                await file.close();
            }
        }"""
    )
    page.restore(0)
    assert page.error()["code"] == "E608"
    page.delete(0)
    while len(page.chats()) > 1:
        page.close_chat()
    assert page.shown() == [answer.text]


def test_four_turns_are_the_same_with_and_without_reuse(page, open_page):
    def turns(of):
        return [of.generate(question) for question in QUESTIONS]

    reused = turns(page)
    anew = turns(open_page(TINY, temperature=0, max_tokens=24, seed=1, reuse="off"))
    assert [answer.output_ids for answer in reused] == [answer.output_ids for answer in anew]
    assert [answer.prompt_ids for answer in reused] == [answer.prompt_ids for answer in anew]
    assert [answer.num_cached_tokens for answer in anew] == [0] * 4
    # By hand: the last prompt and its answer but for the last token are in the cache, as far as the next begins so.
    kept = []
    for answer in reused:
        pairs = enumerate(zip(kept, answer.prompt_ids, strict=False))
        n_common = next((i for i, (a, b) in pairs if a != b), min(len(kept), len(answer.prompt_ids)))
        assert answer.num_cached_tokens == n_common
        kept = [*answer.prompt_ids, *answer.output_ids[:-1]]
    assert min(answer.num_cached_tokens for answer in reused[1:]) > 0


def test_sixteen_chats_and_the_seventeenth(page):
    for _ in range(15):
        page.new_chat()
    page.page.evaluate("document.getElementById('new-chat').click()")
    assert page.error()["code"] == "E607"
    assert len(page.chats()) == 16
    assert len(page.generate(QUESTIONS[0]).output_ids) == 24
    while len(page.chats()) > 1:
        page.close_chat()
    assert len(page.generate(QUESTIONS[0]).output_ids) == 24
