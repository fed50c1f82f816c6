"""The scheduler: runs the steps of all sessions on one GPU, so that each gets its share and none waits for another.

Sessions that write go through the GPU together: one decode step takes the next token of each (continuous batching, Yu
et al. 2022). Chunks of prompts take turns with these steps, first come first served. There is no task behind it:
whoever waits for a token and finds none submits and reads for all.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from clutch.engine.depth import Depth
from clutch.engine.lane import Lane
from clutch.errors import DeviceLost, PoolExhausted
from clutch.gpu.device import StepResult
from clutch.kv.sequence import Sequence as KVSequence
from clutch.model.runner import Runner


@dataclass(frozen=True)
class Batch:
    """A decode step in flight: a result for each lane, in their order."""

    results: Awaitable[list[StepResult]]
    lanes: list[Lane]


class Scheduler:
    """Submits decode steps and chunks of prompts.

    Args:
        runner: of the model; says how many decode steps may be in flight.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner: Runner | None = runner
        # Held while steps are submitted and waited for; handed on in the order in which it was asked for.
        self.turn = asyncio.Lock()
        self._lanes: list[Lane] = []
        self._in_flight: deque[Batch] = deque()
        self._depth = Depth(runner.steps_in_flight)

    @property
    def runner(self) -> Runner:
        """Of the model.

        Raises:
            DeviceLost: the GPU was given up, because somebody else found it lost.
        """
        if self._runner is None:
            raise DeviceLost("The GPU was lost.")
        return self._runner

    def close(self) -> None:
        """Give the GPU up; whoever still uses it is told that it is lost."""
        self._runner = None

    async def prefill(self, sequence: KVSequence, token_ids: Sequence[int], *, is_last: bool) -> StepResult:
        """Read a chunk of a prompt behind what `sequence` holds; call it in a turn.

        Raises:
            PoolExhausted, DeviceLost, DeviceTimeout: it cannot be read.
        """
        position = sequence.length
        self.make_room(sequence, position + len(token_ids))
        return await self.runner.prefill(sequence.slot, token_ids, position, is_last=is_last)

    async def repeat(self, sequence: KVSequence, token_id: int) -> StepResult:
        """Run the decode step of one token behind what `sequence` holds, for Continue; call it in a turn.

        Raises:
            PoolExhausted, DeviceLost, DeviceTimeout: it cannot be run.
        """
        position = sequence.length
        self.make_room(sequence, position + 1)
        self.runner.write_token(sequence.slot, token_id, position)
        [result] = await self.runner.decode([(sequence.slot, position)])
        return result

    async def read_page(self, page: int) -> bytes:
        """Return the keys and values of a page, in a turn of its own: the others do not wait for a whole chat.

        Raises:
            DeviceLost, DeviceTimeout: it cannot be read.
        """
        async with self.turn:
            return await self.runner.read_page(page)

    def join(self, sequence: KVSequence, position: int, end: int, is_stopped: Callable[[], bool]) -> Lane:
        """Let a session write from `position` on, up to `end`."""
        lane = Lane(sequence, position, end, is_stopped)
        self._lanes.append(lane)
        return lane

    async def next(self, lane: Lane) -> StepResult | None:
        """Return the next result of `lane`; None when it was stopped, and behind the last.

        Raises:
            PoolExhausted, DeviceLost, DeviceTimeout: why there is none.
        """
        while not lane.has_result:
            if lane.is_over:
                if lane.failure is not None:
                    raise lane.failure
                return None
            async with self.turn:
                # Those that have a result take it first, so that all can be submitted together again.
                if not any(other.has_result for other in self._lanes):
                    self._submit()
                    await self._read()
                    continue
            await asyncio.sleep(0)
        return lane.take()

    async def drain(self, lane: Lane) -> None:
        """Let a lane leave: submit no more of it, and wait for what is in flight.

        A step cannot be recalled, and its failure cannot matter.
        """
        lane.end()
        while lane.n_in_flight:
            async with self.turn:
                if lane.n_in_flight:
                    await self._read()
        if lane in self._lanes:
            self._lanes.remove(lane)

    def make_room(self, sequence: KVSequence, n_positions: int) -> None:
        """Hold pages for `n_positions` of `sequence`, and tell the GPU what changed; call it in a turn.

        Raises:
            PoolExhausted: there are not enough.
        """
        copy = sequence.reserve(n_positions)
        if copy is not None:
            self.runner.copy_page(copy.source, copy.target)
        self.runner.write_table(sequence.slot, *sequence.table.take_changes())

    def _submit(self) -> None:
        """Submit steps of all lanes that may, until enough are in flight."""
        runner = self.runner
        while len(self._in_flight) < self._depth.steps:
            lanes = [lane for lane in self._lanes if lane.may_submit and self._has_room(lane)]
            if not lanes:
                return
            try:
                results = runner.decode([(lane.sequence.slot, lane.position) for lane in lanes])
            except Exception as failure:
                for lane in lanes:
                    lane.failure = failure
                return
            self._in_flight.append(Batch(results, lanes))
            for lane in lanes:
                lane.submitted()

    async def _read(self) -> None:
        """Read the oldest step in flight, if there is one, and hand its results out."""
        if not self._in_flight:
            return
        batch = self._in_flight.popleft()
        outcomes: Sequence[StepResult | Exception]
        try:
            outcomes = await batch.results
        except Exception as failure:
            outcomes = [failure] * len(batch.lanes)
        self._depth.observe(is_followed=bool(self._in_flight))
        for lane, outcome in zip(batch.lanes, outcomes, strict=True):
            lane.arrived(outcome)

    def _has_room(self, lane: Lane) -> bool:
        try:
            self.make_room(lane.sequence, lane.position + 1)
        except PoolExhausted as exhausted:
            lane.failure = exhausted
            return False
        return True
