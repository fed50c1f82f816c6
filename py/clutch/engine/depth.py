"""How many decode steps are in flight: enough that the GPU never waits, few enough that a Stop does not wait long."""

import time
from collections.abc import Callable

# What is in flight when a Stop comes still runs to its end, and the next request waits for it.
_MOST_MS = 50


class Depth:
    """Counts by how fast steps follow each other.

    Args:
        most_steps: that may be in flight.
        clock: seconds.
    """

    def __init__(self, most_steps: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._most_steps = most_steps
        self._clock = clock
        self._last_read: float | None = None
        self.steps = most_steps

    def observe(self, *, is_followed: bool) -> None:
        """Learn from a step that was read; `is_followed` says that another is in flight, so the next says more."""
        now = self._clock()
        if self._last_read is not None:
            step_ms = max(1e-3, (now - self._last_read) * 1000)
            # Two at least, where there may be: while one is read, the other runs.
            self.steps = min(self._most_steps, max(2, int(_MOST_MS / step_ms)))
        self._last_read = now if is_followed else None
