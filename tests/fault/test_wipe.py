"""Reset with `wipe` leaves no key, no value and no token on the GPU; without it the next answer is the same."""

import asyncio

import pytest

from clutch.engine.lifecycle import EngineState
from tests.support.fake_platform import only


def kept(driver):
    """Return the buffers that hold something of the conversation."""
    state = driver.engine.host.placement.model.runner._state
    return [buffer for buffer in (*state.kv, state.tokens) if buffer.data.any()]


@pytest.mark.parametrize("wipe", [False, True])
def test_what_a_reset_leaves_on_the_gpu(new_driver, golden, wipe):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.generate(max_tokens=12)
        assert len(kept(driver)) == 2
        await driver.reset(wipe=wipe)
        assert len(kept(driver)) == (0 if wipe else 2)
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


def test_a_wipe_that_fails_is_reported_and_the_engine_is_ready(new_driver, golden):
    async def story():
        driver = new_driver()
        await driver.load()

        def refuse(*_):
            raise ValueError("the browser says no")

        device = driver.platform.devices[0]
        device.clear, clear = refuse, device.clear
        await driver.reset(wipe=True)
        assert only(driver.platform.events, "error")["code"] == "E900"
        assert driver.engine.state is EngineState.READY
        device.clear = clear
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())
