"""What the pool looks like, in numbers and as one character a page.

"." free, "-" cached; "0" to "f" held by that session alone; "A" to "P" shared, by the lowest session of those.
"""

from collections.abc import Mapping

from clutch.kv.pool import PAGE_POSITIONS, Pool
from clutch.kv.table import BlockTable

_OWN = "0123456789abcdef"
_SHARED = "ABCDEFGHIJKLMNOP"


def gauges(pool: Pool, tables: Mapping[int, BlockTable]) -> dict[str, object]:
    """Return the fields of a `pool` event.

    Args:
        pool: of the model.
        tables: of all sessions, by number.
    """
    cells = ["."] * pool.n_pages
    for page in pool.unheld():
        if page in pool.index:
            cells[page] = "-"
    filled: dict[int, int] = {}
    for session, table in sorted(tables.items(), reverse=True):
        for entry, page in enumerate(table.pages):
            in_page = min(PAGE_POSITIONS, max(0, table.length - entry * PAGE_POSITIONS))
            filled[page] = max(filled.get(page, 0), in_page)
            cells[page] = (_SHARED if pool.references(page) > 1 else _OWN)[session]
    used = pool.n_pages - pool.n_free - pool.n_cached
    return {
        "page_positions": PAGE_POSITIONS,
        "total": pool.n_pages,
        "used": used,
        "shared": pool.n_shared,
        "cached": pool.n_cached,
        "free": pool.n_free,
        "utilisation": sum(filled.values()) / (used * PAGE_POSITIONS) if used else None,
        "cells": "".join(cells),
    }
