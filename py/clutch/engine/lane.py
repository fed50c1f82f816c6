"""A lane: one session's way through the decode steps, from its first token to the last that may be submitted."""

from collections import deque
from collections.abc import Callable

from clutch.gpu.device import StepResult
from clutch.kv.sequence import Sequence

# Where a lane ends whose results nobody wants any more.
_NOWHERE = -1


class Lane:
    """What of a session is submitted, read and still to be taken.

    Args:
        sequence: of the session.
        position: of the first token to go through.
        end: no step is submitted for this position or any behind it.
        is_stopped: whether Stop was pressed; asked before every submit.
    """

    def __init__(self, sequence: Sequence, position: int, end: int, is_stopped: Callable[[], bool]) -> None:
        self.sequence = sequence
        self.position = position
        self.n_in_flight = 0
        self.failure: Exception | None = None
        self._results: deque[StepResult] = deque()
        self._end = end
        self._is_stopped = is_stopped

    @property
    def has_result(self) -> bool:
        """Whether `take` has one to return."""
        return bool(self._results)

    @property
    def may_submit(self) -> bool:
        """Whether its next step may be submitted now."""
        return self.position < self._end and self.failure is None and not self._is_stopped()

    @property
    def is_over(self) -> bool:
        """Whether nothing will come any more."""
        return not self.n_in_flight and not self._results and not self.may_submit

    def submitted(self) -> None:
        """Note that its next step was submitted."""
        self.position += 1
        self.n_in_flight += 1

    def arrived(self, outcome: StepResult | Exception) -> None:
        """Note that its oldest step was read, or failed; what follows one that failed is worth nothing."""
        self.n_in_flight -= 1
        if isinstance(outcome, Exception):
            self.failure = outcome
        elif self.failure is None and self._end != _NOWHERE:
            self._results.append(outcome)

    def take(self) -> StepResult:
        """Return the oldest result."""
        return self._results.popleft()

    def end(self) -> None:
        """Submit no more; what is in flight or not taken is discarded."""
        self._end = _NOWHERE
        self._results.clear()
