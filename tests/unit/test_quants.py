"""Block layouts: the pure Python reference, the NumPy oracle and hand-made blocks agree."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clutch.formats.quants import BY_TYPE_ID, SUPPORTED, QuantType, dequantise_block, row_size_bytes
from tests.support.numpy_quants import dequantise, quantise

BLOCK_TYPES = sorted(SUPPORTED - {QuantType.F32}, key=lambda quant: quant.value)


def test_q4_1_keeps_weight_j_in_the_low_and_j_plus_16_in_the_high_nibble():
    block = struct.pack("<ee16B", 0.5, -1.0, *(j | (15 - j) << 4 for j in range(16)))
    expected = [0.5 * j - 1 for j in range(16)] + [0.5 * (15 - j) - 1 for j in range(16)]
    assert dequantise_block(QuantType.Q4_1, block) == expected


def test_q8_0_scales_signed_bytes():
    block = struct.pack("<e32b", 0.25, *range(-16, 16))
    assert dequantise_block(QuantType.Q8_0, block) == [0.25 * level for level in range(-16, 16)]


def test_f32_is_itself():
    assert dequantise_block(QuantType.F32, struct.pack("<f", -2.5)) == [-2.5]


@pytest.mark.parametrize("quant", BLOCK_TYPES)
def test_python_and_numpy_dequantise_the_same(quant):
    random = np.random.default_rng(7)
    data = quantise(random.standard_normal((50, 32)) * 10.0 ** random.integers(-3, 3, (50, 1)), quant)
    size = quant.block_bytes
    one_by_one = [dequantise_block(quant, data[i : i + size]) for i in range(0, len(data), size)]
    np.testing.assert_allclose(dequantise(data, quant, (50, 32)), one_by_one, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("quant", BLOCK_TYPES)
@given(row=st.lists(st.floats(-100, 100, width=32), min_size=32, max_size=32))
@settings(max_examples=50, deadline=None)
def test_quantising_errs_by_half_a_step(quant, row):
    values = np.array(row, np.float32)
    levels = {QuantType.Q4_1: 15, QuantType.Q8_0: 254}[quant]
    extent = np.ptp(values) if quant is QuantType.Q4_1 else 2 * np.abs(values).max()
    # Scale and minimum are f16: relative 2^-11, times the largest value each multiplies.
    bound = extent / levels / 2 + (extent + np.abs(values).max()) * 2**-11 + 2**-14
    assert np.abs(dequantise(quantise(values, quant), quant, (32,)) - values).max() <= bound


def test_sizes():
    assert row_size_bytes(QuantType.Q8_0, 576) == 612
    assert row_size_bytes(QuantType.Q4_1, 1536) == 960
    assert row_size_bytes(QuantType.F32, 3) == 12
    assert row_size_bytes(QuantType.Q6_K, 512) == 420


def test_types_are_found_by_the_number_in_the_file():
    assert BY_TYPE_ID[3] is QuantType.Q4_1
    assert BY_TYPE_ID[30] is QuantType.BF16
    removed = {4, 5, 31, 32, 33, 36, 37, 38}
    assert not removed & BY_TYPE_ID.keys()
