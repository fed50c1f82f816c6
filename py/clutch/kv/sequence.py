"""A sequence: the committed tokens of a session, the pages that hold their keys and values, and what can be reused."""

from collections.abc import Iterator
from collections.abc import Sequence as Tokens

from clutch.kv.pool import PAGE_POSITIONS, Pool
from clutch.kv.table import BlockTable, PageCopy


class Sequence:
    """Committed tokens and their pages; `len(token_ids) == table.length` after every request.

    Args:
        pool: where the pages come from.
        slot: the session's place in the GPU's tables.
    """

    def __init__(self, pool: Pool, slot: int) -> None:
        self.pool = pool
        self.slot = slot
        self.token_ids: list[int] = []
        self.table = BlockTable(pool)
        # Of the full pages, in order.
        self._keys: list[bytes] = []
        pool.join(self)

    @property
    def length(self) -> int:
        """How many tokens are committed."""
        return len(self.token_ids)

    def match(self, token_ids: Tokens[int]) -> int:
        """Return how many leading tokens of `token_ids` already have their keys and values, here or in the pool.

        Never all of them: the last token is always computed again, because its logits are needed.
        """
        own = self._own(token_ids)
        n_pages = own // PAGE_POSITIONS + sum(1 for _ in self._in_pool(own, token_ids))
        return max(own, n_pages * PAGE_POSITIONS)

    def begin(self, token_ids: Tokens[int], *, reuse: bool = True) -> None:
        """Keep what `token_ids` begins with, and forget the rest; without `reuse` forget all.

        What only the pool has is taken over by `extend`.
        """
        self.rewind(self._own(token_ids) if reuse else 0)

    def extend(self, token_ids: Tokens[int]) -> None:
        """Take over the pages that the pool has of what follows in `token_ids`, as far as it has them.

        Call it behind `begin`, and again at any time: others may have computed more.
        """
        for key, page in self._in_pool(self.length, token_ids):
            # The pool has the whole of the page that may be only partly filled here.
            start = self.length // PAGE_POSITIONS * PAGE_POSITIONS
            self.rewind(start)
            self.table.adopt(page)
            self.token_ids += token_ids[start : start + PAGE_POSITIONS]
            self._keys.append(key)

    def reserve(self, n_positions: int) -> PageCopy | None:
        """Hold pages for `n_positions`; see `BlockTable.reserve`.

        Raises:
            PoolExhausted: the pool has too few; nothing changes.
        """
        return self.table.reserve(n_positions)

    def commit(self, token_ids: Tokens[int]) -> None:
        """Keep the next positions: their keys and values are computed. Pages that are full now can be reused."""
        self.token_ids += token_ids
        self.table.commit(len(token_ids))
        while (end := (len(self._keys) + 1) * PAGE_POSITIONS) <= self.length:
            key, first = self._key_before(end - PAGE_POSITIONS)
            key = self.pool.index.chained(key, self.token_ids[first:end])
            self.pool.index.add(key, self.table.pages[len(self._keys)])
            self._keys.append(key)

    def rewind(self, length: int) -> None:
        """Forget everything behind the first `length` tokens."""
        del self.token_ids[length:]
        del self._keys[length // PAGE_POSITIONS :]
        self.table.truncate(length)

    def fork(self, slot: int) -> "Sequence":
        """Return a sequence of the same tokens on the same pages."""
        other = Sequence(self.pool, slot)
        other.token_ids = list(self.token_ids)
        other.table = self.table.fork()
        other._keys = list(self._keys)
        return other

    def shed(self) -> bool:
        """Give the last page back: its tokens are computed again when they are needed."""
        if not self.table.pages:
            return False
        self.rewind(min(self.length, (len(self.table.pages) - 1) * PAGE_POSITIONS))
        return True

    def close(self) -> None:
        """Drop every page."""
        self.rewind(0)
        self.pool.part(self)

    def _own(self, token_ids: Tokens[int]) -> int:
        own, most = self.token_ids, min(self.length, len(token_ids) - 1)
        start = 0
        # A page at a time: thousands of tokens are compared for every request.
        while start < most and own[start : start + PAGE_POSITIONS] == token_ids[start : start + PAGE_POSITIONS]:
            start += PAGE_POSITIONS
        return next((i for i in range(start, most) if own[i] != token_ids[i]), most)

    def _in_pool(self, position: int, token_ids: Tokens[int]) -> Iterator[tuple[bytes, int]]:
        """Yield (key, page) of the full pages that the pool has of `token_ids`, from the one of `position` on.

        Up to `position` they are this sequence's own tokens. Their last token is never in it, see `match`.
        """
        key, end = self._key_before(position)
        while (end := end + PAGE_POSITIONS) < len(token_ids):
            key = self.pool.index.chained(key, token_ids[end - PAGE_POSITIONS : end])
            page = self.pool.index.find(key)
            if page is None:
                return
            yield key, page

    def _key_before(self, position: int) -> tuple[bytes, int]:
        """Return the key of the last full page before `position`, and where that page ends."""
        n_pages = position // PAGE_POSITIONS
        return (self._keys[n_pages - 1] if n_pages else self.pool.index.root), n_pages * PAGE_POSITIONS
