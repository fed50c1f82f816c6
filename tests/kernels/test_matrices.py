"""The operations on weights, in every format, at several shapes and numbers of tokens."""

import numpy as np
import pytest

from clutch.formats.quants import QuantType
from clutch.gpu.kernels import FORMATS, kernel
from tests.support.kernel_reference import Step
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
@pytest.mark.parametrize(("vocab", "hidden", "n_tokens"), [(50, 64, 1), (33, 96, 5)])
def test_embed(bench, quant, vocab, hidden, n_tokens):
    step = Step(position=3, n_tokens=n_tokens)
    tokens = RNG.integers(0, vocab, 16, dtype=np.uint32)
    buffers = [*weights(quant, vocab, hidden), tokens, activations(8, hidden)]
    embed = kernel("embed", FORMATS[quant], HIDDEN=hidden)
    bench.check(embed, buffers, step=step, threads=hidden // 32, tokens_per_workgroup=1, nmse=1e-12)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("rows", "columns", "tokens", "n_tokens"), [(70, 64, 1, 1), (130, 96, 8, 11), (64, 576, 8, 8)])
def test_matmul_add(bench, quant, rows, columns, tokens, n_tokens):
    buffers = [*weights(quant, rows, columns), activations(16, columns), activations(16, rows)]
    matmul = kernel("matmul_add", FORMATS[quant], ROWS=rows, COLUMNS=columns, TOKENS=tokens)
    bench.check(matmul, buffers, step=Step(n_tokens=n_tokens), threads=rows, tokens_per_workgroup=tokens)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("rows", "hidden", "tokens", "n_tokens"), [(70, 64, 1, 1), (96, 96, 8, 13)])
def test_gate_up(bench, quant, rows, hidden, tokens, n_tokens):
    buffers = [*weights(quant, 2 * rows, hidden), activations(16, hidden), activations(16, rows)]
    gate_up = kernel("gate_up", FORMATS[quant], ROWS=rows, HIDDEN=hidden, TOKENS=tokens)
    bench.check(gate_up, buffers, step=Step(n_tokens=n_tokens), threads=rows, tokens_per_workgroup=tokens)


def test_gate_up_of_large_gates_stays_finite(bench):
    buffers = [*weights(QuantType.F32, 2 * 64, 64), 1e3 * activations(8, 64), activations(8, 64)]
    gate_up = kernel("gate_up", "f32", ROWS=64, HIDDEN=64, TOKENS=1)
    bench.check(gate_up, buffers, step=Step(n_tokens=2), threads=64, tokens_per_workgroup=1)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("rows", "hidden", "n_tokens"), [(130, 64, 1), (65, 96, 6)])
def test_lm_head(bench, quant, rows, hidden, n_tokens):
    buffers = [*weights(quant, rows, hidden), activations(8, hidden), activations(rows)]
    lm_head = kernel("lm_head", FORMATS[quant], ROWS=rows, HIDDEN=hidden)
    bench.check(lm_head, buffers, step=Step(n_tokens=n_tokens), threads=rows)


SHAPES = [  # hidden, heads, KV heads, head size, tokens a thread, position, tokens of the step
    (64, 4, 2, 16, 1, 0, 1),
    (96, 3, 1, 32, 8, 13, 21),
    (576, 9, 3, 64, 1, 31, 1),
    (64, 2, 2, 128, 8, 5, 4),
]


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("hidden", "heads", "kv_heads", "head_dim", "tokens", "position", "n_tokens"), SHAPES)
def test_qkv(bench, quant, hidden, heads, kv_heads, head_dim, tokens, position, n_tokens):
    context, n_pages, table_offset = 64, 7, 3
    rows = (heads + 2 * kv_heads) * head_dim
    angles = RNG.uniform(0, 6.28, (context, head_dim // 2))
    table = np.concatenate([np.full(table_offset, 99), RNG.permutation(n_pages)]).astype(np.uint32)
    buffers = [
        *weights(quant, rows, hidden),
        activations(24, hidden),
        np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32),
        table,
        activations(24, heads * head_dim),
        np.full(n_pages * 2 * 16 * kv_heads * head_dim, 0.25, np.float16),
    ]
    qkv = kernel(
        "qkv", FORMATS[quant], HIDDEN=hidden, N_HEADS=heads, N_KV_HEADS=kv_heads, HEAD_DIM=head_dim, TOKENS=tokens
    )
    step = Step(position=position, n_tokens=n_tokens, table_offset=table_offset)
    bench.check(qkv, buffers, step=step, threads=rows // 2, tokens_per_workgroup=tokens, nmse=1e-6, f16=("kv",))
