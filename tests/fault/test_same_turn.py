"""Messages that come in one turn of the event loop, before the first of them has begun its work."""

import asyncio

import pytest

from clutch.engine.lifecycle import EngineState
from tests.support.fake_platform import only


async def loaded_driver(new_driver):
    driver = new_driver()
    await driver.load()
    return driver


async def begin(driver, request_id=2):
    """Send a generate that has not run when this returns."""
    message = {"role": "user", "content": "Hello"}
    await driver.send("generate", request_id=request_id, epoch=0, messages=[message], params={"max_tokens": 12})
    assert driver.engine.state is EngineState.READY


def finished_at_once(driver):
    finished = only(driver.platform.events, "finished")
    assert (finished["reason"], finished["output_ids"], finished["usage"]["kv_length"]) == ("abort", [], 0)


def test_generate_and_stop(new_driver, golden):
    async def story():
        driver = await loaded_driver(new_driver)
        await begin(driver)
        await driver.send("stop", request_id=2)
        await driver.engine.idle()
        finished_at_once(driver)
        await begin(driver, 3)
        await driver.engine.idle()
        answers = [event["output_ids"] for event in driver.platform.events if event["kind"] == "finished"]
        assert answers[1] == golden[1]

    asyncio.run(story())


def test_generate_and_reset(new_driver, golden):
    async def story():
        driver = await loaded_driver(new_driver)
        await begin(driver)
        await driver.reset()
        finished_at_once(driver)
        state = driver.platform.events[-1]
        assert (state["kind"], state["state"], state["epoch"], state["kv_length"]) == ("state", "ready", 1, 0)
        await begin(driver, 3)
        await driver.engine.idle()
        assert driver.of("finished")[-1]["output_ids"] == golden[1]

    asyncio.run(story())


def test_generate_and_unload(new_driver):
    async def story():
        driver = await loaded_driver(new_driver)
        await begin(driver)
        await driver.send("unload")
        finished_at_once(driver)
        assert driver.engine.state is EngineState.EMPTY
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}

    asyncio.run(story())


def test_continue_and_stop(new_driver, golden):
    async def story():
        driver = await loaded_driver(new_driver)
        await driver.generate(max_tokens=3)
        n_submits = driver.platform.script.calls["submit"]
        n_events = len(driver.platform.events)
        await driver.send("continue", request_id=3, epoch=0)
        await driver.send("stop", request_id=3)
        await driver.engine.idle()
        finished = only(driver.platform.events[n_events:], "finished")
        assert (finished["reason"], finished["output_ids"]) == ("abort", golden[1][:3])
        assert driver.platform.script.calls["submit"] == n_submits

    asyncio.run(story())


@pytest.mark.parametrize("n_turns", range(3, 15))
def test_what_follows_a_refused_request_is_reset_too(new_driver, n_turns):
    async def story():
        driver = await loaded_driver(new_driver)
        await driver.send("generate", request_id=2, epoch=0, messages=[], params={})
        await begin(driver, 3)
        for _ in range(n_turns):
            await asyncio.sleep(0)
        assert driver.engine.sessions[0].state is EngineState.GENERATING
        await driver.reset()
        state = driver.platform.events[-1]
        assert (state["state"], state["epoch"], state["kv_length"]) == ("ready", 1, 0)
        assert only(driver.platform.events, "finished")["reason"] == "abort"

    asyncio.run(story())


def test_generate_and_a_lost_gpu(new_driver, golden):
    async def story():
        driver = await loaded_driver(new_driver)
        # The browser says so before the request has run.
        driver.platform.devices[0].lose()
        await begin(driver)
        await asyncio.sleep(0)
        await driver.engine.idle()
        assert only(driver.platform.events, "finished")["output_ids"] == golden[1]
        assert [device.is_destroyed for device in driver.platform.devices] == [True, False]
        assert only(driver.platform.events, "notice")["code"] == "E500"

    asyncio.run(story())


def test_unload_and_a_lost_gpu(new_driver):
    async def story(n_turns):
        driver = await loaded_driver(new_driver)
        await begin(driver)
        unload = asyncio.ensure_future(driver.send("unload"))
        for _ in range(n_turns):
            await asyncio.sleep(0)
        if not driver.platform.devices[0].is_destroyed:
            driver.platform.devices[0].lose()
        await unload
        await driver.engine.idle()
        assert driver.engine.state is EngineState.EMPTY
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        assert all(device.is_destroyed for device in driver.platform.devices)
        assert "error" not in [event["kind"] for event in driver.platform.events]

    for n_turns in range(8):
        asyncio.run(story(n_turns))


def test_load_and_generate(new_driver):
    async def story():
        driver = new_driver()
        await driver.send("load", request_id=1, url="tiny.gguf")
        events = await driver.generate()
        assert only(events, "error")["code"] == "E601"
        assert driver.engine.state is EngineState.READY

    asyncio.run(story())


def test_load_of_nothing(new_driver):
    async def story():
        driver = new_driver()
        await driver.send("load", request_id=1)
        await driver.engine.idle()
        assert only(driver.platform.events, "error")["code"] == "E600"
        assert driver.engine.state is EngineState.EMPTY
        assert only(await driver.load(), "loaded")

    asyncio.run(story())
