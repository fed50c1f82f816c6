"""Repacking is exact, wherever a row goes and wherever a block starts."""

import numpy as np
import pytest

from clutch.formats.quants import QuantType
from clutch.gpu.kernels import FORMATS, kernel
from tests.support.numpy_quants import quantise

RNG = np.random.default_rng(5)
SIZES = {QuantType.Q4_1: (16, 4), QuantType.Q8_0: (32, 4), QuantType.F32: (128, 0)}


@pytest.mark.parametrize("quant", [pytest.param(quant, id=name) for quant, name in FORMATS.items()])
@pytest.mark.parametrize(
    ("rows", "columns", "first_row", "stride", "offset"),
    [(5, 96, 0, 1, 0), (3, 64, 2, 2, 1), (7, 32, 0, 1, 4), (70, 160, 0, 2, 0)],
)
def test_repack(bench, quant, rows, columns, first_row, stride, offset):
    blocks_per_row = columns // 32
    data = np.frombuffer(quantise(RNG.normal(size=(rows, columns)), quant), np.uint8)
    raw = np.concatenate([data, np.zeros(-len(data) % 4 + 16, np.uint8)])
    n_out = ((first_row + rows) * stride + offset) * blocks_per_row
    quants_bytes, scales_bytes = SIZES[quant]
    fields = np.array([rows * blocks_per_row, blocks_per_row, first_row, stride, offset, 0, 0, 0], np.uint32)
    buffers = [
        raw,
        np.full(n_out * quants_bytes, 0xAB, np.uint8),
        np.full(max(16, n_out * scales_bytes), 0xAB, np.uint8),
        fields,
    ]
    repack = kernel(f"repack_{FORMATS[quant]}")
    bench.check(repack, buffers, threads=rows * blocks_per_row, exact=("quants", "scales"))
