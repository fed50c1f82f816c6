"""The definition of sampling, checked by hand and by counting."""

import math

import pytest

from clutch.sampling import reference
from clutch.sampling.params import SamplingParams
from clutch.sampling.reference import entropy, log_probability, sample, threshold

LOGITS = [math.log(p) for p in (0.1, 0.4, 0.2, 0.25, 0.05)]


def kept(logits=LOGITS, temperature=1.0, **params):
    lowest = threshold(logits, SamplingParams(temperature=temperature, **params))
    return [token_id for token_id, logit in enumerate(logits) if logit >= lowest]


def draws(n, params, logits=LOGITS):
    return [sample(logits, params, position) for position in range(n)]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"top_k": 1}, [1]),
        ({"top_k": 3}, [1, 2, 3]),
        ({"top_k": 5}, [0, 1, 2, 3, 4]),
        ({"top_k": 99}, [0, 1, 2, 3, 4]),
        ({"top_p": 0.39}, [1]),
        ({"top_p": 0.41}, [1, 3]),
        ({"top_p": 0.84}, [1, 2, 3]),
        ({"top_p": 0.86}, [0, 1, 2, 3]),
        ({"top_p": 1e-9}, [1]),
        ({"min_p": 0.51}, [1, 3]),
        ({"min_p": 0.49}, [1, 2, 3]),
        ({"min_p": 1.0}, [1]),
        ({"top_k": 2, "top_p": 0.61}, [1]),  # 0.40 / 0.65 = 0.615 is its share within the top two
        ({"top_k": 2, "top_p": 0.62}, [1, 3]),
        ({"top_k": 4, "min_p": 0.3}, [1, 2, 3]),
        ({"top_p": 0.41, "min_p": 0.1}, [1, 3]),
    ],
)
def test_kept_tokens(params, expected):
    assert kept(**params) == expected


def test_ties_are_kept_together():
    assert kept([1.0, 2.0, 2.0, 2.0, 0.0], top_k=2) == [1, 2, 3]
    assert kept([0.0, 0.0, 0.0, 0.0], top_p=0.3) == [0, 1, 2, 3]


def test_temperature_moves_the_shares_but_not_the_ranks():
    assert kept(temperature=0.25, top_p=0.8) == [1]
    assert kept(temperature=4.0, top_p=0.8) == [0, 1, 2, 3]
    assert kept(temperature=0.25, min_p=0.5) == [1]
    assert kept(temperature=4.0, min_p=0.6) == [0, 1, 2, 3]


def test_greedy_takes_the_first_of_equals_and_ignores_the_rest():
    assert sample([1.0, 3.0, 3.0], SamplingParams(top_k=1, seed=9), position=4) == 1


@pytest.mark.parametrize(
    ("params", "logits", "shares"),
    [
        ({"temperature": 1.0}, LOGITS, [0.1, 0.4, 0.2, 0.25, 0.05]),
        ({"temperature": 1.0, "top_k": 2}, LOGITS, [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0]),
        ({"temperature": 0.5}, LOGITS, [p * p / 0.285 for p in (0.1, 0.4, 0.2, 0.25, 0.05)]),
    ],
)
def test_frequencies_follow_the_softmax(params, logits, shares):
    n = 4000
    tokens = draws(n, SamplingParams(seed=1234, **params), logits)
    chi_square = 0.0
    for token_id, share in enumerate(shares):
        count = tokens.count(token_id)
        assert share or not count
        chi_square += (count - n * share) ** 2 / (n * share) if share else 0
    assert chi_square < 23.5  # 4 degrees of freedom, p = 0.0001


def test_a_draw_is_a_function_of_seed_and_position():
    params = SamplingParams(temperature=1.0, seed=5)
    assert draws(50, params) == draws(50, params)
    assert draws(50, params) != draws(50, SamplingParams(temperature=1.0, seed=6))
    assert [sample(LOGITS, params, 30)] == draws(31, params)[30:]


def test_equal_scores_go_to_the_lowest_id(monkeypatch):
    monkeypatch.setattr(reference, "uniform", lambda *_: 0.5)
    assert sample([0.0, 1.0, 1.0], SamplingParams(temperature=1.0), 0) == 1


def test_the_lowest_temperature_still_draws():
    assert sample([0.0, 50.0, -50.0], SamplingParams(temperature=1e-300, top_p=0.9, min_p=0.1), 0) == 1


def test_log_probability_and_entropy():
    assert log_probability(LOGITS, 1) == pytest.approx(math.log(0.4), abs=1e-12)
    assert log_probability([1000.0, 1000.0], 0) == pytest.approx(-math.log(2), abs=1e-12)
    assert entropy([3.0] * 8) == pytest.approx(math.log(8), abs=1e-12)
    assert entropy([1000.0, -1000.0]) == 0
    assert entropy(LOGITS) == pytest.approx(-sum(math.exp(x) * x for x in LOGITS), abs=1e-12)
