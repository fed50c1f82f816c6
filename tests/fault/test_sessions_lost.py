"""Several sessions and a GPU that goes away: fetched back once for all, or given up by all."""

import asyncio

import pytest

from tests.support.fake_device import Script
from tests.support.fake_platform import only
from tests.support.session_events import OTHER, QUESTION, ids, of_session


@pytest.mark.parametrize("call", ["submit", "result"])
@pytest.mark.parametrize("fail_at", [1, 4, 9, 14])
def test_all_go_on_after_the_gpu_was_lost(new_driver, asked, call, fail_at):
    async def story():
        script = Script(only=call)
        driver = new_driver(script)
        await driver.load()
        await driver.open(1)
        await driver.open(2)
        await driver.ask(QUESTION, session=0, max_tokens=12)
        await driver.ask(OTHER, session=1, max_tokens=12)
        while not driver.of("started", 1):
            await asyncio.sleep(0)
        script.fail_at = script.n_counted + fail_at
        await driver.engine.idle()
        return driver

    expected = asked(QUESTION, OTHER, max_tokens=12)
    driver = asyncio.run(story())
    events = driver.platform.events
    assert [ids(events, 0), ids(events, 1)] == expected
    assert [event["code"] for event in events if event["kind"] == "notice"] == ["E500"]
    assert [event for event in events if event["kind"] == "error"] == []
    for session in range(3):
        states = [event["state"] for event in of_session(events, session, "state")]
        assert "lost" in states
        assert states[-1] == "ready"
    assert len(driver.platform.devices) == 2


def test_a_stop_in_one_while_the_gpu_comes_back_leaves_the_other_waiting(new_driver, asked):
    async def story():
        script = Script(only="result")
        driver = new_driver(script)
        await driver.load()
        await driver.open(1)
        script.fail_at = script.n_counted + 8
        await driver.ask(QUESTION, session=0, max_tokens=12)
        victim = await driver.ask(OTHER, session=1, max_tokens=12)
        while driver.engine.state != "lost":
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await driver.send("stop", request_id=victim, session=1)
        await driver.engine.idle()
        return driver.platform.events

    [expected] = asked(QUESTION, max_tokens=12)
    events = asyncio.run(story())
    assert ids(events, 0) == expected
    assert of_session(events, 1, "finished")[0]["reason"] == "abort"
    assert of_session(events, 1, "state")[-1]["state"] == "ready"


def test_a_gpu_that_is_lost_too_often_fails_each_of_them_once(new_driver):
    async def story():
        driver = new_driver(Script(only="result"))
        await driver.load()
        await driver.open(1)
        requests = [await driver.ask(QUESTION, session=session, max_tokens=12) for session in (0, 1)]
        while not driver.of("started", 1):
            await asyncio.sleep(0)
        driver.platform.script.fail_at = driver.platform.script.n_counted + 3
        driver.platform.script.for_ever = True
        await driver.engine.idle()
        return driver, requests

    driver, requests = asyncio.run(story())
    errors = [event for event in driver.platform.events if event["kind"] == "error"]
    assert sorted(error["request_id"] for error in errors) == requests
    assert {error["code"] for error in errors} == {"E500"}
    assert [session.state for session in driver.engine.sessions] == ["empty", "empty"]
    assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}


def test_a_gpu_that_may_not_be_lost_again_fails_each_of_them_at_once(new_driver):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.open(1)
        for _ in range(2):
            driver.platform.devices[-1].lose()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await driver.engine.idle()
        assert len(driver.platform.devices) == 3
        requests = [await driver.ask(QUESTION, session=session, max_tokens=12) for session in (0, 1)]
        while not driver.of("delta", 1):
            await asyncio.sleep(0)
        driver.platform.devices[-1].is_lost = True
        await driver.engine.idle()
        return driver, requests

    driver, requests = asyncio.run(story())
    errors = [event for event in driver.platform.events if event["kind"] == "error"]
    assert sorted(error["request_id"] for error in errors) == requests
    assert {error["code"] for error in errors} == {"E500"}
    assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}


@pytest.mark.parametrize("n_results", [1, 4, 8])
def test_a_stopped_request_that_meets_a_lost_gpu_gives_it_up_at_once(new_driver, golden, n_results):
    async def story():
        script = Script(only="result")
        driver = new_driver(script)
        await driver.load()
        # The stop comes while a step is waited for, and that step fails: whoever would fetch the GPU back has left
        # before it is asked for.
        script.act = driver.engine.sessions[0].stop_all
        script.act_at = script.fail_at = script.n_counted + n_results
        events = await driver.generate(max_tokens=12)
        assert only(events, "finished")["reason"] == "abort"
        assert [event["state"] for event in driver.of("state")][-2:] == ["lost", "empty"]
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
        await driver.load()
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())
