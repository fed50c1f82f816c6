"""Steps in flight: order, bounds and draining, over a runner that only counts."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.pipeline import Pipeline
from clutch.errors import DeviceLost
from clutch.gpu.device import StepResult


class CountingRunner:
    """Submits into a list; a step's token is its position."""

    def __init__(self, steps_in_flight, lost_at=None):
        self.steps_in_flight = steps_in_flight
        self.submitted = []
        self.most_in_flight = 0
        self.n_in_flight = 0
        self._lost_at = lost_at

    def decode(self, position):
        self.submitted.append(position)
        self.n_in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.n_in_flight)
        return self._result(position)

    async def _result(self, position):
        await asyncio.sleep(0)
        self.n_in_flight -= 1
        if position == self._lost_at:
            raise DeviceLost("gone")
        return StepResult(position, 0.0, 0.0, position + 1)


@given(st.integers(1, 4), st.integers(0, 10), st.integers(0, 10))
def test_results_come_in_order_up_to_the_end(steps_in_flight, position, length):
    async def story():
        runner = CountingRunner(steps_in_flight)
        pipeline = Pipeline(runner, position, position + length)
        found = []
        while (result := await pipeline.next()) is not None:
            found.append(result.token_id)
        assert found == runner.submitted == list(range(position, position + length))
        assert runner.most_in_flight == min(steps_in_flight, length)
        assert await pipeline.next() is None

    asyncio.run(story())


def test_the_next_step_is_submitted_before_the_last_is_read():
    async def story():
        runner = CountingRunner(2)
        pipeline = Pipeline(runner, 5, 100)
        assert (await pipeline.next()).token_id == 5
        assert runner.submitted == [5, 6]
        assert (await pipeline.next()).token_id == 6
        assert runner.submitted == [5, 6, 7]
        await pipeline.drain()

    asyncio.run(story())


def test_nothing_is_submitted_unasked():
    runner = CountingRunner(2)
    asyncio.run(Pipeline(runner, 0, 9).drain())
    assert runner.submitted == []


def test_drain_waits_for_all_and_submits_none():
    async def story():
        runner = CountingRunner(3)
        pipeline = Pipeline(runner, 0, 9)
        await pipeline.next()
        assert runner.n_in_flight == 2
        await pipeline.drain()
        assert (runner.n_in_flight, runner.submitted) == (0, [0, 1, 2])
        await pipeline.drain()

    asyncio.run(story())


@pytest.mark.parametrize("lost_at", [1, 2, 3])
def test_drain_waits_for_all_although_one_fails(lost_at):
    async def story():
        runner = CountingRunner(4, lost_at)
        pipeline = Pipeline(runner, 0, 9)
        await pipeline.next()
        await pipeline.drain()
        assert runner.n_in_flight == 0

    asyncio.run(story())
