"""Conversations of several turns: what is already in the pool is not computed again, and the answers are the same."""

import asyncio

import pytest

from clutch.kv.pool import PAGE_POSITIONS
from tests.support.fake_platform import Driver, FakePlatform, only
from tests.support.tiny_model import encode_tiny_model

CONTEXT = 512
QUESTIONS = ("Hello", "the cat", "and then?", "why")
MAX_TOKENS = 12


@pytest.fixture(scope="module")
def roomy():
    return encode_tiny_model(n_layers=1, context_length=CONTEXT).data


async def driver_of(model, **config):
    platform = FakePlatform({"tiny.gguf": model})
    driver = Driver(platform, context_length=CONTEXT, prefill_tokens=32, attention_splits=4, **config)
    await driver.load()
    return driver


async def converse(driver, *, reuse=True, session_messages=None, **params):
    """Ask all questions in one conversation; return (started, finished) of each."""
    messages, turns = list(session_messages or []), []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        events = await driver.generate(messages, reuse=reuse, max_tokens=MAX_TOKENS, **params)
        turns.append((only(events, "started"), only(events, "finished")))
        messages.append({"role": "assistant", "content": turns[-1][1]["text"]})
    return turns


def n_common(first, second):
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


@pytest.mark.parametrize("params", [{}, {"temperature": 1.0, "seed": 3}])
def test_four_turns_are_the_same_with_and_without_reuse(roomy, params):
    async def story(reuse):
        return await converse(await driver_of(roomy), reuse=reuse, **params)

    reused, anew = asyncio.run(story(True)), asyncio.run(story(False))
    assert [end["output_ids"] for _, end in reused] == [end["output_ids"] for _, end in anew]
    assert [start["prompt_ids"] for start, _ in reused] == [start["prompt_ids"] for start, _ in anew]
    assert [start["num_cached_tokens"] for start, _ in anew] == [0] * 4
    # By hand: what a turn leaves in the cache is its prompt and its answer but for the last token, whose keys and
    # values were never needed. The next prompt may find as much of it as is equal.
    kept = []
    for start, end in reused:
        assert start["num_cached_tokens"] == n_common(kept, start["prompt_ids"])
        kept = [*start["prompt_ids"], *end["output_ids"][:-1]]
    assert [start["num_cached_tokens"] > 0 for start, _ in reused] == [False, True, True, True]


def test_an_edited_question_goes_back_to_where_it_differs(roomy):
    async def story():
        driver = await driver_of(roomy)
        turns = await converse(driver)
        third, _ = turns[2]
        messages = [{"role": "user", "content": "Hello"}]
        again = await driver.generate(messages, max_tokens=MAX_TOKENS)
        assert only(again, "finished")["output_ids"] == turns[0][1]["output_ids"]
        # What came behind is not lost with it: full pages of the old branch are still known.
        text = [turns[0][1]["text"], turns[1][1]["text"]]
        messages += [
            {"role": "assistant", "content": text[0]},
            {"role": "user", "content": QUESTIONS[1]},
            {"role": "assistant", "content": text[1]},
            {"role": "user", "content": QUESTIONS[2]},
        ]
        back = await driver.generate(messages, max_tokens=MAX_TOKENS)
        assert only(back, "started")["prompt_ids"] == third["prompt_ids"]
        n_cached = only(back, "started")["num_cached_tokens"]
        assert n_cached >= (len(third["prompt_ids"]) - 1) // PAGE_POSITIONS * PAGE_POSITIONS - PAGE_POSITIONS
        assert only(back, "finished")["output_ids"] == turns[2][1]["output_ids"]

    asyncio.run(story())


def test_a_system_prompt_is_computed_once_for_all_sessions(roomy):
    system = {"role": "system", "content": "You are a very careful assistant who answers in rhymes."}

    async def story():
        driver = await driver_of(roomy)
        for session in range(4):
            if session:
                await driver.open(session)
            question = {"role": "user", "content": f"{session} is my number"}
            await driver.ask([system, question], session=session, max_tokens=2)
            await driver.engine.idle()
        starts = [driver.of("started", session)[0] for session in range(4)]
        n_system = n_common(starts[0]["prompt_ids"], starts[1]["prompt_ids"])
        n_full = n_system // PAGE_POSITIONS * PAGE_POSITIONS
        assert n_full > 0
        assert [start["num_cached_tokens"] for start in starts] == [0, n_full, n_full, n_full]
        pool = [event for event in driver.platform.events if event["kind"] == "pool"][-1]
        assert pool["shared"] == n_full // PAGE_POSITIONS
        assert pool["cells"].count("A") == pool["shared"]

    asyncio.run(story())
