"""Requests that cannot be granted: a typed error, and nothing else changes."""

import asyncio

import pytest

from clutch.engine.lifecycle import EngineState
from tests.support.fake_platform import only
from tests.support.gguf_writer import Typed, ValueType
from tests.support.tiny_model import encode_tiny_model, vocabulary


def error_of(events):
    assert not [event for event in events if event["kind"] == "finished"]
    return only(events, "error")


def kv_length(driver):
    """Return what the last state event said."""
    return [event for event in driver.platform.events if event["kind"] == "state"][-1]["kv_length"]


def test_generate_without_a_model(new_driver):
    error = error_of(asyncio.run(new_driver().generate()))
    assert (error["code"], error["request_id"]) == ("E602", 1)


def test_a_second_generate_is_refused_and_the_first_goes_on(new_driver, golden):
    async def story():
        driver = new_driver()
        await driver.load()
        refused = {}

        def intrude():
            refused["task"] = asyncio.ensure_future(
                driver.send("generate", request_id=99, epoch=0, messages=[{"role": "user", "content": "x"}], params={})
            )

        script = driver.platform.script
        script.act_at, script.act = script.n_counted + 5, intrude
        events = await driver.generate(max_tokens=12)
        await refused["task"]
        assert only(events, "finished")["output_ids"] == golden[1]
        error = only(events, "error")
        assert (error["code"], error["request_id"]) == ("E601", 99)
        assert driver.engine.state is EngineState.READY

    asyncio.run(story())


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("E600", {"params": {"temperature": -1}}),
        ("E600", {"params": {"temperature": float("nan")}}),
        ("E600", {"params": {"warmth": 1}}),
        ("E600", {"params": {"max_tokens": 0}}),
        ("E600", {"params": {}, "top_logits": -1}),
        ("E600", {"params": {}, "messages": []}),
        ("E600", {"params": {}, "messages": [{"role": "user"}]}),
        ("E600", {"params": {}, "messages": ["hello"]}),
        ("E600", {"params": {}, "messages": None, "prompt": ""}),
        ("E600", {"params": {}, "prompt": "both"}),
        ("E603", {"params": {}, "messages": [{"role": "user", "content": "many words " * 50}]}),
        ("E603", {"params": {}, "messages": None, "prompt": "x" * 2_000_000}),
    ],
)
def test_bad_requests_lose_nothing(new_driver, golden, code, fields):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.generate(max_tokens=4)
        before = kv_length(driver)
        message = {"request_id": 50, "epoch": 0, "messages": [{"role": "user", "content": "hi"}], **fields}
        first = len(driver.platform.events)
        await driver.engine.handle({"kind": "generate", **{k: v for k, v in message.items() if v is not None}})
        await driver.engine.idle()
        error = error_of(driver.platform.events[first:])
        assert (error["code"], error["request_id"]) == (code, 50)
        assert driver.engine.state is EngineState.READY
        assert kv_length(driver) == before > 0
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


def test_a_prompt_longer_than_the_context_gives_both_numbers(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        error = error_of(await driver.generate("many words " * 50))
        assert error["data"]["context_length"] == 64
        assert error["data"]["prompt_tokens"] > 64
        assert str(error["data"]["prompt_tokens"]) in error["message"]

    asyncio.run(story())


def test_load_while_loaded_is_refused(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        error = error_of(await driver.load())
        assert error["code"] == "E601"
        assert driver.engine.state is EngineState.READY

    asyncio.run(story())


def test_a_missing_file(new_driver):
    async def story():
        driver = new_driver()
        assert error_of(await driver.load("nowhere.gguf"))["code"] == "E300"
        assert driver.engine.state is EngineState.EMPTY
        assert only(await driver.load(), "loaded")

    asyncio.run(story())


def test_a_truncated_file_opens_no_device(new_driver, tiny):
    async def story():
        driver = new_driver()
        driver.platform.files["cut.gguf"] = tiny[:-1000]
        error = error_of(await driver.load("cut.gguf"))
        assert error["code"] == "E200"
        assert driver.platform.devices == []
        assert only(await driver.load(), "loaded")

    asyncio.run(story())


def test_unload_while_loading_cancels(new_driver):
    async def story():
        driver = new_driver()
        await driver.send("load", request_id=1, url="tiny.gguf")
        for _ in range(20):
            await asyncio.sleep(0)
        assert driver.engine.state is EngineState.LOADING
        await driver.send("unload")
        assert driver.engine.state is EngineState.EMPTY
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        await driver.send("load", request_id=2, url="tiny.gguf")
        await driver.engine.idle()
        assert only(driver.platform.events, "loaded")

    asyncio.run(story())


def test_a_vocabulary_that_does_not_fit_the_embedding(new_driver, tiny):
    async def story():
        driver = new_driver()
        tokens = [*vocabulary(), "one more"]
        types = Typed(ValueType.I32, [1] * len(tokens))
        metadata = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
        driver.platform.files["odd.gguf"] = encode_tiny_model(metadata=metadata).data
        error = error_of(await driver.load("odd.gguf"))
        assert error["code"] == "E200"
        assert (error["data"]["expected"], error["data"]["found"]) == (313, 314)
        assert driver.platform.devices == []

    asyncio.run(story())


def test_a_context_length_can_be_chosen_with_the_model(new_driver, golden):
    async def story():
        driver = new_driver()
        for wrong in (0, 17, -16):
            await driver.send("load", request_id=1, url="tiny.gguf", context_length=wrong)
            await driver.engine.idle()
            assert driver.platform.events[-1]["code"] == "E600"
        await driver.send("load", request_id=2, url="tiny.gguf", context_length=48)
        await driver.engine.idle()
        assert only(driver.platform.events, "loaded")["model"]["context_length"] == 48
        assert only(await driver.generate(max_tokens=5), "finished")["output_ids"] == golden[1][:5]

    asyncio.run(story())


def test_out_of_memory_says_which_context_would_fit_and_that_one_loads(new_driver):
    async def story():
        driver = new_driver()
        driver.platform.files["deep.gguf"] = encode_tiny_model(n_layers=4).data
        await driver.send("load", request_id=1, url="deep.gguf", context_length=512)
        await driver.engine.idle()
        memory = only(driver.platform.events, "loaded")["memory"]
        await driver.send("unload")
        driver.platform.events.clear()
        driver.platform.device_options = {"room_bytes": memory["total"] - memory["kv"] // 2}
        await driver.send("load", request_id=2, url="deep.gguf", context_length=512)
        await driver.engine.idle()
        error = error_of(driver.platform.events)
        assert (error["code"], error["data"]["asked_bytes"]) == ("E400", memory["kv"] // 4)
        fits = error["data"]["context_length_that_fits"]
        assert 0 < fits < 256
        assert str(fits) in error["hint"]
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        await driver.send("load", request_id=3, url="deep.gguf", context_length=fits)
        await driver.engine.idle()
        assert driver.engine.state is EngineState.READY

    asyncio.run(story())
