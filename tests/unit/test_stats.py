"""The times of a request, with a clock that stands where it is put."""

import asyncio
import time

import pytest

from clutch.engine.stats import Stats


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_without_a_token_there_is_no_time_to_it(clock):
    stats = Stats(clock)
    clock.now += 0.5
    times = stats.to_wire()
    assert times["total_ms"] == pytest.approx(500)
    assert times["decode_ms"] == 0
    assert (times["ttft_ms"], times["step_ms"], times["tokens_per_s"], times["python_ms"]) == (None,) * 4


def test_one_token_has_no_rate(clock):
    stats = Stats(clock)
    clock.now += 0.2
    stats.token()
    times = stats.to_wire()
    assert times["ttft_ms"] == pytest.approx(200)
    assert (times["decode_ms"], times["step_ms"], times["tokens_per_s"]) == (0, None, None)


def test_the_rate_is_of_the_tokens_after_the_first(clock):
    stats = Stats(clock)
    clock.now += 1
    for _ in range(5):
        stats.token()
        clock.now += 0.01
    times = stats.to_wire()
    assert times["ttft_ms"] == pytest.approx(1000)
    assert times["decode_ms"] == pytest.approx(40)
    assert times["step_ms"] == pytest.approx(10)
    assert times["tokens_per_s"] == pytest.approx(100)
    assert times["total_ms"] == pytest.approx(1050)


def test_a_clock_that_stands_still_divides_by_nothing(clock):
    stats = Stats(clock)
    stats.token()
    stats.token()
    assert stats.to_wire()["tokens_per_s"] is None


def test_pythons_own_time_leaves_out_all_waiting(clock):
    stats = Stats(clock)

    async def story():
        for _ in range(3):
            stats.token()
            await asyncio.sleep(0.05)
            until = time.perf_counter() + 0.01
            while time.perf_counter() < until:
                pass
        return "done"

    assert asyncio.run(stats.watch(story())) == "done"
    assert 10 <= stats.to_wire()["python_ms"] < 40


def test_what_is_watched_can_be_cancelled_and_may_fail(clock):
    seen = []

    async def waits():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            await asyncio.sleep(0)
            raise KeyError("on the way out") from None

    async def story():
        task = asyncio.ensure_future(Stats(clock).watch(waits()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(KeyError):
            await task

    asyncio.run(story())
    assert seen == ["cancelled"]
