"""How a request is stopped: a watermark that is never cleared, and an interruption of what only waits.

Requests are numbered; Stop raises a mark. So a Stop that comes early, twice or late cannot be lost and cannot leak
into the next request. Steps on the GPU cannot be recalled: generation asks the mark before each. What is only waiting
(a download, a compile, a GPU on its way back) is interrupted where it stands.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class SharedMark(Protocol):
    """The words of shared memory that the page writes, one a session; see `ui/engine_client.py`."""

    def read(self, session: int) -> int:
        """Return the highest request that the page has stopped in a session."""


class StopMark:
    """The highest request number that was stopped.

    Args:
        shared: reads the page's own mark, seen without waiting for a message; None without shared memory.
    """

    def __init__(self, shared: Callable[[], int] | None = None) -> None:
        self._shared = shared
        self._mark = 0

    def raise_to(self, request_id: int) -> None:
        """Stop `request_id` and everything before it."""
        self._mark = max(self._mark, request_id)

    def is_stopped(self, request_id: int) -> bool:
        """Whether `request_id` was stopped."""
        if self._mark >= request_id:
            return True
        return self._shared is not None and self._shared() >= request_id


class Interrupted(Exception):
    """The work was stopped where it waited; its `with` and `finally` blocks have run. Never leaves the engine."""


class Cancellation:
    """Stops one request, wherever it is.

    Args:
        request_id: which.
        mark: of the engine.
    """

    def __init__(self, request_id: int, mark: StopMark) -> None:
        self.request_id = request_id
        self._mark = mark
        self._is_cancelled = False
        self._waiting: asyncio.Future[Any] | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether the request was stopped; asked before each step."""
        return self._is_cancelled or self._mark.is_stopped(self.request_id)

    def cancel(self) -> None:
        """Stop the request, whatever the mark says: the model is being unloaded, or the page is going."""
        self._is_cancelled = True
        self.interrupt()

    def interrupt(self) -> None:
        """End what is being waited for, if the request was stopped."""
        if self.is_stopped and self._waiting is not None:
            self._waiting.cancel()

    async def waiting_for(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, which a Stop may end at any await.

        Raises:
            Interrupted: it was stopped.
        """
        task = self._waiting = asyncio.ensure_future(work)
        try:
            self.interrupt()
            result: T = await task
            return result
        except asyncio.CancelledError:
            raise Interrupted from None
        finally:
            self._waiting = None
