"""When the page takes its worker for hung, counted in ticks."""

import pytest

from ui import controls, pulse
from ui.pulse import Pulse, Restarts

ALIVE = sorted({*controls.IDLE, *controls.BUSY} - {"crashed", "unsupported"})


def ticks_to_hang(beats, state, most=50):
    """Return how many silent ticks it takes, or None."""
    return next((n for n in range(1, most) if beats.tick(state)), None)


@pytest.mark.parametrize("state", [state for state in ALIVE if state != "stopping"])
def test_a_silent_worker_hangs_after_its_limit(state):
    beats = Pulse()
    beats.tick(state)
    is_slow = state in ("starting", "loading", "lost")
    assert ticks_to_hang(beats, state) == (pulse.MISSED_LIMIT_LOADING if is_slow else pulse.MISSED_LIMIT)


@pytest.mark.parametrize("state", ["crashed", "unsupported"])
def test_without_a_worker_nothing_hangs(state):
    assert ticks_to_hang(Pulse(), state) is None


def test_one_word_in_time_is_enough():
    beats = Pulse()
    for _ in range(5):
        for _ in range(pulse.MISSED_LIMIT):
            assert not beats.tick("generating")
        beats.hear()


def test_a_page_that_was_away_counts_anew():
    beats = Pulse()
    for _ in range(pulse.MISSED_LIMIT):
        assert not beats.tick("ready")
    beats.forgive()
    assert not beats.tick("ready")
    assert ticks_to_hang(beats, "ready") == pulse.MISSED_LIMIT


def test_a_slow_stop_is_said_and_forgotten_when_it_ends():
    beats = Pulse()
    slow = []
    for _ in range(3):
        beats.tick("stopping")
        slow.append(beats.is_stop_slow)
    assert slow == [False, True, True]
    beats.tick("ready")
    assert not beats.is_stop_slow


def test_a_stop_that_is_heard_never_hangs():
    beats = Pulse()
    for _ in range(100):
        beats.hear()
        assert not beats.tick("stopping")


def test_an_unanswered_stop_has_less_patience_with_silence():
    beats = Pulse()
    for _ in range(pulse.STOP_LIMIT):
        beats.hear()
        assert not beats.tick("stopping")
    assert ticks_to_hang(beats, "stopping") == pulse.MISSED_LIMIT_AFTER_STOP


def test_one_restart_a_minute():
    restarts = Restarts()
    at_ms = (0, 1000, pulse.RESTART_PAUSE_MS - 1, pulse.RESTART_PAUSE_MS, pulse.RESTART_PAUSE_MS + 1)
    assert [restarts.take(now) for now in at_ms] == [True, False, False, True, False]
