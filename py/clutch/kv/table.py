"""The block table of a session: which page holds which 16 positions, and how many positions are committed."""

from clutch.kv.pool import PAGE_POSITIONS, Pool


class BlockTable:
    """Pages of one session in order of position.

    `length` counts committed positions: those whose keys and values are computed and kept. Positions behind it may
    have been written by steps that were then discarded; attention never reads beyond the position it stands at, so
    they need no clearing.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.pages: list[int] = []
        self.length = 0

    def reserve(self, n_positions: int) -> int:
        """Hold pages for at least `n_positions` and return the number of the first new entry of `pages`.

        Raises:
            PoolExhausted: the pool has too few; nothing changes.
        """
        first_new = len(self.pages)
        missing = -(-n_positions // PAGE_POSITIONS) - first_new
        if missing > 0:
            self.pages += self._pool.acquire(missing)
        return first_new

    def commit(self, n_positions: int) -> None:
        """Declare the next `n_positions` computed and kept."""
        self.length += n_positions
        assert self.length <= len(self.pages) * PAGE_POSITIONS, (self.length, self.pages)

    def truncate(self, length: int) -> None:
        """Keep the first `length` committed positions and the pages they need."""
        assert length <= self.length, (length, self.length)
        self.length = length
        needed = -(-length // PAGE_POSITIONS)
        while len(self.pages) > needed:
            self._pool.release(self.pages.pop())
