"""Measuring a step: what is counted, and that nothing of it is left, however it ends."""

import asyncio
from collections import Counter

import pytest

from clutch.engine.lifecycle import EngineState
from clutch.errors import DeviceLost, DeviceTimeout, PoolExhausted
from tests.support.fake_platform import only

US = 500.0
PROMPT = "the a of in and to the a of in"


async def measure(driver, tokens=1, session=0):
    """Measure and return the events of it."""
    driver.n_requests += 1
    request_id, first = driver.n_requests, len(driver.platform.events)
    await driver.send(
        "benchmark", request_id=request_id, epoch=driver.epochs.get(session, 0), session=session, tokens=tokens
    )
    await driver.engine.idle()
    return driver.platform.events[first:]


def step_of(events):
    return only(events, "benchmarked")["step"]


def ready_after(driver):
    assert driver.engine.state is EngineState.READY
    assert [session.state for session in driver.engine.sessions] == [EngineState.READY]


@pytest.fixture
def loaded(new_driver):
    async def make(script=None, **options):
        driver = new_driver(script, **{"us_per_dispatch": US, **options})
        await driver.load()
        return driver

    return make


def test_every_dispatch_is_in_one_row_with_its_bytes_and_its_time(loaded):
    async def story():
        driver = await loaded()
        await driver.generate(max_tokens=4)
        step = step_of(await measure(driver))
        runner = driver.engine.host.placement.model.runner
        memory = driver.engine.host.placement.model.memory
        assert (step["kind"], step["tokens"], step["dispatches"]) == ("decode", 1, len(runner.decode_dispatches))
        assert step["position"] == driver.of("state")[-1]["kv_length"] > 0
        rows = step["rows"]
        assert sum(row["dispatches"] for row in rows) == step["dispatches"]
        assert len({row["name"] for row in rows}) == len(rows)
        assert step["us"] == pytest.approx(US * step["dispatches"])
        for row in rows:
            assert row["us"] == pytest.approx(US * row["dispatches"])
        # Every matrix is read once a token, of the embedding's two uses only the one as output; gains are left out.
        assert 0.9 * memory.weights_bytes < sum(row["weight_bytes"] for row in rows) < memory.weights_bytes
        # One layer, and a key and a value of every position up to the new one.
        assert sum(row["kv_bytes"] for row in rows) == memory.kv.position_bytes * (step["position"] + 1)

    asyncio.run(story())


def test_a_prefill_step_has_as_many_tokens_as_one_takes(loaded):
    async def story():
        driver = await loaded()
        step = step_of(await measure(driver, tokens=500))
        assert (step["kind"], step["position"], step["tokens"]) == ("prefill", 0, 8)
        assert all(row["us"] for row in step["rows"])

    asyncio.run(story())


def test_without_timestamps_the_counts_remain(loaded):
    async def story():
        driver = await loaded(us_per_dispatch=None)
        step = step_of(await measure(driver))
        assert step["us"] is None and {row["us"] for row in step["rows"]} == {None}
        assert sum(row["weight_bytes"] for row in step["rows"]) > 0
        assert driver.platform.script.calls["measure"] == 0

    asyncio.run(story())


def test_a_row_is_repeated_until_it_can_be_measured(loaded):
    async def story():
        # A clock that shows nothing below its steps, as Chromium's does.
        driver = await loaded(us_per_dispatch=1.0, timestamp_us=65.5)
        step = step_of(await measure(driver))
        for row in step["rows"]:
            assert row["us"] == pytest.approx(row["dispatches"], rel=0.05)

    asyncio.run(story())


def test_a_software_adapter_runs_each_row_once(loaded):
    async def story():
        driver = await loaded(is_fallback=True)
        step = step_of(await measure(driver))
        assert driver.platform.script.calls["measure"] == 1 + len(step["rows"])

    asyncio.run(story())


@pytest.mark.parametrize("tokens", [1, 8])
def test_answers_are_as_without_it(loaded, golden, tokens):
    async def story():
        driver = await loaded()
        await driver.generate(PROMPT, max_tokens=5)
        before = driver.of("state")[-1]["kv_length"]
        step_of(await measure(driver, tokens))
        assert driver.of("state")[-1]["kv_length"] == before
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


