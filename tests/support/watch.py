"""Notes what a page must never do: console errors, uncaught errors, requests that leave the server."""

import re
from collections.abc import Iterable

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

_LOCAL = ("blob:", "data:")


class Watch:
    """Listens to every page and worker of one context.

    Args:
        context: what to listen to.
        origin: the server's origin, with its slash at the end.
    """

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.faults: list[str] = []
        self.requests: list[str] = []
        self._origin = origin
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def take(self, allowed: Iterable[str] = ()) -> list[str]:
        """Return the faults since the last call, less those that match one of the `allowed` patterns."""
        faults, self.faults = self.faults, []
        return [fault for fault in faults if not any(re.search(pattern, fault) for pattern in allowed)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"console error: {message.text} {message.location.get('url', '')}".rstrip())

    def _on_error(self, error: WebError) -> None:
        self.faults.append(f"uncaught error: {error.error}")

    def _on_request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((self._origin, *_LOCAL)):
            self.faults.append(f"request to another origin: {request.url}")
