"""One engine worker in an empty page, driven through `kv_bench.js`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page

from tests.bench.stage import bring_script

# Any document of the site will do; this one brings no script along.
_DOCUMENT = "static/strings/en.json"

Found = dict[str, Any]


class KvClient:
    """Calls of `window.kvBench`; an error of the engine is a playwright Error that names it.

    Args:
        page: an empty page of a context with nothing else in it.
        url: of the site.
        timeout_s: for each call.
    """

    def __init__(self, page: Page, url: str, timeout_s: float) -> None:
        self._page = page
        page.goto(url + _DOCUMENT)
        bring_script(page, "kv_bench.js")
        self.adapter: Found = self._call("start", timeout_s * 1000)
        self._is_loaded = False

    def load(self, url: str, **fields: object) -> Found:
        """Load a model in place of the one before; return `model` and `memory` of the `loaded` event."""
        if self._is_loaded:
            self._call("unload")
        # The page's addresses are relative to the site, not to this document.
        found: Found = self._call("load", {"url": url, **fields})
        self._is_loaded = True
        return found

    def generate(self, session: int, max_tokens: int, **fields: object) -> Found:
        """Ask and return what `generate` of the script says."""
        found: Found = self._call("generate", {"session": session, "max_tokens": max_tokens, **fields})
        return found

    def together(self, requests: Sequence[Found]) -> list[Found]:
        """Ask in several sessions at once."""
        found: list[Found] = self._call("together", list(requests))
        return found

    def workload(self, sessions: Sequence[Sequence[Found]]) -> Found:
        """Let sessions 0, 1, ... have their turns, all at once."""
        found: Found = self._call("workload", [list(turns) for turns in sessions])
        return found

    def reset(self) -> None:
        """Empty session 0, and what the pool still knows."""
        self._call("reset", 0)

    @contextmanager
    def open(self, session: int, source: int | None = None) -> Iterator[None]:
        """Have a session open for a while."""
        self._call("open", {"session": session} if source is None else {"session": session, "source": source})
        yield
        self._call("close", session)

    @contextmanager
    def sessions(self, count: int) -> Iterator[range]:
        """Have sessions 0 to `count` - 1 open, all empty."""
        self.reset()
        for session in range(1, count):
            self._call("open", {"session": session})
        yield range(count)
        for session in range(1, count):
            self._call("close", session)
        self.reset()

    def _call(self, name: str, argument: object = None) -> Any:
        return self._page.evaluate(f"how => window.kvBench.{name}(how)", argument)
