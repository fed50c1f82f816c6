"""Two works side by side, with one outcome."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


async def together(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Return both results. The first error ends the other work, and is raised when that has ended too.

    What one work has made when the other fails must belong to somebody else: its result is lost.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = group.create_task(first), group.create_task(second)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return tasks[0].result(), tasks[1].result()
