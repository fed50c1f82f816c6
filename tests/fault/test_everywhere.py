"""The same story again and again, with one thing going wrong at its every GPU call in turn.

The story is load, generate, unload; every call that can fail on a real GPU has a number. The tiny model makes it short
enough for all of them, none is left out. Source of the idea: SQLite's tests of out-of-memory and I/O errors.
"""

import asyncio

import pytest

from clutch.engine.lifecycle import EngineState
from clutch.errors import DeviceLost, DeviceTimeout, OutOfMemory, SourceError
from clutch.kv.pool import PAGE_POSITIONS
from tests.support.fake_device import Script
from tests.support.fake_platform import only

MAX_TOKENS = 6


def kinds(events):
    return [event["kind"] for event in events]


def one_error(driver, code):
    error = only(driver.platform.events, "error")
    assert error["code"] == code
    return error


def assert_empty(driver):
    assert driver.engine.state is EngineState.EMPTY
    assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}
    assert all(device.is_destroyed for device in driver.platform.devices)
    assert all(stream.is_closed for source in driver.platform.sources for stream in source.streams)
    assert [e for e in driver.platform.events if e["kind"] == "state"][-1]["state"] == "empty"


async def answer_of(driver):
    return only(await driver.generate(max_tokens=MAX_TOKENS), "finished")["output_ids"]


async def assert_works_again(driver, golden):
    driver.platform.script = Script()
    assert only(await driver.load(), "loaded")
    assert await answer_of(driver) == golden[1][:MAX_TOKENS]


@pytest.fixture(scope="module")
def count():
    """Return how many calls of a kind ("" for all) a story makes; it gets a driver."""

    def counted(new_driver, story, kind=""):
        script = Script(only=kind)
        asyncio.run(story(new_driver(script)))
        assert script.n_counted > 0
        return script.n_counted

    return counted


async def settled(driver):
    """Wait until the engine has nothing left to do, what a loss brings along included."""
    for _ in range(3):
        await asyncio.sleep(0)
        await driver.engine.idle()


async def load(driver):
    await driver.load()


async def load_and_generate(driver):
    await driver.load()
    await driver.generate(max_tokens=MAX_TOKENS)


def states_of(driver):
    return [event["state"] for event in driver.platform.events if event["kind"] == "state"]


@pytest.mark.parametrize(("error", "code"), [(DeviceLost, "E500"), (DeviceTimeout, "E501")])
def test_the_device_fails_at_any_call_and_is_fetched_back(new_driver, golden, count, error, code):
    n_calls, n_load = count(new_driver, load_and_generate), count(new_driver, load)

    async def story(fail_at):
        driver = new_driver(Script(fail_at=fail_at, error=error))
        await driver.load()
        events = await driver.generate(max_tokens=MAX_TOKENS)
        # The answer goes on where it was: the same tokens, each of them sent once.
        finished = only(events, "finished")
        assert finished["output_ids"] == golden[1][:MAX_TOKENS]
        assert [i for e in events if e["kind"] == "delta" for i in e["token_ids"]] == golden[1][:MAX_TOKENS]
        assert finished["usage"]["kv_length"] == finished["usage"]["committed_tokens"]
        if error is DeviceTimeout and "notice" not in kinds(driver.platform.events):
            # A step that was already discarded: nobody waits for it any more.
            assert states_of(driver) == ["loading", "ready", "generating", "ready"]
            return
        await settled(driver)
        notice = only(driver.platform.events, "notice")
        assert (notice["code"], notice["request_id"]) in [("E500", 1 if fail_at <= n_load else 2), ("E500", None)]
        assert "error" not in kinds(driver.platform.events)
        states = states_of(driver)
        lost_at = states.index("lost")
        # Back to what was going on.
        assert states.pop(lost_at) == "lost" and states.pop(lost_at) == states[lost_at - 1]
        assert states == ["loading", "ready", "generating", "ready"]
        assert [device.is_destroyed for device in driver.platform.devices] == [True, False]
        await driver.send("unload")
        assert_empty(driver)

    for fail_at in range(1, n_calls + 1):
        asyncio.run(story(fail_at))


