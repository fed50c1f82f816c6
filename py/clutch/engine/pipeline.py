"""Decode steps in flight: the next is submitted before the last is read, so the GPU never waits for Python."""

from collections import deque
from collections.abc import Awaitable
from contextlib import suppress

from clutch.errors import DeviceLost, DeviceTimeout
from clutch.gpu.device import StepResult
from clutch.model.runner import Runner


class Pipeline:
    """Submits the steps of consecutive positions and hands their results out in order.

    Args:
        runner: of the model; says how many steps may be in flight.
        position: of the first token to go through.
        end: no step is submitted for this position or any behind it.
    """

    def __init__(self, runner: Runner, position: int, end: int) -> None:
        self._runner = runner
        self._position = position
        self._end = end
        self._in_flight: deque[Awaitable[StepResult]] = deque()

    async def next(self) -> StepResult | None:
        """Submit what may be in flight and return the next result; None behind the last."""
        while self._position < self._end and len(self._in_flight) < self._runner.steps_in_flight:
            self._in_flight.append(self._runner.decode(self._position))
            self._position += 1
        return await self._in_flight.popleft() if self._in_flight else None

    async def drain(self) -> None:
        """Wait for what is in flight and discard it: a step cannot be recalled, and its failure cannot matter."""
        while self._in_flight:
            with suppress(DeviceLost, DeviceTimeout):
                await self._in_flight.popleft()
