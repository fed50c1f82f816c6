"""Products of many tokens: tiles of several shapes with rows and tokens at their edges, and activations as bytes."""

from dataclasses import replace

import numpy as np
import pytest

from clutch.formats.quants import QuantType
from clutch.gpu.kernels import kernel
from clutch.gpu.products import PLAIN, Tiles
from clutch.gpu.weight_formats import FORMATS
from tests.kernels.comparing import check
from tests.kernels.conftest import ROOT
from tests.kernels.test_matrices import weights
from tests.support import kernel_reference
from tests.support.kernel_reference import one

RNG = np.random.default_rng(17)
READ, WRITE = "read", "read_write"


SHAPES = [  # format, rows, columns, tokens, tile
    pytest.param((QuantType.Q4_1, 130, 96, 71, Tiles(64, 64, 4)), id="four-threads-a-block"),
    pytest.param((QuantType.Q6_K, 64, 256, 64, Tiles(64, 32, 8)), id="whole-tiles-of-halves"),
    pytest.param((QuantType.Q4_1, 34, 96, 35, Tiles(32, 16, 4, 2)), id="splits-with-nothing-to-do"),
    pytest.param((QuantType.F32, 34, 32, 5, Tiles(32, 32, 4)), id="one-round"),
]


def run(bench, x, kernel_x, case, *, is_int8=False, first_row=0, width=0):
    """Compare y += W x, with y of `width` columns, as the kernel leaves it from `kernel_x`."""
    quant, rows, columns, tokens, tiles = case
    tiles = replace(tiles, is_int8=is_int8)
    constants = {"ROWS": rows, "COLUMNS": columns, "FIRST_ROW": first_row, "WIDTH": width or rows, **tiles.constants}
    made = kernel("matmul_add", *tiles.files(FORMATS[quant].name, PLAIN), **constants)
    quants, scales = weights(quant, rows, columns)
    y = RNG.normal(size=(tokens, width or rows)).astype(np.float32)
    want = y.copy()
    named = {"quants": quants, "scales": scales, "x": bytes_of(x), "y": bytes_of(want)}
    files = {"format": FORMATS[quant].name}
    kernel_reference.matmul_add(named, constants, one(0, tokens), files)
    grid = -(-tiles.threads(rows) // made.workgroup_size), -(-tokens // tiles.tokens)
    buffers = [quants, scales, kernel_x, y]
    check(bench, made.source(ROOT / "wgsl"), buffers, [READ, READ, READ, WRITE], want, step=one(0, tokens), grid=grid)


def bytes_of(array):
    return array.view(np.uint8).reshape(-1)


@pytest.mark.parametrize("case", SHAPES)
def test_product_tiles(bench, case):
    x = RNG.normal(size=(case[3], case[2])).astype(np.float32)
    run(bench, x, x, case, first_row=4, width=case[1] + 6)


def quantised(x):
    """Return the words of x as bytes, and the f32 they stand for."""
    words = np.zeros(x.size // 32 * 48, np.uint8)
    kernel_reference.quantise({"x": bytes_of(x), "quantised": words}, {"COLUMNS": x.shape[1]}, one(0, len(x)), {})
    blocks = words.reshape(-1, 48)
    scales = np.ascontiguousarray(blocks[:, 32:36]).view(np.float32)
    return words, (np.ascontiguousarray(blocks[:, :32]).view(np.int8) * scales).astype(np.float32).reshape(x.shape)


@pytest.mark.parametrize("case", SHAPES[:-1])
def test_product_tiles_int8(bench, case):
    words, x = quantised(RNG.normal(size=(case[3], case[2])).astype(np.float32))
    run(bench, x, words, case, is_int8=True)


def test_quantise(bench):
    x = RNG.normal(size=(5, 96)).astype(np.float32)
    x[1, :32] = 0
    words, _ = quantised(x)
    code = kernel("quantise", COLUMNS=96).source(ROOT / "wgsl")
    _, found = bench.run_code(
        code, [bytes_of(x), np.zeros(len(words), np.uint8)], [READ, WRITE], step=one(0, 5), grid=(1, 5)
    )
    found, want = found.reshape(-1, 48), words.reshape(-1, 48)
    difference = found[:, :32].view(np.int8).astype(int) - want[:, :32].view(np.int8)
    assert np.abs(difference).max() <= 1
    assert (difference != 0).mean() < 0.01
    scales, sums = (np.ascontiguousarray(found[:, 32:]).view(np.float32)[:, part] for part in (slice(1), slice(1, 3)))
    np.testing.assert_allclose(scales, np.ascontiguousarray(want[:, 32:36]).view(np.float32), rtol=1e-6)
    levels = found[:, :32].view(np.int8).reshape(-1, 2, 16).astype(np.float32).sum(axis=2)
    np.testing.assert_allclose(sums, scales * levels, rtol=1e-5, atol=1e-6)
