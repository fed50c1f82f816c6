"""Percentiles are samples, by nearest rank."""

import pytest

from tests.bench.statistics import Spread, percentile, spread


@pytest.mark.parametrize(("percent", "expected"), [(1, 1), (50, 10), (95, 19), (96, 20), (100, 20)])
def test_percentile_of_twenty(percent, expected):
    assert percentile([*range(20, 0, -1)], percent) == expected


def test_p95_of_two_hundred_lets_ten_be_slower():
    samples = [1.0] * 190 + [9.0] * 10
    assert spread(samples) == Spread(200, 1.0, 1.0, 9.0)
    assert spread([*samples, 9.0]) == Spread(201, 1.0, 9.0, 9.0)


def test_one_sample_is_everything():
    assert spread([3.5]) == Spread(1, 3.5, 3.5, 3.5)


def test_no_sample_is_no_number():
    assert spread([]) is None
