"""The tasks of a session, in an order that can be relied on: what is exclusive has the session for itself."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Work:
    """Starts tasks and knows which have not ended."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._exclusive: set[asyncio.Task[None]] = set()

    @property
    def tasks(self) -> frozenset[asyncio.Task[None]]:
        """Those that have not ended."""
        return frozenset(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside the others, behind what is exclusive."""
        self._start(work, frozenset(self._exclusive))

    def begin_exclusive(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` behind everything that was begun so far."""
        task = self._start(work, self.tasks)
        self._exclusive.add(task)
        task.add_done_callback(self._exclusive.discard)

    def _start(self, work: Coroutine[Any, Any, None], earlier: frozenset[asyncio.Task[None]]) -> asyncio.Task[None]:
        async def run() -> None:
            if earlier:
                await asyncio.wait(earlier)
            await work

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