def test_the_device_is_lost_for_ever_from_any_call_on(new_driver, golden, count):
    n_calls, n_load = count(new_driver, load_and_generate), count(new_driver, load)

    async def story(fail_at):
        driver = new_driver(Script(fail_at=fail_at, for_ever=True))
        await driver.load()
        events = await driver.generate(max_tokens=MAX_TOKENS) if fail_at > n_load else []
        await settled(driver)
        request_id = one_error(driver, "E500")["request_id"]
        if "finished" in kinds(events):
            # Complete before the loss: only a discarded step met it.
            assert (request_id, only(events, "finished")["output_ids"]) == (None, golden[1][:MAX_TOKENS])
        else:
            assert request_id == (1 if fail_at <= n_load else 2)
        assert "notice" not in kinds(driver.platform.events)
        # Tried twice, then given up: a browser refuses an adapter that keeps crashing.
        assert len(driver.platform.devices) == 3
        assert_empty(driver)
        driver.engine.host._recoveries._begun.clear()
        await assert_works_again(driver, golden)

    for fail_at in range(1, n_calls + 1):
        asyncio.run(story(fail_at))


def test_the_device_is_lost_while_idle(new_driver, golden):
    async def story():
        driver = new_driver()
        await driver.load()
        await driver.generate(max_tokens=3)
        driver.platform.devices[0].lose()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert driver.engine.state is EngineState.LOST
        busy = await driver.generate()
        assert only(busy, "error")["code"] == "E601"
        await driver.engine.idle()
        assert states_of(driver)[-2:] == ["lost", "ready"]
        assert only(driver.platform.events, "notice")["code"] == "E500"
        # The cache is gone with the GPU; the answer goes on from its tokens all the same.
        finished = only(await driver.continue_(max_tokens=MAX_TOKENS), "finished")
        assert finished["output_ids"] == golden[1][:MAX_TOKENS]

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["stop", "unload"])
def test_a_gpu_on_its_way_back_is_given_up(new_driver, golden, kind):
    async def story():
        driver = new_driver()
        await driver.load()
        driver.platform.devices[0].lose()
        for _ in range(20):
            await asyncio.sleep(0)
        assert driver.engine.state is EngineState.LOST
        await driver.send(kind, **({"request_id": 1} if kind == "stop" else {}))
        await driver.engine.idle()
        assert_empty(driver)
        await assert_works_again(driver, golden)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [("allocate", OutOfMemory, "E400"), ("upload", SourceError, "E300")],
)
def test_loading_fails_at_any_call(new_driver, golden, count, kind, error, code):
    async def story(fail_at):
        driver = new_driver(Script(fail_at=fail_at, only=kind, error=error))
        assert "loaded" not in kinds(await driver.load())
        one_error(driver, code)
        assert_empty(driver)
        await assert_works_again(driver, golden)

    for fail_at in range(1, count(new_driver, load, kind) + 1):
        asyncio.run(story(fail_at))


async def acting(driver, at_call, act):
    """Load, then generate with `act` called at a call of it, which must end it; return the events of the answer."""
    await driver.load()
    script = driver.platform.script
    acted, submitted = [], []

    def note_and_act():
        submitted.append(script.calls["submit"])
        acted.append(act())

    script.act_at, script.act = script.n_counted + at_call, note_and_act
    events = await driver.generate(max_tokens=MAX_TOKENS)
    assert len(acted) == 1
    if acted[0] is not None:
        await acted[0]
    if driver.engine.state is EngineState.READY:
        # The first decode submits two steps at once; apart from the second of them nothing goes out any more.
        assert script.calls["submit"] - submitted[0] <= 1
    return events


