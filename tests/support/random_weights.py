"""Random weights of a given standard deviation, made as the bytes of a quantisation at once: a gigabyte in seconds."""

from collections.abc import Callable

import numpy as np

from clutch.formats.quants import QuantType
from tests.support.numpy_quants import packed_q4_k_scales

# Standard deviations of what is drawn evenly: nibbles, levels of six bits, signed bytes.
_NIBBLE_STD, _LEVEL_STD, _BYTE_STD = (((n * n - 1) / 12) ** 0.5 for n in (16, 64, 256))
_NIBBLE_MEAN = 7.5


def random_weights(random: np.random.Generator, quant: QuantType, n: int, std: float) -> np.ndarray:
    """Return the bytes (n / block_size, block_bytes) of `n` weights with standard deviation `std` and a mean near 0."""
    return _MAKERS[quant](random, n // quant.block_size, std)


def _f32(random: np.random.Generator, n: int, std: float) -> np.ndarray:
    return (std * random.standard_normal((n, 1), np.float32)).view(np.uint8)


def _q4_1(random: np.random.Generator, n: int, std: float) -> np.ndarray:
    blocks = _bytes(random, n, QuantType.Q4_1)
    blocks[:, :4] = _halves(std / _NIBBLE_STD, -_NIBBLE_MEAN * std / _NIBBLE_STD)
    return blocks


def _q4_k(random: np.random.Generator, n: int, std: float) -> np.ndarray:
    blocks = _bytes(random, n, QuantType.Q4_K)
    # m = sc, and dmin is the mean of what d multiplies: the mean of every 32 weights is 0.
    sc = random.integers(32, 64, (n, 8), np.uint8)
    d = std / _NIBBLE_STD / _rms(range(32, 64))
    blocks[:, :4] = _halves(d, _NIBBLE_MEAN * d)
    blocks[:, 4:16] = packed_q4_k_scales(sc, sc)
    return blocks


def _q6_k(random: np.random.Generator, n: int, std: float) -> np.ndarray:
    blocks = _bytes(random, n, QuantType.Q6_K)
    # Of both signs, for the mean level is -0.5.
    sc = random.integers(64, 128, (n, 16), np.uint8).view(np.int8)
    blocks[:, 192:208] = (sc * random.choice(np.array([-1, 1], np.int8), (n, 16))).view(np.uint8)
    blocks[:, 208:] = _halves(std / _LEVEL_STD / _rms(range(64, 128)))
    return blocks


def _q8_0(random: np.random.Generator, n: int, std: float) -> np.ndarray:
    blocks = _bytes(random, n, QuantType.Q8_0)
    blocks[:, :2] = _halves(std / _BYTE_STD)
    return blocks


_MAKERS: dict[QuantType, Callable[[np.random.Generator, int, float], np.ndarray]] = {
    QuantType.F32: _f32,
    QuantType.Q4_1: _q4_1,
    QuantType.Q4_K: _q4_k,
    QuantType.Q6_K: _q6_k,
    QuantType.Q8_0: _q8_0,
}


def _bytes(random: np.random.Generator, n: int, quant: QuantType) -> np.ndarray:
    size = n * quant.block_bytes
    return np.frombuffer(bytearray(random.bytes(size)), np.uint8).reshape(n, quant.block_bytes)


def _halves(*values: float) -> np.ndarray:
    return np.array(values, np.float16).view(np.uint8)


def _rms(values: range) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
