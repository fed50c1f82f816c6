"""Repacking is exact, wherever a row goes and wherever a block starts."""

import numpy as np
import pytest

from clutch.gpu.kernels import kernel
from clutch.gpu.weight_formats import FORMATS

RNG = np.random.default_rng(5)
QUANTS = [pytest.param(quant, id=layout.name) for quant, layout in FORMATS.items()]


def blocks(quant, n):
    """Return any bytes, with finite scales at every place where a format has f16; some are subnormal."""
    raw = RNG.integers(0, 256, (n, quant.block_bytes), np.uint8)
    halves = (RNG.normal(size=(n, 2)) * 10.0 ** RNG.integers(-6, 0, (n, 2))).astype(np.float16).view(np.uint8)
    if quant.block_size > 1:
        raw[:, :4] = halves
        raw[:, -2:] = halves[:, :2]
    return raw.reshape(-1)


def check(bench, quant, rows, columns, *, first_row=0, stride=1, offset=0, half_head=0, n_out=None):
    """Repack `rows` rows into a slab of `n_out`."""
    n_items = max(1, quant.block_size // 32)
    per_row = columns // quant.block_size
    data = blocks(quant, rows * per_row)
    raw = np.concatenate([data, np.zeros(-len(data) % 4 + 16, np.uint8)])
    n_out = (n_out or (first_row + rows) * stride + offset) * per_row
    layout = FORMATS[quant]
    fields = [rows * per_row * n_items, per_row * n_items, first_row, stride, offset % 2**32, half_head, 0, 0]
    buffers = [
        raw,
        np.full(n_out * layout.quants_bytes, 0xAB, np.uint8),
        np.full(max(16, n_out * layout.scales_bytes), 0xAB, np.uint8),
        np.array(fields, np.uint32),
    ]
    exact = ("quants", "scales")
    bench.check(kernel(f"repack_{layout.name}"), buffers, threads=fields[0], exact=exact)


@pytest.mark.parametrize("quant", QUANTS)
@pytest.mark.parametrize(
    ("rows", "n_blocks", "first_row", "stride", "offset"),
    [(5, 3, 0, 1, 0), (3, 2, 2, 2, 1), (7, 1, 0, 1, 4), (70, 5, 0, 2, 0)],
)
def test_repack(bench, quant, rows, n_blocks, first_row, stride, offset):
    columns = n_blocks * max(32, quant.block_size)
    check(bench, quant, rows, columns, first_row=first_row, stride=stride, offset=offset)


@pytest.mark.parametrize("quant", QUANTS)
def test_a_slab_that_begins_in_the_middle_of_a_tensor(bench, quant):
    check(bench, quant, 6, max(64, quant.block_size), first_row=9, offset=-8, n_out=9)
    check(bench, quant, 6, max(64, quant.block_size), first_row=9, stride=2, offset=1 - 16, n_out=16)


@pytest.mark.parametrize("quant", QUANTS)
def test_the_halves_of_a_head_become_neighbours(bench, quant):
    check(bench, quant, 24, max(64, quant.block_size), first_row=8, half_head=8, offset=5, n_out=37)


def test_single_values_move_too(bench):
    (f32,) = (quant for quant, layout in FORMATS.items() if layout.name == "f32")
    check(bench, f32, 300, 1, first_row=20, half_head=10, offset=64, n_out=390)
