"""The operations on weights: in every format, by every product, from every source, at several shapes."""

import dataclasses

import numpy as np
import pytest

from clutch.formats.quants import QuantType
from clutch.gpu.kernels import kernel
from clutch.gpu.products import NORMED, PLAIN, Rows, Tiles
from clutch.gpu.weight_formats import FORMATS
from clutch.kv.layout import F16, Q8, KVLayout
from tests.kernels.sequences import N_PAGES, N_TOKENS, TABLE_OFFSET, THREE, block_tables
from tests.support.format_reference import repacked
from tests.support.kernel_reference import CANDIDATE, one
from tests.support.numpy_quants import quantise

FORMAT_TYPES = [pytest.param(quant, id=layout.name) for quant, layout in FORMATS.items()]
RNG = np.random.default_rng(7)


def weights(quant, rows, columns):
    """Return quants and scales as the repack kernels leave them."""
    quants, scales = repacked(quantise(RNG.normal(size=(rows, columns)), quant), quant)
    if quant is QuantType.Q8_0:
        # The high half of a q8_0 scale is unused: whatever stands there must not matter.
        scales[:, 2:] = 0x3C
    return quants.copy(), scales.copy() if scales.size else np.zeros(16, np.uint8)


def whole(quant, columns):
    """Return the length of a row of whole blocks that is no shorter."""
    return -(-columns // quant.block_size) * quant.block_size


def activations(*shape):
    return RNG.normal(size=shape).astype(np.float32)


ALONE, EIGHT = Rows(), Rows(tokens=8)
# The software adapter's subgroups have four lanes.
FOUR = Rows(4, 1, 32, "subgroup")
FOUR_PAIRS = Rows(4, 2, 64, "subgroup")
MET = Rows(16, 1, 64, "workgroup", tokens=2)
BYTES = Rows(4, 2, 64, "subgroup", is_int8=True)
TILES = Tiles(64, 32, 8)
PRODUCTS = [
    pytest.param(product, id=name) for name, product in list(globals().items()) if isinstance(product, (Rows, Tiles))
]


def multiply(bench, name, product, source, quant, shape, files=(), *, buffers, rows, columns, step, **options):
    """Check one operation; `buffers` are those behind the weights, in binding order."""
    of_source = {NORMED: {"EPS": 1e-5}, PLAIN: {}}[source]
    made = kernel(
        name,
        *product.files(FORMATS[quant].name, source),
        *files,
        **{**shape, "ROWS": rows, "COLUMNS": columns, **product.constants, **of_source},
    )
    if product.is_int8:
        # Activations of eight bits: half a step of 1/127 each.
        options["nmse"] = 3e-4
    bench.check(made, [*weights(quant, rows, columns), *buffers], step=step, threads=product.threads(rows), **options)


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize(("rows", "first", "step"), [(50, 0, one(3)), (33, 10, THREE)])
def test_embed(bench, quant, rows, first, step):
    tokens, hidden = RNG.integers(0, 50, N_TOKENS, dtype=np.uint32), whole(quant, 96)
    buffers = [*weights(quant, rows, hidden), tokens, activations(8, hidden)]
    embed = kernel("embed", f"format_{FORMATS[quant].name}", ROWS=rows, FIRST_ROW=first, HIDDEN=hidden)
    bench.check(embed, buffers, step=step, threads=hidden // 32, tokens_per_workgroup=1, nmse=1e-12)


def matmul_add(bench, product, quant, rows, columns, step, *, first=0, width=None):
    multiply(
        bench,
        "matmul_add",
        product,
        PLAIN,
        quant,
        {"FIRST_ROW": first, "WIDTH": width or rows},
        buffers=[activations(16, columns), activations(16, width or rows)],
        rows=rows,
        columns=columns,
        step=step,
        tokens_per_workgroup=product.tokens,
    )


@pytest.mark.parametrize("quant", FORMAT_TYPES)
@pytest.mark.parametrize("product", [ALONE, BYTES])
def test_matmul_add_of_every_format(bench, quant, product):
    matmul_add(bench, product, quant, 70, whole(quant, 96), THREE)


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(("rows", "columns", "step"), [(130, 96, one(0, 11)), (64, 576, one(0, 1))])
def test_matmul_add_by_every_product(bench, product, rows, columns, step):
    matmul_add(bench, product, QuantType.Q4_1, rows, columns, step)


def test_matmul_add_of_a_slab(bench):
    matmul_add(bench, FOUR, QuantType.Q8_0, 22, 64, one(0, 3), first=10, width=40)


@pytest.mark.parametrize(
    ("product", "source"),
    [(ALONE, PLAIN), (EIGHT, PLAIN), (FOUR, NORMED), (MET, NORMED), (BYTES, NORMED), (TILES, PLAIN)],
)
def test_gate_up(bench, product, source):
    rows, first, width = 92, 20, 70
    multiply(
        bench,
        "gate_up",
        product,
        source,
        QuantType.Q4_1,
        {"FIRST_ROW": first, "WIDTH": width},
        buffers=[activations(16, 96), activations(96), activations(16, width)],
        rows=rows,
        columns=96,
        step=one(0, 13),
        tokens_per_workgroup=product.tokens,
    )


def test_gate_up_of_large_gates_stays_finite(bench):
    buffers = [1e3 * activations(8, 64), activations(64), activations(8, 64)]
    shape = {"FIRST_ROW": 0, "WIDTH": 64}
    multiply(
        bench,
        "gate_up",
        ALONE,
        PLAIN,
        QuantType.F32,
        shape,
        buffers=buffers,
        rows=128,
        columns=64,
        step=one(0, 2),
        tokens_per_workgroup=1,
    )


def compare_candidates(have, want):
    have, want = (data.view(CANDIDATE) for data in (have, want))
    assert (have["index"] == want["index"]).all()
    for field in ("largest", "mass", "weighted"):
        np.testing.assert_allclose(have[field], want[field], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("product", "source", "step"),
    [(ALONE, PLAIN, THREE), (FOUR_PAIRS, NORMED, one(0, 6)), (MET, NORMED, THREE), (FOUR, NORMED, one())],
)
def test_lm_head(bench, product, source, step):
    """An odd number of rows behind the first 40."""
    if product.tokens > 1:
        product = dataclasses.replace(product, tokens=1)
    rows, first, vocab, before = 65, 40, 105, 2
    n_candidates = before + product.workgroups(rows)
    n_sequences = len(step.sequences)
    filled = np.full(n_sequences * n_candidates * CANDIDATE.itemsize, 0x41, np.uint8)
    multiply(
        bench,
        "lm_head",
        product,
        source,
        QuantType.Q8_0,
        {"FIRST_ROW": first, "VOCAB": vocab, "CANDIDATES": n_candidates, "FIRST_CANDIDATE": before},
        buffers=[activations(8, 96), activations(96), activations(n_sequences, vocab), filled],
        rows=rows,
        columns=96,
        step=step,
        compare={"candidates": compare_candidates},
    )


FILL = 0x55
"""Every byte of the keys and values before."""


def at(position, n_tokens):
    return one(position, n_tokens, table_offset=TABLE_OFFSET)


def compare_f16(have, want):
    is_written = want.view(np.uint16) != FILL * 257
    assert (have.view(np.uint16)[~is_written] == FILL * 257).all()
    have, want = (data.view(np.float16)[is_written].astype(np.float64) for data in (have, want))
    assert ((have - want) ** 2).mean() <= 1e-6 * (want**2).mean()


QKV = [  # product, source, heads, KV heads, head size, columns, step
    (ALONE, PLAIN, 4, 2, 16, 64, at(0, 1)),
    (EIGHT, PLAIN, 3, 1, 32, 96, at(13, 21)),
    (EIGHT, PLAIN, 4, 2, 16, 64, THREE),
    (FOUR, NORMED, 9, 3, 64, 576, at(31, 1)),
    (FOUR_PAIRS, NORMED, 2, 2, 128, 64, at(5, 4)),
    (MET, NORMED, 4, 2, 16, 64, THREE),
    (BYTES, NORMED, 4, 2, 16, 64, THREE),
    (TILES, PLAIN, 3, 1, 32, 96, at(13, 21)),
]


@pytest.mark.parametrize(("product", "source", "heads", "kv_heads", "head_dim", "columns", "step"), QKV)
def test_qkv(bench, product, source, heads, kv_heads, head_dim, columns, step):
    # The roundings of bytes and of halves cannot be told apart.
    keep = "f32" if product.is_int8 else "f16"
    qkv(bench, keep, product, source, heads, kv_heads, head_dim, columns, step)


def test_qkv_beside_the_cache(bench):
    qkv(bench, "f32", FOUR, NORMED, 3, 1, 32, 96, THREE)


def test_qkv_of_a_slab(bench):
    """The last head of q, and the keys."""
    qkv(bench, "f16", FOUR, NORMED, 4, 2, 16, 64, THREE, first=48, rows=48)


def qkv(bench, keep, product, source, heads, kv_heads, head_dim, columns, step, *, first=0, rows=None):
    context, every = 64, (heads + 2 * kv_heads) * head_dim
    angles = RNG.uniform(0, 6.28, (context, head_dim // 2))
    n_bytes = N_PAGES * KVLayout(F16, kv_heads, head_dim).page_bytes
    multiply(
        bench,
        "qkv",
        product,
        source,
        QuantType.Q8_0,
        {"FIRST_ROW": first, "N_HEADS": heads, "N_KV_HEADS": kv_heads, "HEAD_DIM": head_dim},
        [f"keep_{keep}"],
        buffers=[
            activations(24, columns),
            activations(columns + every),
            np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32),
            block_tables(RNG),
            activations(24, heads * head_dim),
            np.full(n_bytes, FILL, np.uint8) if keep == "f16" else activations(24, 2, kv_heads, head_dim),
        ],
        rows=rows or every,
        columns=columns,
        step=step,
        tokens_per_workgroup=product.tokens,
        compare={"kv": compare_f16} if keep == "f16" else {},
        nmse=1e-6,
    )


@pytest.mark.parametrize(("kv_heads", "head_dim", "step"), [(2, 16, THREE), (3, 64, at(13, 21))])
def test_kv_store_q8(bench, kv_heads, head_dim, step):
    def compare(have, want):
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

    buffers = [
        activations(24, 2, kv_heads, head_dim),
        block_tables(RNG),
        np.full(N_PAGES * KVLayout(Q8, kv_heads, head_dim).page_bytes, FILL, np.uint8),
    ]
    store = kernel("kv_store_q8", N_KV_HEADS=kv_heads, HEAD_DIM=head_dim)
    bench.check(store, buffers, step=step, threads=2 * kv_heads, tokens_per_workgroup=1, compare={"kv": compare})
