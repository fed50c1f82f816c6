"""The pool of KV pages: allocated once, handed out by number, reference-counted, reused by content.

A page is *held* (somebody refers to it), *cached* (nobody does, but its content is indexed and may be wanted again) or
*free*. Short of free pages the pool gives away cached ones, the longest unused first; then the pages of idle holders.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from clutch.errors import PoolExhausted
from clutch.kv.prefix import PrefixIndex

PAGE_POSITIONS = 16


class Holder(Protocol):
    """Who holds pages, and can do without them while idle."""

    def shed(self) -> bool:
        """Give the last page back; False when there is none."""


class Pool:
    """Free list, reference counts and prefix index of `n_pages` pages; the bytes live in the GPU's buffers.

    Args:
        n_pages: how many.
        identity: of the model and its KV format, for the index.
    """

    def __init__(self, n_pages: int, identity: str = "") -> None:
        self.n_pages = n_pages
        self.index = PrefixIndex(identity)
        self._free = list(range(n_pages - 1, -1, -1))
        self._references = [0] * n_pages
        # Oldest first. A sequence releases its last page first, so a prefix outlives what was built on it.
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._idle: OrderedDict[Holder, None] = OrderedDict()

    @property
    def n_free(self) -> int:
        """Pages with nothing in them."""
        return len(self._free)

    @property
    def n_cached(self) -> int:
        """Pages that nobody holds, but whose content may be wanted again."""
        return len(self._cached)

    @property
    def n_shared(self) -> int:
        """Pages that more than one refers to."""
        return sum(count > 1 for count in self._references)

    def references(self, page: int) -> int:
        """Return how many refer to a page."""
        return self._references[page]

    def acquire(self, count: int) -> list[int]:
        """Return `count` pages with one reference each; all or none.

        Raises:
            PoolExhausted: there are not as many, even without the idle holders' pages.
        """
        while count > len(self._free) and (self._drop_cached() or self._shed()):
            pass
        if count > len(self._free):
            raise PoolExhausted(
                f"The answer needs {count} more KV pages, but only {len(self._free)} of {self.n_pages} are to be had.",
                hint="Stop or reset another chat, or load the model with more pool positions.",
                asked_pages=count,
                free_pages=len(self._free),
                total_pages=self.n_pages,
            )
        pages = [self._free.pop() for _ in range(count)]
        for page in pages:
            self._references[page] = 1
        return pages

    def retain(self, page: int) -> None:
        """Add a reference to a page that is held or cached."""
        assert self._references[page] > 0 or page in self._cached, page
        self._cached.pop(page, None)
        self._references[page] += 1

    def release(self, page: int) -> None:
        """Drop a reference; without any the page is cached when it is indexed, else free."""
        assert self._references[page] > 0, page
        self._references[page] -= 1
        if self._references[page] == 0:
            if page in self.index:
                self._cached[page] = None
            else:
                self._free.append(page)

    def join(self, holder: Holder) -> None:
        """Know a holder, idle for now."""
        self._idle[holder] = None

    @contextmanager
    def busy(self, holder: Holder) -> Iterator[None]:
        """Keep the pages of `holder` from being taken; afterwards it is idle, and the last to be asked."""
        self._idle.pop(holder, None)
        try:
            yield
        finally:
            self._idle[holder] = None

    def part(self, holder: Holder) -> None:
        """Know a holder no more."""
        self._idle.pop(holder, None)

    def forget_cached(self) -> None:
        """Drop the content of every page that nobody holds: after a Reset nothing of before may be found."""
        while self._drop_cached():
            pass

    def unheld(self) -> list[int]:
        """Return the pages that nobody refers to."""
        return [page for page, count in enumerate(self._references) if count == 0]

    def _drop_cached(self) -> bool:
        """Free the page that was unused for longest; False when none is cached."""
        if not self._cached:
            return False
        page, _ = self._cached.popitem(last=False)
        self.index.remove(page)
        self._free.append(page)
        return True

    def _shed(self) -> bool:
        """Let the holder that was idle for longest give a page back; False when none has any."""
        return any(holder.shed() for holder in self._idle)
