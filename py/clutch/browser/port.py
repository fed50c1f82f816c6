"""The worker's end of the message channel: JSON texts of `protocol`, with an optional File beside them."""

import asyncio
from typing import Any

import clutch_worker
import js
from pyodide.ffi import create_proxy

from clutch import protocol
from clutch.engine.control import SharedMark


class AtomicMark:
    """The page's stop mark: a word of shared memory a session. Reading one is one FFI call."""

    def __init__(self, words: Any) -> None:
        self._words = words

    def read(self, session: int) -> int:
        """Return the highest request that the page has stopped in a session."""
        return int(self._words[session])


class Port:
    """Receives requests in order and posts events.

    Args:
        early: a JS array of the message events so far; the first carries the mark, see `ui/engine_client.py`.
    """

    def __init__(self, early: Any) -> None:
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        mark = early[0].data.mark
        self.shared_mark: SharedMark | None = AtomicMark(js.Int32Array.new(mark)) if mark else None
        for i in range(1, len(early)):
            self._inbox.put_nowait(early[i].data)
        # The handler lives as long as the worker.
        js.self.onmessage = create_proxy(lambda event: self._inbox.put_nowait(event.data))

    async def receive(self) -> tuple[dict[str, object], object]:
        """Return the next message and the File beside it, or None.

        Raises:
            RequestError: it is not a message of the protocol.
        """
        data = await self._inbox.get()
        return protocol.decode(protocol.REQUESTS, str(data.json)), getattr(data, "file", None)

    def send(self, kind: str, **fields: object) -> None:
        """Post an event."""
        clutch_worker.post(protocol.encode(protocol.EVENTS, kind, **fields))
