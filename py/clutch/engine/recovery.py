"""How often a lost GPU is fetched back by itself: browsers refuse an adapter that keeps crashing."""

from collections import deque
from collections.abc import Callable

MOST = 2
WITHIN_SECONDS = 300.0


class Recoveries:
    """Counts the recoveries of the last minutes.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun: deque[float] = deque(maxlen=MOST)

    def begin(self) -> bool:
        """Count one more and return True, or return False when there were too many."""
        now = self._clock()
        if len(self._begun) == MOST and now - self._begun[0] < WITHIN_SECONDS:
            return False
        self._begun.append(now)
        return True
