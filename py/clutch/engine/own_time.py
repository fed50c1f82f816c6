"""How long Python itself is at work in a coroutine: from each time it is resumed to its next wait."""

import time
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class OwnTime:
    """Adds up what the coroutines take that are awaited through it, one at a time."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._resumed: float | None = None

    @property
    def seconds(self) -> float:
        """All so far; the coroutine itself may ask."""
        if self._resumed is None:
            return self._seconds
        return self._seconds + time.perf_counter() - self._resumed

    def resume(self) -> None:
        """A coroutine goes on."""
        self._resumed = time.perf_counter()

    def suspend(self) -> None:
        """It waits, or has ended."""
        self._seconds = self.seconds
        self._resumed = None


class Timed(Generic[T]):
    """Awaits `work`, and nothing else than it would; `own_time` counts."""

    def __init__(self, work: Coroutine[Any, Any, T], own_time: OwnTime) -> None:
        self._work = work
        self._own_time = own_time

    def __await__(self) -> Generator[Any, Any, T]:
        go_on, value = self._work.send, None
        while True:
            self._own_time.resume()
            try:
                waits_for = go_on(value)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._own_time.suspend()
            try:
                go_on, value = self._work.send, (yield waits_for)
            except BaseException as error:
                go_on, value = self._work.throw, error
