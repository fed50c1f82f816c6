"""What a user does, without any fault: load, ask, stop, reset, ask again, unload."""

import asyncio

import pytest

from clutch.engine.lifecycle import EngineState
from tests.support.fake_platform import only


def run(story):
    return asyncio.run(story)


def test_answers_are_those_of_the_reference(new_driver, reference):
    async def story():
        driver = new_driver()
        await driver.load()
        n_compared = 0
        for text in ("Hello", "in the", "What?", "on a t", "12", "..."):
            await driver.reset()
            events = await driver.generate(text, max_tokens=12)
            output_ids = only(events, "finished")["output_ids"]
            expected, margins = reference.greedy(only(events, "started")["prompt_ids"], 12)
            # Keys and values are f16 here and f32 there: equal up to the first step that is nearly a tie.
            sure = next((i for i, margin in enumerate(margins) if margin < 0.05), 12)
            assert output_ids[:sure] == expected[:sure]
            n_compared += sure
        assert n_compared >= 24

    run(story())


def test_load_says_what_it_does_and_what_it_takes(new_driver):
    async def story():
        driver = new_driver()
        events = await driver.load()
        loaded = only(events, "loaded")
        assert [e["state"] for e in events if e["kind"] == "state"] == ["loading", "ready"]
        phases = [e["phase"] for e in events if e["kind"] == "progress"]
        assert list(dict.fromkeys(phases)) == ["reading_header", "compiling", "reading_weights", "warming_up"]
        stages = loaded["timings"]
        assert {"header", "vocabulary", "tokenizer", "template", "device", "compile", "upload"} < stages.keys()
        assert all(start <= end for start, end in stages.values())
        # The text tools beside the GPU.
        assert stages["tokenizer"][0] <= stages["upload"][0]
        assert loaded["ledger"]["bytes"] == pytest.approx(loaded["memory"]["total"], rel=0.02)
        assert all(stream.is_closed for source in driver.platform.sources for stream in source.streams)
        await driver.send("unload")
        assert driver.engine.state is EngineState.EMPTY
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        assert driver.platform.devices[0].is_destroyed

    run(story())


def test_finished_adds_up(new_driver, golden):
    async def story():
        driver = new_driver()
        await driver.load()
        events = await driver.generate(max_tokens=12)
        finished = only(events, "finished")
        deltas = [e for e in events if e["kind"] == "delta"]
        assert finished["output_ids"] == golden[1]
        assert "".join(d["text"] for d in deltas) == finished["text"]
        assert [i for d in deltas for i in d["token_ids"]] == finished["output_ids"]
        assert [d["seq_no"] for d in deltas] == list(range(len(deltas)))
        usage = finished["usage"]
        assert usage["kv_length"] == usage["committed_tokens"] == usage["prompt_tokens"] + 12 - 1
        assert finished["reason"] == "length"

    run(story())


@pytest.mark.parametrize("is_fallback", [False, True])
def test_steps_in_flight_change_nothing(new_driver, golden, is_fallback):
    async def story():
        driver = new_driver(is_fallback=is_fallback)
        await driver.load()
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    run(story())


def test_the_next_turn_reuses_what_is_known(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        messages = [{"role": "user", "content": "Hi"}]
        first = await driver.generate(messages, max_tokens=3)
        committed = only(first, "finished")["usage"]["committed_tokens"]
        text = only(first, "finished")["text"]
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "A"}]
        second = await driver.generate(messages, max_tokens=3)
        cached = only(second, "started")["num_cached_tokens"]
        assert len(only(first, "started")["prompt_ids"]) <= cached <= committed
        await driver.reset()
        again = await driver.generate(messages, max_tokens=3)
        assert only(again, "started")["num_cached_tokens"] == 0
        assert only(again, "finished")["output_ids"] == only(second, "finished")["output_ids"]

    run(story())


def test_a_context_that_fills_up_says_so(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        finished = only(await driver.generate(max_tokens=1000), "finished")
        assert finished["reason"] == "context_full"
        assert finished["usage"]["prompt_tokens"] + len(finished["output_ids"]) == 64
        assert finished["usage"]["kv_length"] == 63

    run(story())


def test_a_seed_is_an_answer(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        answers = []
        for seed in (5, 5, 6):
            await driver.reset()
            events = await driver.generate(max_tokens=12, temperature=1.5, seed=seed)
            answers.append(only(events, "finished")["output_ids"])
        assert answers[0] == answers[1] != answers[2]

    run(story())


def test_top_logits(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        finished = only(await driver.generate(max_tokens=2, top_logits=5), "finished")
        assert len(finished["top_logits"]) == 5
        assert finished["top_logits"][0][0] == finished["output_ids"][0]
        values = [value for _, value in finished["top_logits"]]
        assert values == sorted(values, reverse=True)

    run(story())
