"""The operations on weights, in every format, at several shapes and numbers of tokens."""

from functools import partial

import numpy as np
import pytest

from clutch.formats.quants import QuantType
from clutch.gpu.kernels import FORMATS, kernel
from clutch.kv.layout import F16, Q8, KVLayout
from tests.kernels.sequences import N_PAGES, N_TOKENS, TABLE_OFFSET, THREE, block_tables
from tests.support.kernel_reference import one
from tests.support.numpy_quants import quantise

FORMAT_TYPES = [pytest.param(quant, id=name) for quant, name in FORMATS.items()]
RNG = np.random.default_rng(7)


def weights(quant, rows, columns):
    """Return quants and scales as the repack kernels leave them."""
    data = np.frombuffer(quantise(RNG.normal(size=(rows, columns)), quant), np.uint8)
    if quant is QuantType.F32:
        return data, np.zeros(16, np.uint8)
    blocks = data.reshape(-1, quant.block_bytes)
    if quant is QuantType.Q4_1:
        return blocks[:, 4:].copy(), blocks[:, :4].copy()
    # The high half of a q8_0 scale is unused: whatever stands there must not matter.
    return blocks[:, 2:].copy(), np.hstack([blocks[:, :2], np.full((len(blocks), 2), 0x3C, np.uint8)])


def activations(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("vocab", "hidden", "step"), [(50, 64, one(3)), (33, 96, one(3, 5)), (33, 96, THREE)])
def test_embed(bench, quant, vocab, hidden, step):
    tokens = RNG.integers(0, vocab, N_TOKENS, dtype=np.uint32)
    buffers = [*weights(quant, vocab, hidden), tokens, activations(8, hidden)]
    embed = kernel("embed", FORMATS[quant], HIDDEN=hidden)
    bench.check(embed, buffers, step=step, threads=hidden // 32, tokens_per_workgroup=1, nmse=1e-12)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("rows", "columns", "tokens", "n_tokens"), [(70, 64, 1, 1), (130, 96, 8, 11), (64, 576, 8, 8)])
def test_matmul_add(bench, quant, rows, columns, tokens, n_tokens):
    buffers = [*weights(quant, rows, columns), activations(16, columns), activations(16, rows)]
    matmul = kernel("matmul_add", FORMATS[quant], ROWS=rows, COLUMNS=columns, TOKENS=tokens)
    bench.check(matmul, buffers, step=one(0, n_tokens), threads=rows, tokens_per_workgroup=tokens)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("rows", "hidden", "tokens", "n_tokens"), [(70, 64, 1, 1), (96, 96, 8, 13)])
def test_gate_up(bench, quant, rows, hidden, tokens, n_tokens):
    buffers = [*weights(quant, 2 * rows, hidden), activations(16, hidden), activations(16, rows)]
    gate_up = kernel("gate_up", FORMATS[quant], ROWS=rows, HIDDEN=hidden, TOKENS=tokens)
    bench.check(gate_up, buffers, step=one(0, n_tokens), threads=rows, tokens_per_workgroup=tokens)


def test_gate_up_of_large_gates_stays_finite(bench):
    buffers = [*weights(QuantType.F32, 2 * 64, 64), 1e3 * activations(8, 64), activations(8, 64)]
    gate_up = kernel("gate_up", "f32", ROWS=64, HIDDEN=64, TOKENS=1)
    bench.check(gate_up, buffers, step=one(0, 2), threads=64, tokens_per_workgroup=1)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("rows", "hidden", "step"), [(130, 64, one()), (65, 96, one(0, 6)), (65, 96, THREE)])
def test_lm_head(bench, quant, rows, hidden, step):
    buffers = [*weights(quant, rows, hidden), activations(8, hidden), activations(4, rows)]
    lm_head = kernel("lm_head", FORMATS[quant], ROWS=rows, HIDDEN=hidden)
    bench.check(lm_head, buffers, step=step, threads=rows)


FILL = 0x55
"""Every byte of the keys and values before."""


def at(position, n_tokens):
    return one(position, n_tokens, table_offset=TABLE_OFFSET)


def compare_f16(have, want, head_dim):
    is_written = want.view(np.uint16) != FILL * 257
    assert (have.view(np.uint16)[~is_written] == FILL * 257).all()
    have, want = (data.view(np.float16)[is_written].astype(np.float64) for data in (have, want))
    assert ((have - want) ** 2).mean() <= 1e-6 * (want**2).mean()


def compare_q8(have, want, head_dim):
    """Compare heads of bytes and a scale; a byte may differ by one where a value lies in the middle of two."""
    have, want = (data.reshape(-1, head_dim + 4) for data in (have, want))
    is_written = (want != FILL).any(axis=1)
    assert (have[~is_written] == FILL).all()
    scales, values = (
        [np.ascontiguousarray(data[is_written][:, part]).view(kind) for data in (have, want)]
        for part, kind in ((slice(head_dim, None), np.float32), (slice(head_dim), np.int8))
    )
    np.testing.assert_allclose(*scales, rtol=1e-6, atol=1e-6)
    difference = np.abs(values[0].astype(int) - values[1])
    assert difference.max() <= 1
    assert difference.mean() < 0.01


KV = [
    *(pytest.param(quant, F16, compare_f16, id=f"{name}-f16") for quant, name in FORMATS.items()),
    pytest.param(QuantType.F32, Q8, compare_q8, id="f32-q8"),
]
SHAPES = [  # hidden, heads, KV heads, head size, tokens a thread, step
    (64, 4, 2, 16, 1, at(0, 1)),
    (96, 3, 1, 32, 8, at(13, 21)),
    (576, 9, 3, 64, 1, at(31, 1)),
    (64, 2, 2, 128, 8, at(5, 4)),
    (64, 4, 2, 16, 8, THREE),
]


@pytest.mark.parametrize(("quant", "kv", "compare"), KV)
@pytest.mark.parametrize(("hidden", "heads", "kv_heads", "head_dim", "tokens", "step"), SHAPES)
def test_qkv(bench, quant, kv, compare, hidden, heads, kv_heads, head_dim, tokens, step):
    context, rows = 64, (heads + 2 * kv_heads) * head_dim
    angles = RNG.uniform(0, 6.28, (context, head_dim // 2))
    buffers = [
        *weights(quant, rows, hidden),
        activations(24, hidden),
        np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32),
        block_tables(RNG),
        activations(24, heads * head_dim),
        np.full(N_PAGES * KVLayout(kv, kv_heads, head_dim).page_bytes, FILL, np.uint8),
    ]
    shape = {"HIDDEN": hidden, "N_HEADS": heads, "N_KV_HEADS": kv_heads, "HEAD_DIM": head_dim}
    bench.check(
        kernel("qkv", FORMATS[quant], kv, **shape, TOKENS=tokens),
        buffers,
        step=step,
        threads=rows // 2,
        tokens_per_workgroup=tokens,
        nmse=1e-6,
        compare={"kv": partial(compare, head_dim=head_dim)},
    )
