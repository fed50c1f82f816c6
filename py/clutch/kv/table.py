"""The block table of a session: which page holds which 16 positions, and how many positions are committed."""

from dataclasses import dataclass

from clutch.errors import PoolExhausted
from clutch.kv.pool import PAGE_POSITIONS, Pool


@dataclass(frozen=True)
class PageCopy:
    """What the GPU must copy before a page is written: somebody else reads on in the source."""

    source: int
    target: int


class BlockTable:
    """Pages of one session in order of position.

    `length` counts committed positions: those whose keys and values are computed and kept. Positions behind it may
    have been written by steps that were then discarded; attention never reads beyond the position it stands at, so
    they need no clearing. A page that others hold or can find is never written: who wants to go on in the middle of one
    goes on in a copy.

    Args:
        pool: where the pages come from.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.pages: list[int] = []
        self.length = 0
        self._n_told = 0

    def reserve(self, n_positions: int) -> PageCopy | None:
        """Hold pages for at least `n_positions`, and make the next position's page this table's own.

        Returns:
            What must be copied for that; at most one page.

        Raises:
            PoolExhausted: the pool has too few; nothing changes.
        """
        missing = max(0, _pages_for(n_positions) - len(self.pages))
        entry = self.length // PAGE_POSITIONS
        if self.length % PAGE_POSITIONS == 0 or self._is_own(self.pages[entry]):
            if missing:
                self.pages += self._pool.acquire(missing)
            return None
        page = self.pages[entry]
        try:
            target, *fresh = self._pool.acquire(1 + missing)
        except PoolExhausted:
            if self._pool.references(page) > 1:
                raise
            # Nobody reads it: better overwritten than refused.
            self.pages += self._pool.acquire(missing)
            self._pool.index.remove(page)
            return None
        self._pool.release(page)
        self.pages[entry] = target
        self.pages += fresh
        self._n_told = min(self._n_told, entry)
        return PageCopy(page, target)

    def commit(self, n_positions: int) -> None:
        """Declare the next `n_positions` computed and kept."""
        self.length += n_positions
        assert self.length <= len(self.pages) * PAGE_POSITIONS, (self.length, self.pages)

    def adopt(self, page: int) -> None:
        """Share a full page that holds the next 16 positions; only at the end of a full page."""
        assert self.length % PAGE_POSITIONS == 0, self.length
        self._pool.retain(page)
        self._drop_behind(self.length // PAGE_POSITIONS)
        self.pages.append(page)
        self.length += PAGE_POSITIONS

    def truncate(self, length: int) -> None:
        """Keep the first `length` committed positions and the pages they need."""
        assert length <= self.length, (length, self.length)
        self.length = length
        self._drop_behind(_pages_for(length))

    def fork(self) -> "BlockTable":
        """Return a table of the same pages."""
        other = BlockTable(self._pool)
        other.pages = self.pages[: _pages_for(self.length)]
        other.length = self.length
        for page in other.pages:
            self._pool.retain(page)
        return other

    def take_changes(self) -> tuple[int, list[int]]:
        """Return (first entry, pages) of what changed since the last call, for the GPU's copy of the table."""
        first, self._n_told = self._n_told, len(self.pages)
        return first, self.pages[first:]

    def _is_own(self, page: int) -> bool:
        """Whether a page can be written: nobody else holds it, and nobody can find it."""
        return self._pool.references(page) == 1 and page not in self._pool.index

    def _drop_behind(self, n_pages: int) -> None:
        while len(self.pages) > n_pages:
            self._pool.release(self.pages.pop())
        self._n_told = min(self._n_told, n_pages)


def _pages_for(n_positions: int) -> int:
    return -(-n_positions // PAGE_POSITIONS)
