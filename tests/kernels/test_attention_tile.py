"""Attention of many tokens: several head sizes, a chunk that begins in the middle of a page, several sequences."""

import numpy as np
import pytest

from clutch.gpu.kernels import kernel
from clutch.kv.layout import F16, Q8
from tests.kernels.comparing import check
from tests.kernels.conftest import ROOT
from tests.kernels.sequences import TABLE_OFFSET, THREE, block_tables
from tests.kernels.test_attention import pages
from tests.support import kernel_reference
from tests.support.kernel_reference import one

RNG = np.random.default_rng(23)


def at(position, n_tokens):
    return one(position, n_tokens, table_offset=TABLE_OFFSET)


def shape(heads, kv_heads, head_dim, tokens, keys, thread_rows, lanes):
    return {
        "N_HEADS": heads,
        "N_KV_HEADS": kv_heads,
        "HEAD_DIM": head_dim,
        "TOKENS": tokens,
        "KEYS": keys,
        "THREAD_ROWS": thread_rows,
        "WORKGROUP": lanes * tokens * heads // kv_heads // thread_rows,
    }


SHAPES = [  # constants, step, KV format
    pytest.param(shape(6, 2, 64, 8, 16, 8, 16), at(45, 37), F16, id="begins-in-the-middle-of-a-page"),
    pytest.param(shape(6, 1, 128, 2, 16, 4, 16), at(0, 21), F16, id="r1-from-the-beginning"),
    pytest.param(shape(2, 2, 32, 16, 32, 4, 8), at(100, 20), Q8, id="no-grouping-q8"),
    pytest.param(shape(4, 2, 16, 4, 16, 4, 4), THREE, F16, id="three-sequences"),
]


@pytest.mark.parametrize(("constants", "step", "kv"), SHAPES)
def test_attention_tile(bench, constants, step, kv, spread=1.0, nmse=1e-6):
    heads, kv_heads, head_dim = (constants[name] for name in ("N_HEADS", "N_KV_HEADS", "HEAD_DIM"))
    q = (spread * RNG.normal(size=(step.n_tokens, heads, head_dim))).astype(np.float32)
    cache, table = pages(kv, kv_heads, head_dim), block_tables(RNG)
    attended = np.full((step.n_tokens + 3, heads, head_dim), 7.5, np.float32)
    want = attended.copy()
    named = {"q": q, "kv": cache, "table": table, "attended": want}
    views = {name: data.view(np.uint8).reshape(-1) for name, data in named.items()}
    kernel_reference.attention_tile(views, constants, step, {"kv": kv})
    code = kernel("attention_tile", f"kv_{kv}", **constants).source(ROOT / "wgsl")
    check(
        bench,
        code,
        [q, cache, table, attended],
        ["read", "read", "read", "read_write"],
        want,
        step=step,
        grid=(kv_heads, -(-step.n_tokens // constants["TOKENS"])),
        nmse=nmse,
    )


def test_attention_tile_of_extreme_scores_stays_finite(bench):
    test_attention_tile(bench, shape(2, 1, 32, 4, 16, 4, 8), at(60, 6), F16, spread=200.0, nmse=1e-4)
