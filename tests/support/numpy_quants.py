"""Quantise and dequantise whole tensors with NumPy: the oracle of the kernels and of `clutch.formats.quants`.

Rounding follows ggml's reference quantisers (`ggml-quants.c`, quantize_row_*_ref), so the bytes are the same.
"""

import numpy as np

from clutch.formats.quants import QuantType

BLOCK = 32


def quantise(values: np.ndarray, quant: QuantType) -> bytes:
    """Return the stored bytes of an f32 array whose last axis is a row of whole blocks."""
    values = np.ascontiguousarray(values, np.float32)
    if quant is QuantType.F32:
        return values.tobytes()
    blocks = values.reshape(-1, BLOCK)
    if quant is QuantType.Q8_0:
        scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
        levels = _round_half_away(blocks * _inverse(scale)).astype(np.int8)
        return _rows(scale.astype(np.float16), levels)
    assert quant is QuantType.Q4_1, quant
    low = blocks.min(axis=1, keepdims=True)
    scale = (blocks.max(axis=1, keepdims=True) - low) / np.float32(15)
    levels = np.minimum((blocks - low) * _inverse(scale) + np.float32(0.5), 15).astype(np.uint8)
    pairs = levels[:, :16] | levels[:, 16:] << 4
    return _rows(scale.astype(np.float16), low.astype(np.float16), pairs)


def dequantise(data: bytes, quant: QuantType, shape: tuple[int, ...]) -> np.ndarray:
    """Return f32 values; `shape` is in NumPy order, the length of a row last."""
    if quant is QuantType.F32:
        return np.frombuffer(data, "<f4").reshape(shape)
    blocks = np.frombuffer(data, np.uint8).reshape(-1, quant.block_bytes)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    if quant is QuantType.Q8_0:
        return (scale * blocks[:, 2:].view(np.int8)).reshape(shape)
    assert quant is QuantType.Q4_1, quant
    low = blocks[:, 2:4].copy().view("<f2").astype(np.float32)
    pairs = blocks[:, 4:]
    return (scale * np.hstack([pairs & 15, pairs >> 4]) + low).reshape(shape)


def _inverse(scale: np.ndarray) -> np.ndarray:
    return np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)


def _round_half_away(values: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(values) + np.float32(0.5)), values)


def _rows(*columns: np.ndarray) -> bytes:
    return np.hstack([np.ascontiguousarray(column).view(np.uint8) for column in columns]).tobytes()
