"""What the pool looks like, in numbers and as one character a page (`protocol.CELL_FREE` and those beside it)."""

from collections.abc import Mapping

from clutch.kv.pool import PAGE_POSITIONS, Pool
from clutch.kv.table import BlockTable
from clutch.protocol import CELL_CACHED, CELL_FREE, CELLS_OWN, CELLS_SHARED


def gauges(pool: Pool, tables: Mapping[int, BlockTable]) -> dict[str, object]:
    """Return the fields of a `pool` event.

    Args:
        pool: of the model.
        tables: of all sessions, by number.
    """
    cells = [CELL_FREE] * pool.n_pages
    for page in pool.unheld():
        if page in pool.index:
            cells[page] = CELL_CACHED
    filled: dict[int, int] = {}
    for session, table in sorted(tables.items(), reverse=True):
        for entry, page in enumerate(table.pages):
            in_page = min(PAGE_POSITIONS, max(0, table.length - entry * PAGE_POSITIONS))
            filled[page] = max(filled.get(page, 0), in_page)
            cells[page] = (CELLS_SHARED if pool.references(page) > 1 else CELLS_OWN)[session]
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
