"""When things happened in one request."""

from collections.abc import Callable


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

    def now_ms(self) -> float:
        """Return the clock."""
        return self._clock() * 1000

    def token(self) -> None:
        """A token came out."""
        self._last_token = self._clock()
        self._n_tokens += 1
        if self._first_token is None:
            self._first_token = self._last_token

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able times; None where nothing happened.

        `ttft_ms` is the time to the first token, `tokens_per_s` and `step_ms` are of the tokens after it.
        """
        total_ms = (self._clock() - self._started) * 1000
        if self._first_token is None:
            return {
                "ttft_ms": None,
                "decode_ms": 0.0,
                "step_ms": None,
                "tokens_per_s": None,
                "total_ms": total_ms,
            }
        decode_ms = (self._last_token - self._first_token) * 1000
        steps = self._n_tokens - 1
        return {
            "ttft_ms": (self._first_token - self._started) * 1000,
            "decode_ms": decode_ms,
            "step_ms": decode_ms / steps if steps else None,
            "tokens_per_s": steps / decode_ms * 1000 if steps and decode_ms else None,
            "total_ms": total_ms,
        }