def test_an_answer_goes_on_behind_it(loaded, golden):
    async def story():
        driver = await loaded()
        await driver.generate(max_tokens=5)
        step_of(await measure(driver))
        events = await driver.continue_(max_tokens=12)
        assert only(events, "finished")["output_ids"] == golden[1][:12]

    asyncio.run(story())


def test_refused_without_a_model(new_driver):
    async def story():
        driver = new_driver()
        assert only(await measure(driver), "error")["code"] == "E602"

    asyncio.run(story())


@pytest.mark.parametrize(("tokens", "code"), [(0, "E600"), (-1, "E600"), (8, "E603")])
def test_refused_when_there_is_no_such_step(loaded, golden, tokens, code):
    async def story():
        driver = await loaded()
        await driver.generate(max_tokens=60)
        assert only(await measure(driver, tokens), "error")["code"] == code
        ready_after(driver)
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


@pytest.mark.parametrize("session", [0, 1])
def test_refused_while_anything_generates(loaded, golden, session):
    async def story():
        driver = await loaded()
        await driver.open(1)
        script, refused = driver.platform.script, []

        def intrude():
            refused.append(
                asyncio.ensure_future(driver.send("benchmark", request_id=99, epoch=0, session=session, tokens=1))
            )

        script.act_at, script.act = script.n_counted + 5, intrude
        events = await driver.generate(max_tokens=12)
        await refused[0]
        error = only(events, "error")
        assert (error["code"], error["request_id"], error["session"]) == ("E601", 99, session)
        assert only(events, "finished")["output_ids"] == golden[1]

    asyncio.run(story())


def test_stopped_in_the_middle(loaded, golden):
    async def story():
        driver = await loaded()
        script = driver.platform.script
        stop = {}

        def press():
            stop["task"] = asyncio.ensure_future(driver.send("stop", request_id=driver.n_requests))

        script.only, script.act_at, script.act = "measure", script.n_counted + 6, press
        events = await measure(driver)
        await stop["task"]
        assert only(events, "finished")["reason"] == "abort"
        assert Counter(event["kind"] for event in events)["benchmarked"] == 0
        assert script.calls["measure"] <= 7
        ready_after(driver)
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


@pytest.mark.parametrize("error", [DeviceLost, DeviceTimeout])
def test_a_gpu_that_is_lost_in_the_middle_comes_back(loaded, golden, error):
    async def story():
        driver = await loaded()
        await driver.generate(max_tokens=5)
        script = driver.platform.script
        script.only, script.error = "measure", error
        script.n_counted, script.fail_at = 0, 4
        events = await measure(driver)
        assert only(events, "error")["code"] == error.code
        assert only(events, "notice")["code"] == "E500"
        ready_after(driver)
        script.fail_at = 0
        # Nothing is kept on the new GPU, so the step is that of the first token.
        assert step_of(await measure(driver))["position"] == 0
        assert only(await driver.continue_(max_tokens=12), "finished")["output_ids"] == golden[1][:12]

    asyncio.run(story())


def test_measuring_makes_no_buffer_and_drops_none(loaded):
    async def story():
        driver = await loaded()
        before = driver.engine.ledger.to_wire()
        step_of(await measure(driver))
        assert driver.engine.ledger.to_wire() == before

    asyncio.run(story())


def test_its_pages_are_its_own_meanwhile_and_given_back(loaded):
    async def story():
        driver = await loaded()
        pool, script = driver.engine.host.pool, driver.platform.script
        n_pages = []

        def want_all():
            n_pages.append(pool.n_free)
            with pytest.raises(PoolExhausted):
                pool.acquire(pool.n_pages)

        script.only, script.act_at, script.act = "measure", script.n_counted + 3, want_all
        step_of(await measure(driver, tokens=8))
        assert n_pages == [pool.n_pages - 1]
        assert pool.n_free == pool.n_pages

    asyncio.run(story())
