"""Messages that come in one turn of the event loop, before the first of them has begun its work."""

import asyncio

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
        await driver.send("reset", epoch=1)
        finished_at_once(driver)
        state = driver.platform.events[-1]
        assert (state["kind"], state["state"], state["epoch"], state["kv_length"]) == ("state", "ready", 1, 0)
        await begin(driver, 3)
        await driver.engine.idle()
        assert driver.platform.events[-2]["output_ids"] == golden[1]

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
