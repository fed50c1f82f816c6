"""What a load did when, for the `loaded` message: its stages overlap, so a sum of seconds would not tell."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stages:
    """Spans of a load: {stage: [start, end]} in ms of the worker's life."""

    def __init__(self) -> None:
        self.spans: dict[str, object] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What happens inside belongs to the stage `name`."""
        start = _now_ms()
        yield
        self.spans[name] = [start, _now_ms()]


def _now_ms() -> int:
    # In Pyodide performance.now(), which begins with the worker.
    return round(time.perf_counter() * 1000)
