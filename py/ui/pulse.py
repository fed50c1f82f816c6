"""Whether the worker is alive, counted in ticks of the page's own timer. Imports on CPython for tests.

Ticks and not wall time: a page that is hidden, frozen or asleep does not tick either, so it raises no false alarm.
"""

TICK_MS = 1000

# So many ticks without a word, and the worker hangs. The worker says something each second (`heartbeat`).
MISSED_LIMIT = 10
# Starting Python and reading a model hold the worker's event loop up: 8 s on two busy cores (measured).
MISSED_LIMIT_LOADING = 30
_LOADING = ("starting", "loading", "lost")
# The same when a Stop has gone unanswered for STOP_LIMIT ticks: somebody is waiting.
STOP_LIMIT = 10
MISSED_LIMIT_AFTER_STOP = 3
# From this tick on, a Stop is slow enough to say so.
SLOW_STOP = 2

RESTART_PAUSE_MS = 60_000

# No worker is there, or none is needed.
_WITHOUT_WORKER = ("crashed", "unsupported")


class Pulse:
    """Counts the ticks in which the worker was silent, and those since Stop was clicked."""

    def __init__(self):
        self._is_heard = True
        self._n_missed = 0
        self._n_stopping = 0

    @property
    def is_stop_slow(self):
        """Whether a Stop is waiting for longer than a visitor should wonder about."""
        return self._n_stopping >= SLOW_STOP

    def hear(self):
        """Note a message of the worker."""
        self._is_heard = True

    def forgive(self):
        """Begin to count anew: the worker is new, or the page was hidden or frozen."""
        self._is_heard = True
        self._n_missed = 0

    def tick(self, state):
        """Count one tick in the `state` that is common to all chats; return whether the worker hangs."""
        self._n_stopping = self._n_stopping + 1 if state == "stopping" else 0
        self._n_missed = 0 if self._is_heard or state in _WITHOUT_WORKER else self._n_missed + 1
        self._is_heard = False
        return self._n_missed >= self._limit(state)

    def _limit(self, state):
        if state in _LOADING:
            return MISSED_LIMIT_LOADING
        return MISSED_LIMIT_AFTER_STOP if self._n_stopping >= STOP_LIMIT else MISSED_LIMIT


class Restarts:
    """Allows one automatic restart a minute, so that a worker that always dies is not started for ever."""

    def __init__(self):
        self._last_ms = None

    def take(self, now_ms):
        """Return whether the worker may be restarted now, and count it if so."""
        if self._last_ms is not None and now_ms - self._last_ms < RESTART_PAUSE_MS:
            return False
        self._last_ms = now_ms
        return True
