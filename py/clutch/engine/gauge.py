"""Shows the pool to the page: at once when a request ends, and a few times a second while something is computed."""

from collections.abc import Callable

from clutch.engine.platform import Platform
from clutch.kv.gauges import gauges
from clutch.kv.pool import Pool
from clutch.kv.table import BlockTable

LOOK_SECONDS = 0.25


class PoolGauge:
    """Sends `pool` events.

    Args:
        platform: the outside world.
        pool: returns the pool; None without a model on a GPU.
        tables: returns the block tables of the sessions, by number.
    """

    def __init__(
        self, platform: Platform, pool: Callable[[], Pool | None], tables: Callable[[], dict[int, BlockTable]]
    ) -> None:
        self._platform = platform
        self._pool = pool
        self._tables = tables
        self._next_look = 0.0

    def look(self) -> None:
        """Send one unless the last is only a moment old."""
        if self._platform.clock() >= self._next_look:
            self.show()

    def show(self) -> None:
        """Send one."""
        pool = self._pool()
        if pool is not None:
            self._platform.send("pool", **gauges(pool, self._tables()))
            self._next_look = self._platform.clock() + LOOK_SECONDS