def assert_only_committed_pages_are_held(driver):
    pool = driver.engine.host.placement.pool
    kv_length = [event for event in driver.platform.events if event["kind"] == "state"][-1]["kv_length"]
    assert pool.n_pages - pool.n_free == -(-kv_length // PAGE_POSITIONS)


def n_generate(new_driver, count):
    return count(new_driver, load_and_generate) - count(new_driver, load)


@pytest.mark.parametrize("is_shared", [False, True], ids=["by message", "by shared mark"])
def test_stop_at_any_call(new_driver, golden, count, is_shared):
    class Mark:
        value = 0

        def read(self, session):
            return self.value

    async def story(at_call):
        mark = Mark()
        driver = new_driver(shared_mark=mark if is_shared else None)

        def stop():
            mark.value = 2
            return None if is_shared else asyncio.ensure_future(driver.send("stop", request_id=2))

        events = await acting(driver, at_call, stop)
        finished = only(events, "finished")
        n_tokens = len(finished["output_ids"])
        assert finished["output_ids"] == golden[1][:n_tokens]
        assert finished["reason"] == ("length" if n_tokens == MAX_TOKENS else "abort")
        after = kinds(events)[kinds(events).index("finished") + 1 :]
        assert after == ["state"]
        usage = finished["usage"]
        assert usage["kv_length"] == usage["committed_tokens"] == events[-1]["kv_length"]
        assert usage["committed_tokens"] <= usage["prompt_tokens"] + n_tokens
        assert_only_committed_pages_are_held(driver)
        if finished["reason"] == "abort":
            # On with it: as if nothing had been, and only what is missing is sent.
            rest = await driver.continue_()
            whole = only(rest, "finished")
            assert whole["output_ids"] == golden[1][:MAX_TOKENS]
            assert [i for e in rest if e["kind"] == "delta" for i in e["token_ids"]] == golden[1][n_tokens:MAX_TOKENS]
            usage = whole["usage"]
            assert usage["kv_length"] == usage["committed_tokens"]
        # The same prompt again, on what was kept; then once more, on nothing.
        again = await driver.generate(max_tokens=MAX_TOKENS)
        known = min(usage["committed_tokens"], usage["prompt_tokens"] - 1)
        assert only(again, "started")["num_cached_tokens"] == known
        assert only(again, "finished")["output_ids"] == golden[1][:MAX_TOKENS]
        await driver.reset()
        assert await answer_of(driver) == golden[1][:MAX_TOKENS]
        return n_tokens

    lengths = [asyncio.run(story(at_call)) for at_call in range(1, n_generate(new_driver, count) + 1)]
    assert lengths == sorted(lengths)
    assert set(lengths) == set(range(MAX_TOKENS + 1))


@pytest.mark.parametrize("is_early", [False, True])
def test_stop_at_any_call_of_a_load(new_driver, golden, count, is_early):
    async def story(at_call):
        driver = new_driver(Script(act_at=at_call))
        stops = []
        driver.platform.script.act = lambda: stops.append(asyncio.ensure_future(driver.send("stop", request_id=1)))
        if is_early:
            # Before the engine is up, or the load has been read.
            await driver.send("stop", request_id=1)
        events = await driver.load()
        finished = only(events, "finished")
        assert (finished["request_id"], finished["reason"], finished["output_ids"]) == (1, "abort", [])
        assert kinds(events)[-1] == "state"
        await asyncio.gather(*stops)
        assert not {"error", "loaded"} & set(kinds(driver.platform.events))
        assert_empty(driver)
        await assert_works_again(driver, golden)

    # What the last call brings is there before the stop is heard: then the load has simply succeeded.
    for at_call in range(1, 2 if is_early else count(new_driver, load)):
        asyncio.run(story(at_call))


def test_reset_at_any_call(new_driver, golden, count):
    async def story(at_call):
        driver = new_driver()
        events = await acting(driver, at_call, lambda: asyncio.ensure_future(driver.reset()))
        assert only(events, "finished")["epoch"] == 0
        state = driver.platform.events[-1]
        assert (state["kind"], state["state"], state["epoch"], state["kv_length"]) == ("state", "ready", 1, 0)
        assert "error" not in kinds(driver.platform.events)
        assert_only_committed_pages_are_held(driver)
        after = await driver.generate(max_tokens=MAX_TOKENS)
        assert only(after, "started")["num_cached_tokens"] == 0
        assert only(after, "finished")["output_ids"] == golden[1][:MAX_TOKENS]

    for at_call in range(1, n_generate(new_driver, count) + 1):
        asyncio.run(story(at_call))


def test_unload_at_any_call(new_driver, golden, count):
    n_calls, n_load = count(new_driver, load_and_generate), count(new_driver, load)

    async def story(at_call):
        unloads = []
        driver = new_driver(Script(act_at=at_call))
        driver.platform.script.act = lambda: unloads.append(asyncio.ensure_future(driver.send("unload")))
        await driver.load()
        if at_call > n_load:
            assert only(await driver.generate(max_tokens=MAX_TOKENS), "finished")
        await asyncio.gather(*unloads)
        assert len(unloads) == 1
        assert "error" not in kinds(driver.platform.events)
        assert_empty(driver)
        await assert_works_again(driver, golden)

    for at_call in range(1, n_calls + 1):
        asyncio.run(story(at_call))
