"""The times of a request, with a clock that stands where it is put."""

import pytest

from clutch.engine.stats import Stats


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_without_a_token_there_is_no_time_to_it(clock):
    stats = Stats(clock)
    clock.now += 0.5
    times = stats.to_wire()
    assert times["total_ms"] == pytest.approx(500)
    assert times["decode_ms"] == 0
    assert (times["ttft_ms"], times["step_ms"], times["tokens_per_s"]) == (None, None, None)


def test_one_token_has_no_rate(clock):
    stats = Stats(clock)
    clock.now += 0.2
    stats.token()
    times = stats.to_wire()
    assert times["ttft_ms"] == pytest.approx(200)
    assert (times["decode_ms"], times["step_ms"], times["tokens_per_s"]) == (0, None, None)


def test_the_rate_is_of_the_tokens_after_the_first(clock):
    stats = Stats(clock)
    clock.now += 1
    for _ in range(5):
        stats.token()
        clock.now += 0.01
    times = stats.to_wire()
    assert times["ttft_ms"] == pytest.approx(1000)
    assert times["decode_ms"] == pytest.approx(40)
    assert times["step_ms"] == pytest.approx(10)
    assert times["tokens_per_s"] == pytest.approx(100)
    assert times["total_ms"] == pytest.approx(1050)


def test_a_clock_that_stands_still_divides_by_nothing(clock):
    stats = Stats(clock)
    stats.token()
    stats.token()
    assert stats.to_wire()["tokens_per_s"] is None
