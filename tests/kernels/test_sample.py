"""Sampling: the same tokens as the definition in `clutch/sampling/reference.py`."""

import numpy as np
import pytest

from clutch.gpu.kernels import kernel
from tests.kernels.conftest import ROOT
from tests.kernels.sequences import N_TOKENS, THREE
from tests.support import kernel_reference
from tests.support.kernel_reference import CANDIDATE, candidate_of, one

VOCAB, CONTEXT = 613, 40
RNG = np.random.default_rng(13)

SETTINGS = {
    "greedy": {},
    "temperature": {"temperature": 0.8, "seed_low": 1},
    "top-k": {"temperature": 1.3, "seed_low": 2, "seed_high": 9, "top_k": 5},
    "top-p": {"temperature": 0.9, "seed_low": 3, "top_p": 0.7},
    "min-p": {"temperature": 1.5, "seed_low": 4, "min_p": 0.2},
    "all": {"temperature": 1.1, "seed_low": 5, "top_k": 40, "top_p": 0.9, "min_p": 0.01},
    "top-1": {"temperature": 2.0, "seed_low": 6, "top_k": 1},
}


def candidates_of(logits, run=7):
    """Return what lm_head leaves for runs of so many logits."""
    rows = [[candidate_of(row[i : i + run], i) for i in range(0, VOCAB, run)] for row in logits]
    return np.array(rows, CANDIDATE)


def sampled(bench, logits, step):
    """Return the token of each sequence, after comparing results and what is written with the definition."""
    candidates = candidates_of(logits.reshape(-1, VOCAB))
    sample = kernel("sample", VOCAB=VOCAB, CONTEXT=CONTEXT, CANDIDATES=candidates.shape[1])
    tokens = np.full(N_TOKENS, 123_456, np.uint32)
    buffers = [logits, candidates, tokens, np.zeros(4 * len(step.sequences), np.uint32)]
    expected = [data.copy().reshape(-1).view(np.uint8) for data in buffers]
    kernel_reference.compute(sample, expected, step)
    found = bench.run_code(
        sample.source(ROOT / "wgsl"),
        [data.reshape(-1).view(np.uint8) for data in buffers],
        [access for _, access in sample.spec.bindings],
        step=step,
        grid=(1, len(step.sequences)),
    )
    assert (found[2] == expected[2]).all()
    want, have = (data[3].view(np.uint32).reshape(-1, 4) for data in (expected, found))
    assert (have[:, [0, 3]] == want[:, [0, 3]]).all()
    statistics = [np.ascontiguousarray(words[:, 1:3]).view(np.float32) for words in (have, want)]
    np.testing.assert_allclose(*statistics, atol=1e-4)
    return have[:, 0].tolist()


def random_logits(*shape):
    return (3 * RNG.normal(size=shape) - 5).astype(np.float32)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_sample_agrees_with_its_definition(bench, settings):
    drawn = [sampled(bench, random_logits(VOCAB), one(position, 3, **settings)) for position in (0, 7, 23)]
    assert any(tokens != drawn[0] for tokens in drawn)


def test_each_sequence_samples_from_its_own_logits_in_its_own_way(bench):
    for _ in range(3):
        sampled(bench, random_logits(3, VOCAB), THREE)


def test_ties_go_to_the_lowest_index(bench):
    logits = np.zeros(VOCAB, np.float32)
    logits[[40, 400, 612]] = 2
    assert sampled(bench, logits, one()) == [40]


def test_top_k_keeps_all_that_tie(bench):
    logits = np.full(VOCAB, -50, np.float32)
    logits[[3, 30, 300]] = 1.0
    drawn = {sampled(bench, logits, one(temperature=1.0, top_k=2, seed_low=seed))[0] for seed in range(12)}
    assert drawn == {3, 30, 300}


def test_a_token_behind_the_context_is_not_written(bench):
    sampled(bench, random_logits(VOCAB), one(CONTEXT - 1, 1))
