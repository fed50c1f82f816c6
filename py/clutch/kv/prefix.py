"""The prefix index: which page holds the keys and values of which 16 tokens, given everything before them.

Keys and values depend on all tokens up to their own, so a page's key is a hash chained over the whole prefix (Kwon et
al. 2023, section 4.3 shares pages in this way), begun with the identity of the model.
"""

import hashlib
from array import array
from collections.abc import Sequence


class PrefixIndex:
    """Pages by key; one page a key, the first that had it.

    Args:
        identity: of the model and of how its keys and values are kept.
    """

    def __init__(self, identity: str) -> None:
        self.root = hashlib.sha256(identity.encode()).digest()
        self._pages: dict[bytes, int] = {}
        self._keys: dict[int, bytes] = {}

    def __contains__(self, page: int) -> bool:
        return page in self._keys

    @staticmethod
    def chained(parent: bytes, token_ids: Sequence[int]) -> bytes:
        """Return the key of a page that holds `token_ids`, behind the page with the key `parent` (or the root)."""
        return hashlib.sha256(parent + array("I", token_ids).tobytes()).digest()

    def add(self, key: bytes, page: int) -> None:
        """Offer a full, committed page; nothing happens when another page has that key already."""
        if key not in self._pages and page not in self._keys:
            self._pages[key] = page
            self._keys[page] = key

    def find(self, key: bytes) -> int | None:
        """Return the page with that key, or None."""
        return self._pages.get(key)

    def remove(self, page: int) -> None:
        """Forget a page, if it is known: its content changes, or it is given away."""
        key = self._keys.pop(page, None)
        if key is not None:
            del self._pages[key]
