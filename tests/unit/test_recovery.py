"""Two recoveries in five minutes, not three; a refused one does not count."""

from clutch.engine.recovery import MOST, WITHIN_SECONDS, Recoveries


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_two_in_five_minutes_then_no_more():
    recoveries = Recoveries(Clock())
    assert [recoveries.begin() for _ in range(4)] == [True, True, False, False]
    assert (MOST, WITHIN_SECONDS) == (2, 300)


def test_five_minutes_after_the_first_there_is_another():
    clock = Clock()
    recoveries = Recoveries(clock)
    assert recoveries.begin()
    clock.now += 200
    assert recoveries.begin()
    clock.now += 99.5
    assert not recoveries.begin()
    clock.now += 0.5
    # The first is five minutes old, the second is not.
    assert recoveries.begin()
    assert not recoveries.begin()


def test_what_was_refused_delays_nothing():
    clock = Clock()
    recoveries = Recoveries(clock)
    assert recoveries.begin() and recoveries.begin()
    clock.now += 299
    assert not recoveries.begin()
    clock.now += 1
    assert recoveries.begin() and recoveries.begin()
