"""Decode steps of several lanes: together, in order, within bounds, and none harmed by what befalls another."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.engine.scheduler import Scheduler
from clutch.errors import DeviceLost, PoolExhausted
from clutch.gpu.device import StepResult
from clutch.kv.pool import Pool
from clutch.kv.sequence import Sequence

N_PAGES = 32


class CountingRunner:
    """Submits into a list; a step's token is its position."""

    def __init__(self, steps_in_flight, lost_at=None):
        self.steps_in_flight = steps_in_flight
        self.batches = []
        self.n_in_flight = self.most_in_flight = 0
        self._lost_at = lost_at
        self._order = asyncio.Lock()

    def decode(self, sequences):
        self.batches.append(list(sequences))
        self.n_in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.n_in_flight)
        return self._result(len(self.batches), sequences)

    async def _result(self, number, sequences):
        await asyncio.sleep(0)
        self.n_in_flight -= 1
        if number == self._lost_at:
            raise DeviceLost("gone")
        return [StepResult(position, 0.0, 0.0, position + 1) for _, position in sequences]

    def write_table(self, slot, first_entry, pages):
        pass


class World:
    def __init__(self, steps_in_flight, n_pages=N_PAGES, lost_at=None):
        self.runner = CountingRunner(steps_in_flight, lost_at)
        self.scheduler = Scheduler(self.runner)
        self.pool = Pool(n_pages)
        self.found = {}

    def join(self, slot, length, is_stopped=lambda: False):
        return self.scheduler.join(Sequence(self.pool, slot), 0, length, is_stopped)

    async def write(self, slot, length, is_stopped=lambda: False):
        """Take all results of a lane, as `generate` does."""
        lane = self.join(slot, length, is_stopped)
        found = self.found[slot] = []
        try:
            with self.pool.busy(lane.sequence):
                while (result := await self.scheduler.next(lane)) is not None:
                    lane.sequence.commit([result.token_id])
                    found.append(result.token_id)
        finally:
            await self.scheduler.drain(lane)
        return found


@given(st.integers(1, 4), st.lists(st.integers(0, 20), min_size=1, max_size=5))
def test_every_lane_gets_its_results_in_order_up_to_its_end(steps_in_flight, lengths):
    async def story():
        world = World(steps_in_flight)
        found = await asyncio.gather(*(world.write(slot, length) for slot, length in enumerate(lengths)))
        assert found == [list(range(length)) for length in lengths]
        submitted = Counter(sequence for batch in world.runner.batches for sequence in batch)
        assert submitted == Counter((slot, p) for slot, length in enumerate(lengths) for p in range(length))
        assert world.runner.most_in_flight <= steps_in_flight
        assert world.scheduler._lanes == []

    asyncio.run(story())


@pytest.mark.parametrize("steps_in_flight", [1, 2, 3])
def test_sessions_that_write_go_through_together(steps_in_flight):
    async def story():
        world = World(steps_in_flight)
        await asyncio.gather(*(world.write(slot, 40) for slot in range(4)))
        assert sum(len(batch) == 4 for batch in world.runner.batches) >= 36

    asyncio.run(story())


def test_one_that_comes_later_is_taken_along():
    async def story():
        world = World(2)
        first = asyncio.ensure_future(world.write(0, 40))
        while len(world.found.get(0, [])) < 10:
            await asyncio.sleep(0)
        await world.write(1, 20)
        n_together = sum(len(batch) == 2 for batch in world.runner.batches)
        assert n_together >= 17
        await first

    asyncio.run(story())


def test_the_next_step_is_submitted_before_the_last_is_read():
    async def story():
        world = World(2)
        lane = world.join(0, 100)
        assert (await world.scheduler.next(lane)).token_id == 0
        assert world.runner.batches == [[(0, 0)], [(0, 1)]]
        await world.scheduler.drain(lane)
        assert world.runner.n_in_flight == 0
        assert len(world.runner.batches) == 2

    asyncio.run(story())


def test_nothing_is_submitted_unasked():
    async def story():
        world = World(2)
        await world.scheduler.drain(world.join(0, 9))
        assert world.runner.batches == []

    asyncio.run(story())


def test_one_that_is_stopped_is_left_out_and_the_other_goes_on():
    async def story():
        world = World(2)
        found = await asyncio.gather(
            world.write(0, 30, is_stopped=lambda: len(world.found[0]) >= 5), world.write(1, 30)
        )
        assert found == [list(range(len(found[0]))), list(range(30))]
        assert 5 <= len(found[0]) <= 7

    asyncio.run(story())


@pytest.mark.parametrize("lost_at", [1, 2, 5])
def test_a_lost_gpu_fails_every_lane_and_no_result_is_skipped(lost_at):
    async def story():
        world = World(2, lost_at=lost_at)
        ends = await asyncio.gather(*(world.write(slot, 30) for slot in range(3)), return_exceptions=True)
        assert any(isinstance(end, DeviceLost) for end in ends)
        for slot, end in enumerate(ends):
            assert isinstance(end, DeviceLost) or end == list(range(30))
            assert world.found[slot] == list(range(len(world.found[slot])))
        assert world.runner.n_in_flight == 0
        assert world.scheduler._lanes == []

    asyncio.run(story())


def test_one_without_room_fails_alone():
    async def story():
        world = World(2, n_pages=3)
        ends = await asyncio.gather(world.write(0, 40), world.write(1, 10), return_exceptions=True)
        assert isinstance(ends[0], PoolExhausted) or ends[0] == list(range(40))
        assert ends[1] == list(range(10))
        ends = await asyncio.gather(world.write(2, 64), world.write(3, 10), return_exceptions=True)
        assert isinstance(ends[0], PoolExhausted)
        assert world.found[2] == list(range(len(world.found[2])))
        assert ends[1] == list(range(10))

    asyncio.run(story())
