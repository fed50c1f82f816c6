"""Attention over scattered pages: one split and many, one token and many, grouped heads."""

import numpy as np
import pytest

from clutch.gpu.kernels import kernel
from clutch.kv.layout import F16, Q8
from tests.kernels.sequences import N_PAGES, TABLE_OFFSET, THREE, block_tables
from tests.support.kernel_reference import compute, one

RNG = np.random.default_rng(11)


def at(position, n_tokens):
    return one(position, n_tokens, table_offset=TABLE_OFFSET)


SHAPES = [  # heads, KV heads, head size, splits, step
    pytest.param(4, 2, 16, 4, at(0, 1), id="first-position"),
    pytest.param(9, 3, 64, 32, at(45, 1), id="smollm2-decode"),
    pytest.param(9, 3, 64, 4, at(150, 3), id="several-pages-a-split"),
    pytest.param(3, 1, 32, 8, at(15, 19), id="prefill-over-page-ends"),
    pytest.param(2, 2, 128, 3, at(100, 2), id="no-grouping"),
    pytest.param(4, 2, 16, 2, THREE, id="three-sequences"),
]


def constants(heads, kv_heads, head_dim, splits):
    return {"N_HEADS": heads, "N_KV_HEADS": kv_heads, "HEAD_DIM": head_dim, "SPLITS": splits}


def pages(kv, kv_heads, head_dim):
    """Return the bytes of random keys and values."""
    n_heads = N_PAGES * 2 * 16 * kv_heads
    if kv == F16:
        return RNG.normal(size=n_heads * head_dim).astype(np.float16).view(np.uint8)
    values = RNG.integers(-127, 128, (n_heads, head_dim), np.int8).view(np.uint8)
    scales = RNG.uniform(0.005, 0.02, (n_heads, 1)).astype(np.float32).view(np.uint8)
    return np.hstack([values, scales]).reshape(-1)


def inputs(heads, kv_heads, head_dim, splits, n_tokens, *, kv=F16, spread=1.0):
    return [
        (spread * RNG.normal(size=(n_tokens, heads, head_dim))).astype(np.float32),
        pages(kv, kv_heads, head_dim),
        block_tables(RNG),
        np.full(n_tokens * heads * splits * (head_dim + 4), 7.5, np.float32),
    ]


@pytest.mark.parametrize("kv", [F16, Q8])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim", "splits", "step"), SHAPES)
def test_attention_partial(bench, heads, kv_heads, head_dim, splits, step, kv):
    partial = kernel("attention_partial", f"kv_{kv}", **constants(heads, kv_heads, head_dim, splits))
    buffers = inputs(heads, kv_heads, head_dim, splits, step.n_tokens, kv=kv)
    bench.check(partial, buffers, step=step, threads=heads * splits, tokens_per_workgroup=1, nmse=1e-6)


# The software adapter's subgroups have four lanes, and a lane takes eight values: heads of at most 32.
BY_SUBGROUPS = [  # heads, KV heads, head size, splits, workgroup, step
    pytest.param(4, 2, 16, 4, 32, at(0, 1), id="first-position"),
    pytest.param(6, 2, 32, 4, 64, at(150, 3), id="several-pages-a-split"),
    pytest.param(6, 1, 32, 8, 32, at(15, 19), id="many-tokens"),
    pytest.param(4, 2, 16, 2, 32, THREE, id="three-sequences"),
]


@pytest.mark.parametrize("kv", [F16, Q8])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim", "splits", "workgroup", "step"), BY_SUBGROUPS)
def test_attention_split(bench, heads, kv_heads, head_dim, splits, workgroup, step, kv):
    shape = constants(heads, kv_heads, head_dim, splits) | {"LANES": 4, "WORKGROUP": workgroup}
    split = kernel("attention_split", f"kv_{kv}", **shape)
    buffers = inputs(heads, kv_heads, head_dim, splits, step.n_tokens, kv=kv)
    threads = heads * splits * workgroup
    bench.check(split, buffers, step=step, threads=threads, tokens_per_workgroup=1, nmse=1e-6)


def test_attention_partial_of_extreme_scores_stays_finite(bench):
    partial = kernel("attention_partial", f"kv_{F16}", **constants(2, 1, 32, 2))
    buffers = inputs(2, 1, 32, 2, 1, spread=200.0)
    bench.check(partial, buffers, step=at(60, 1), threads=4, tokens_per_workgroup=1, nmse=1e-4)


@pytest.mark.parametrize("shares", [1, 4])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim", "splits", "step"), SHAPES)
def test_attention_merge(bench, heads, kv_heads, head_dim, splits, step, shares):
    n_tokens = step.n_tokens
    pieces = [data.view(np.uint8).reshape(-1) for data in inputs(heads, kv_heads, head_dim, splits, n_tokens)]
    compute(kernel("attention_partial", f"kv_{F16}", **constants(heads, kv_heads, head_dim, splits)), pieces, step)
    workgroup = shares * head_dim // 4
    merge = kernel("attention_merge", N_HEADS=heads, HEAD_DIM=head_dim, SPLITS=splits, WORKGROUP=workgroup)
    buffers = [*pieces[3:], np.zeros(n_tokens * heads * head_dim, np.float32)]
    bench.check(merge, buffers, step=step, threads=heads * workgroup, tokens_per_workgroup=1, nmse=1e-10)
