"""The pool of KV pages: allocated once, handed out by number, reference-counted."""

from clutch.errors import PoolExhausted

PAGE_POSITIONS = 16


class Pool:
    """Free list and reference counts of `n_pages` pages; the bytes live in the GPU buffers of the layers.

    A page that nobody holds is free; a page is never owned by accident (`release` of a free page is a bug).
    """

    def __init__(self, n_pages: int) -> None:
        self.n_pages = n_pages
        self._free = list(range(n_pages - 1, -1, -1))
        self._references = [0] * n_pages

    @property
    def n_free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def acquire(self, count: int) -> list[int]:
        """Return `count` pages with one reference each; all or none.

        Raises:
            PoolExhausted: fewer pages are free.
        """
        if count > len(self._free):
            raise PoolExhausted(
                f"The answer needs {count} more KV pages, but only {len(self._free)} of {self.n_pages} are free.",
                hint="Ask for fewer tokens, or reset.",
                asked_pages=count,
                free_pages=len(self._free),
                total_pages=self.n_pages,
            )
        pages = [self._free.pop() for _ in range(count)]
        for page in pages:
            self._references[page] = 1
        return pages

    def retain(self, page: int) -> None:
        """Add a reference to a page in use."""
        assert self._references[page] > 0, page
        self._references[page] += 1

    def release(self, page: int) -> None:
        """Drop a reference; the last one frees the page."""
        assert self._references[page] > 0, page
        self._references[page] -= 1
        if self._references[page] == 0:
            self._free.append(page)
