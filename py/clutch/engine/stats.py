"""When things happened in one request."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from clutch.engine.own_time import OwnTime, Timed

T = TypeVar("T")


class Stats:
    """Times of a request, in ms.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started = clock()
        self._first_token: float | None = None
        self._last_token = self._started
        self._n_tokens = 0
        self._own_time = OwnTime()
        self._own_first_s = self._own_last_s = 0.0

    def now_ms(self) -> float:
        """Return the clock."""
        return self._clock() * 1000

    async def watch(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, in which the tokens come out, and note how long Python is at work in it."""
        return await Timed(work, self._own_time)

    def token(self) -> None:
        """A token came out."""
        self._last_token = self._clock()
        self._n_tokens += 1
        self._own_last_s = self._own_time.seconds
        if self._first_token is None:
            self._first_token = self._last_token
            self._own_first_s = self._own_last_s

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able times; None where nothing happened.

        `ttft_ms` is the time to the first token, `tokens_per_s` and `step_ms` are of the tokens after it.
        `python_ms` is what such a step takes of Python itself, outside all waiting; what the event loop needs to wake
        it is not in.
        """
        total_ms = (self._clock() - self._started) * 1000
        if self._first_token is None:
            return {
                "ttft_ms": None,
                "decode_ms": 0.0,
                "step_ms": None,
                "python_ms": None,
                "tokens_per_s": None,
                "total_ms": total_ms,
            }
        decode_ms = (self._last_token - self._first_token) * 1000
        steps = self._n_tokens - 1
        return {
            "ttft_ms": (self._first_token - self._started) * 1000,
            "decode_ms": decode_ms,
            "step_ms": decode_ms / steps if steps else None,
            "python_ms": (self._own_last_s - self._own_first_s) * 1000 / steps if steps else None,
            "tokens_per_s": steps / decode_ms * 1000 if steps and decode_ms else None,
            "total_ms": total_ms,
        }
