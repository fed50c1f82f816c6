"""Stop as a watermark: requests are numbered, Stop raises a mark, and nothing is ever cleared.

So a Stop that comes early, twice or late cannot be lost and cannot leak into the next request.
"""

from typing import Protocol


class SharedMark(Protocol):
    """The word of shared memory that the page writes; see `worker/engine_worker.js`."""

    def read(self) -> int:
        """Return the highest request that the page has stopped."""


class StopMark:
    """The highest request number that was stopped.

    Args:
        shared: the page's own mark, seen without waiting for a message; None without shared memory.
    """

    def __init__(self, shared: SharedMark | None) -> None:
        self._shared = shared
        self._mark = 0

    def raise_to(self, request_id: int) -> None:
        """Stop `request_id` and everything before it."""
        self._mark = max(self._mark, request_id)

    def is_stopped(self, request_id: int) -> bool:
        """Whether `request_id` was stopped."""
        if self._mark >= request_id:
            return True
        return self._shared is not None and self._shared.read() >= request_id
