"""Sampling: the same tokens as the definition in `clutch/sampling/reference.py`."""

import numpy as np
import pytest

from clutch.gpu.kernels import kernel
from tests.support import kernel_reference
from tests.support.kernel_reference import Step

VOCAB, CONTEXT = 613, 40
RNG = np.random.default_rng(13)

STEPS = [
    pytest.param(Step(), id="greedy"),
    pytest.param(Step(temperature=0.8, seed_low=1), id="temperature"),
    pytest.param(Step(temperature=1.3, seed_low=2, seed_high=9, top_k=5), id="top-k"),
    pytest.param(Step(temperature=0.9, seed_low=3, top_p=0.7), id="top-p"),
    pytest.param(Step(temperature=1.5, seed_low=4, min_p=0.2), id="min-p"),
    pytest.param(Step(temperature=1.1, seed_low=5, top_k=40, top_p=0.9, min_p=0.01), id="all"),
    pytest.param(Step(temperature=2.0, seed_low=6, top_k=1), id="top-1"),
]


def sampled(bench, logits, step):
    """Return the four words of the result and the written token, after comparing the untouched rest."""
    sample = kernel("sample", VOCAB=VOCAB, CONTEXT=CONTEXT)
    tokens = np.full(CONTEXT, 123_456, np.uint32)
    buffers = [logits, tokens, np.zeros(4, np.uint32)]
    expected = [data.copy().view(np.uint8) for data in buffers]
    kernel_reference.compute(sample, expected, step)
    found = bench.run_code(
        sample.source(kernel_root()),
        [data.view(np.uint8) for data in buffers],
        [access for _, access in sample.spec.bindings],
        constants=dict(sample.constants),
        step=step,
    )
    assert (found[1] == expected[1]).all()
    want, have = expected[2].view(np.uint32), found[2].view(np.uint32)
    assert have[0] == want[0]
    assert have[3] == want[3]
    np.testing.assert_allclose(have[1:3].view(np.float32), want[1:3].view(np.float32), atol=1e-4)
    return have[0]


def kernel_root():
    from tests.kernels.conftest import ROOT

    return ROOT / "wgsl"


@pytest.mark.parametrize("step", STEPS)
def test_sample_agrees_with_its_definition(bench, step):
    from dataclasses import replace

    drawn = set()
    for position in (0, 7, 23):
        logits = (3 * RNG.normal(size=VOCAB) - 5).astype(np.float32)
        drawn.add(sampled(bench, logits, replace(step, position=position, n_tokens=3)))
    assert len(drawn) > 1


def test_ties_go_to_the_lowest_index(bench):
    logits = np.zeros(VOCAB, np.float32)
    logits[[40, 400, 612]] = 2
    assert sampled(bench, logits, Step()) == 40


def test_top_k_keeps_all_that_tie(bench):
    logits = np.full(VOCAB, -50, np.float32)
    logits[[3, 30, 300]] = 1.0
    drawn = {sampled(bench, logits, Step(temperature=1.0, top_k=2, seed_low=seed)) for seed in range(12)}
    assert drawn == {3, 30, 300}


def test_a_token_behind_the_context_is_not_written(bench):
    logits = RNG.normal(size=VOCAB).astype(np.float32)
    sampled(bench, logits, Step(position=CONTEXT - 1, n_tokens=1))
