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
    shape = 50, quant.block_size
    data = quantise(random.standard_normal(shape) * 10.0 ** random.integers(-3, 3, (50, 1)), quant)
    size = quant.block_bytes
    one_by_one = [dequantise_block(quant, data[i : i + size]) for i in range(0, len(data), size)]
    np.testing.assert_allclose(dequantise(data, quant, shape), one_by_one, rtol=1e-6, atol=1e-6)


# Steps of the quantisation between the smallest and the largest weight that share a scale.
LEVELS = {QuantType.Q4_1: 15, QuantType.Q4_K: 15, QuantType.Q5_0: 31, QuantType.Q6_K: 62, QuantType.Q8_0: 254}


@pytest.mark.parametrize("quant", BLOCK_TYPES)
@given(row=st.lists(st.floats(-100, 100, width=32), min_size=32, max_size=32))
@settings(max_examples=50, deadline=None)
def test_quantising_errs_by_half_a_step(quant, row):
    """Half a step; a whole one at the end of the range that Q5_0 cuts off."""
    values = np.resize(np.array(row, np.float32), quant.block_size)
    has_minimum = quant in (QuantType.Q4_1, QuantType.Q4_K)
    extent = np.ptp(np.append(values, 0)) if has_minimum else 2 * np.abs(values).max()
    step = extent / LEVELS[quant] * (1 if quant is QuantType.Q5_0 else 0.5)
    # Scale and minimum are f16: relative 2^-11, times the largest value each multiplies.
    bound = step + (extent + np.abs(values).max()) * 2**-11 + 2**-14
    if quant.block_size == 256:
        # The scales are numbers of 6 or 7 bits themselves.
        bound += np.abs(values).max() / 63
    assert np.abs(dequantise(quantise(values, quant), quant, values.shape) - values).max() <= bound


@pytest.mark.parametrize(
    ("quant", "first", "last", "total", "moment"),
    [
        (QuantType.Q4_K, 0.1337890625, -0.072265625, 24.2890625, 4119.125),
        (QuantType.Q5_0, 0.0087890625, 0.0009765625, 0.0146484375, 0.0947265625),
        (QuantType.Q6_K, -1.3974609375, -0.05859375, 4.50390625, 761.53125),
    ],
)
def test_a_block_is_what_ggml_says(quant, first, last, total, moment):
    """Values of PyPI gguf 0.19.0's own dequantiser for the bytes 37 i + 11, with d = 2^-10 and dmin = 2^-8."""
    block = bytearray((37 * i + 11) % 256 for i in range(quant.block_bytes))
    struct.pack_into("<e", block, 208 if quant is QuantType.Q6_K else 0, 2**-10)
    if quant is QuantType.Q4_K:
        struct.pack_into("<e", block, 2, 2**-8)
    weights = dequantise_block(quant, bytes(block))
    assert (weights[0], weights[-1]) == (first, last)
    assert (sum(weights), sum(i * weight for i, weight in enumerate(weights))) == (total, moment)


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
