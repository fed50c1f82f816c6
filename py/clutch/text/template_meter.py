"""What one render of a chat template may cost: counted, not timed, so that it is the same everywhere."""

from collections.abc import Mapping

from jinja2.exceptions import SecurityError

MAX_SIZE = 4 * 2**20  # characters or items of any one value
MAX_STEPS = 200_000  # loop turns and calls
MAX_WORK = 64 * 2**20  # characters and items read or made: some 60 passes over the longest prompt (1 MiB)
ITEM_WORK = 16  # a piece of a text that was split costs about so many times the memory of a character


class Meter:
    """The budget of one render at a time.

    Raises:
        SecurityError: from every method, when the budget is spent.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Give the next render its full budget."""
        self._steps_left = MAX_STEPS
        self._work_left = MAX_WORK

    def step(self) -> None:
        """Count a loop turn or a call."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise SecurityError(f"more than {MAX_STEPS} loop turns and calls")

    def reserve(self, size: int) -> None:
        """Count a value of so many characters or items; call it before the value is made."""
        if size > MAX_SIZE:
            raise SecurityError(f"a value of {size} characters or items; at most {MAX_SIZE} are allowed")
        self._spend(size)

    def read(self, value: object) -> None:
        """Count a value that an operation goes through."""
        if isinstance(value, str | list | tuple | Mapping | range):
            self._spend(len(value))

    def made(self, value: object) -> None:
        """Count the pieces that an operation made out of a text that was counted before."""
        if isinstance(value, list):
            self._spend(ITEM_WORK * len(value))

    def _spend(self, work: int) -> None:
        self._work_left -= work
        if self._work_left < 0:
            raise SecurityError(f"more than {MAX_WORK} characters and items handled")
