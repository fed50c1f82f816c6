"""The same story again and again, with one thing going wrong at its every GPU call in turn.

The story is load, generate, unload; every call that can fail on a real GPU has a number. The tiny model makes it short
enough for all of them, none is left out. Source of the idea: SQLite's tests of out-of-memory and I/O errors.
"""

import asyncio

import pytest

from clutch.engine.lifecycle import EngineState
from clutch.errors import DeviceTimeout, OutOfMemory, SourceError
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


async def load(driver):
    await driver.load()


async def load_and_generate(driver):
    await driver.load()
    await driver.generate(max_tokens=MAX_TOKENS)


def test_the_device_is_lost_at_any_call(new_driver, golden, count):
    n_calls, n_load = count(new_driver, load_and_generate), count(new_driver, load)

    async def story(fail_at):
        driver = new_driver(Script(fail_at=fail_at))
        loading = await driver.load()
        assert ("error" in kinds(loading)) == (fail_at <= n_load)
        if fail_at > n_load:
            events = await driver.generate(max_tokens=MAX_TOKENS)
            assert "finished" not in kinds(events)
        assert one_error(driver, "E500")["request_id"] == (None if fail_at <= n_load else 1)
        states = [event["state"] for event in driver.platform.events if event["kind"] == "state"]
        way = ["empty"] if fail_at <= n_load else ["ready", "generating", "lost", "empty"]
        assert states == ["loading", *way]
        assert_empty(driver)
        await assert_works_again(driver, golden)

    for fail_at in range(1, n_calls + 1):
        asyncio.run(story(fail_at))


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [("allocate", OutOfMemory, "E400"), ("upload", SourceError, "E300"), ("skip", SourceError, "E300")],
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


def test_the_device_does_not_answer_a_step(new_driver, golden, count):
    n_load, n_calls = count(new_driver, load), count(new_driver, load_and_generate)

    async def story(fail_at):
        driver = new_driver(Script(fail_at=fail_at, error=DeviceTimeout))
        await driver.load()
        assert "finished" not in kinds(await driver.generate(max_tokens=MAX_TOKENS))
        one_error(driver, "E501")
        assert driver.engine.state is EngineState.READY
        assert await answer_of(driver) == golden[1][:MAX_TOKENS]

    for fail_at in range(n_load + 1, n_calls + 1):
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
    # The first decode submits two steps at once; apart from the second of them nothing goes out any more.
    assert script.calls["submit"] - submitted[0] <= 1
    return events


def assert_only_committed_pages_are_held(driver):
    pool = driver.engine._loaded.pool
    kv_length = [event for event in driver.platform.events if event["kind"] == "state"][-1]["kv_length"]
    assert pool.n_pages - pool.n_free == -(-kv_length // PAGE_POSITIONS)


def n_generate(new_driver, count):
    return count(new_driver, load_and_generate) - count(new_driver, load)


@pytest.mark.parametrize("is_shared", [False, True], ids=["by message", "by shared mark"])
def test_stop_at_any_call(new_driver, golden, count, is_shared):
    class Mark:
        value = 0

        def read(self):
            return self.value

    async def story(at_call):
        mark = Mark()
        driver = new_driver(shared_mark=mark if is_shared else None)

        def stop():
            mark.value = 1
            return None if is_shared else asyncio.ensure_future(driver.send("stop", request_id=1))

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
