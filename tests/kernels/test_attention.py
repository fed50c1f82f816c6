"""Attention over scattered pages: one split and many, one token and many, grouped heads."""

import numpy as np
import pytest

from clutch.gpu.kernels import kernel
from tests.support.kernel_reference import Step, compute

RNG = np.random.default_rng(11)

SHAPES = [  # heads, KV heads, head size, splits, position, tokens
    pytest.param(4, 2, 16, 4, 0, 1, id="first-position"),
    pytest.param(9, 3, 64, 32, 45, 1, id="smollm2-decode"),
    pytest.param(9, 3, 64, 4, 150, 3, id="several-pages-a-split"),
    pytest.param(3, 1, 32, 8, 15, 19, id="prefill-over-page-ends"),
    pytest.param(2, 2, 128, 3, 100, 2, id="no-grouping"),
]


def constants(heads, kv_heads, head_dim, splits):
    return {"N_HEADS": heads, "N_KV_HEADS": kv_heads, "HEAD_DIM": head_dim, "SPLITS": splits}


def inputs(heads, kv_heads, head_dim, splits, n_tokens, spread=1.0):
    n_pages, table_offset = 12, 2
    table = np.concatenate([np.full(table_offset, 77), RNG.permutation(n_pages)]).astype(np.uint32)
    return [
        (spread * RNG.normal(size=(n_tokens, heads, head_dim))).astype(np.float32),
        RNG.normal(size=n_pages * 2 * 16 * kv_heads * head_dim).astype(np.float16),
        table,
        np.full(n_tokens * heads * splits * head_dim, 7.5, np.float32),
        np.full(n_tokens * heads * splits * 2, 7.5, np.float32),
    ]


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim", "splits", "position", "n_tokens"), SHAPES)
def test_attention_partial(bench, heads, kv_heads, head_dim, splits, position, n_tokens):
    partial = kernel("attention_partial", **constants(heads, kv_heads, head_dim, splits))
    buffers = inputs(heads, kv_heads, head_dim, splits, n_tokens)
    step = Step(position=position, n_tokens=n_tokens, table_offset=2)
    bench.check(partial, buffers, step=step, threads=heads * splits, tokens_per_workgroup=1, nmse=1e-6)


def test_attention_partial_of_extreme_scores_stays_finite(bench):
    partial = kernel("attention_partial", **constants(2, 1, 32, 2))
    buffers = inputs(2, 1, 32, 2, 1, spread=200.0)
    step = Step(position=60, n_tokens=1, table_offset=2)
    bench.check(partial, buffers, step=step, threads=4, tokens_per_workgroup=1, nmse=1e-4)


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim", "splits", "position", "n_tokens"), SHAPES)
def test_attention_merge(bench, heads, kv_heads, head_dim, splits, position, n_tokens):
    step = Step(position=position, n_tokens=n_tokens, table_offset=2)
    pieces = [data.view(np.uint8).reshape(-1) for data in inputs(heads, kv_heads, head_dim, splits, n_tokens)]
    compute(kernel("attention_partial", **constants(heads, kv_heads, head_dim, splits)), pieces, step)
    merge = kernel("attention_merge", N_HEADS=heads, HEAD_DIM=head_dim, SPLITS=splits)
    buffers = [*pieces[3:], np.zeros(n_tokens * heads * head_dim, np.float32)]
    bench.check(merge, buffers, step=step, threads=heads * head_dim // 4, tokens_per_workgroup=1, nmse=1e-10)
