"""A context that is full: the answer ends, or the oldest turns are left out and it goes on."""

import asyncio

import pytest

from tests.support.fake_platform import Driver, FakePlatform, only
from tests.support.tiny_model import encode_tiny_model

CONTEXT = 160


@pytest.fixture(scope="module")
def model():
    return encode_tiny_model(n_layers=1, context_length=CONTEXT).data


async def driver_of(model):
    driver = Driver(FakePlatform({"tiny.gguf": model}), context_length=CONTEXT, prefill_tokens=32, attention_splits=4)
    await driver.load()
    return driver


def chat(n_turns):
    messages = [{"role": "system", "content": "Rhyme."}]
    for number in range(n_turns):
        messages += [
            {"role": "user", "content": f"number {number}"},
            {"role": "assistant", "content": f"answer {number}"},
        ]
    return [*messages, {"role": "user", "content": "and now?"}]


def test_it_ends_where_the_context_is_full(model):
    async def story():
        driver = await driver_of(model)
        finished = only(await driver.generate(chat(1), max_tokens=1000), "finished")
        assert finished["reason"] == "context_full"
        usage = finished["usage"]
        assert usage["prompt_tokens"] + usage["completion_tokens"] == CONTEXT
        # Nothing can be continued, and it says so.
        assert only(await driver.continue_(), "error")["code"] == "E603"

    asyncio.run(story())


def test_it_goes_on_without_the_oldest_turns(model):
    async def story():
        driver = await driver_of(model)
        events = await driver.generate(chat(2), max_tokens=100, overflow="drop_oldest")
        finished = only(events, "finished")
        assert (finished["reason"], len(finished["output_ids"])) == ("length", 100)
        trims = [event for event in events if event["kind"] == "trimmed"]
        assert [trim["dropped_messages"] for trim in trims] in ([2, 4], [4])
        # The prompt that is left is the one without those turns, system prompt included.
        kept = [*chat(2)[:1], *chat(2)[1 + trims[-1]["dropped_messages"] :]]
        left = only(await driver.generate(kept, max_tokens=1), "started")
        assert trims[-1]["prompt_tokens"] == len(left["prompt_ids"]) == finished["usage"]["prompt_tokens"]
        # The end of the answer is what a fresh engine writes behind the shortened prompt and the beginning.
        at = next(i for i, event in enumerate(events) if event["kind"] == "trimmed")
        n_before = sum(len(event["token_ids"]) for event in events[:at] if event["kind"] == "delta")
        return n_before, finished["output_ids"], left["prompt_ids"], len(trims)

    async def fresh(n_before, output_ids, prompt_ids):
        driver = await driver_of(model)
        session = driver.engine.sessions[0]
        await driver.generate(max_tokens=1)
        turn = session.conversation.turn
        turn.prompt_ids, turn.output_ids, turn.reason = list(prompt_ids), output_ids[:n_before], "abort"
        turn.max_tokens = len(output_ids)
        return only(await driver.continue_(max_tokens=len(output_ids)), "finished")["output_ids"]

    n_before, output_ids, prompt_ids, n_trims = asyncio.run(story())
    assert 0 < n_before < 100
    if n_trims == 1:
        assert asyncio.run(fresh(n_before, output_ids, prompt_ids)) == output_ids


def test_a_prompt_that_is_too_long_begins_later(model):
    async def story():
        driver = await driver_of(model)
        assert only(await driver.generate(chat(6), max_tokens=8), "error")["code"] == "E603"
        events = await driver.generate(chat(6), max_tokens=8, overflow="drop_oldest")
        trimmed = only(events, "trimmed")
        assert trimmed["dropped_messages"] % 2 == 0
        assert trimmed["prompt_tokens"] == len(only(events, "started")["prompt_ids"]) <= CONTEXT - 8
        assert len(only(events, "finished")["output_ids"]) == 8
        # The next turn of the same chat finds what is left in the cache.
        longer = [*chat(6), {"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
        again = await driver.generate(longer, max_tokens=8, overflow="drop_oldest")
        assert only(again, "finished")["reason"] == "length"

    asyncio.run(story())


@pytest.mark.parametrize(
    "fields", [{"overflow": "forget everything"}, {"overflow": ""}, {"max_tokens": 0}, {"max_tokens": -1}]
)
def test_nonsense_is_refused(model, fields):
    async def story():
        driver = await driver_of(model)
        assert only(await driver.generate(chat(1), **fields), "error")["code"] == "E600"

    asyncio.run(story())


def test_a_question_that_is_too_long_alone_is_refused_and_nothing_is_lost(model):
    async def story():
        driver = await driver_of(model)
        whole = only(await driver.generate(max_tokens=6), "finished")["output_ids"]
        error = only(await driver.generate("q" * 300, overflow="drop_oldest"), "error")
        assert (error["code"], error["data"]["context_length"]) == ("E603", CONTEXT)
        assert only(await driver.generate(max_tokens=6), "finished")["output_ids"] == whole

    asyncio.run(story())


def test_when_only_the_question_is_left_it_ends(model):
    async def story():
        driver = await driver_of(model)
        events = await driver.generate(max_tokens=1000, overflow="drop_oldest")
        assert only(events, "finished")["reason"] == "context_full"
        assert [event for event in events if event["kind"] == "trimmed"] == []

    asyncio.run(story())
