"""Quantise and dequantise whole tensors with NumPy: the oracle of the kernels and of `clutch.formats.quants`.

Rounding follows ggml's reference quantisers (`ggml-quants.c`, quantize_row_*_ref), so the bytes are the same; but for
the K types, whose scales ggml searches: here they follow from the extremes. The blocks' layout is ggml's throughout.
"""

import numpy as np

from clutch.formats.quants import QuantType


def quantise(values: np.ndarray, quant: QuantType) -> bytes:
    """Return the stored bytes of an f32 array whose last axis is a row of whole blocks."""
    values = np.ascontiguousarray(values, np.float32)
    assert values.shape[-1] % quant.block_size == 0, (values.shape, quant)
    return _QUANTISERS[quant](values.reshape(-1, quant.block_size)).tobytes()


def dequantise(data: bytes | np.ndarray, quant: QuantType, shape: tuple[int, ...]) -> np.ndarray:
    """Return f32 values; `shape` is in NumPy order, the length of a row last."""
    blocks = np.frombuffer(data, np.uint8).reshape(-1, quant.block_bytes)
    return _DEQUANTISERS[quant](blocks).astype(np.float32, copy=False).reshape(shape)


def q4_k_scales(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the 6-bit numbers sc and m (n, 8) of the 12 bytes (n, 12) that a Q4_K block keeps them in."""
    low, middle, high = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    sc = np.hstack([low & 63, high & 15 | low >> 6 << 4])
    return sc, np.hstack([middle & 63, high >> 4 | middle >> 6 << 4])


def packed_q4_k_scales(sc: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return the inverse of `q4_k_scales`."""
    low = np.hstack([sc[:, :4] | sc[:, 4:] >> 4 << 6, m[:, :4] | m[:, 4:] >> 4 << 6])
    return np.hstack([low, sc[:, 4:] & 15 | (m[:, 4:] & 15) << 4])


def q6_k_levels(blocks: np.ndarray) -> np.ndarray:
    """Return the levels 0..63 (n, 256) of Q6_K blocks (n, 210)."""
    # (n, half, 32s 0 and 1, byte): the low nibbles are those of 32 weights, the high ones those of the 32 two further.
    pairs = blocks[:, :128].reshape(-1, 2, 2, 32)
    nibbles = np.concatenate([pairs & 15, pairs >> 4], axis=2)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.arange(0, 8, 2, np.uint8).reshape(4, 1) & 3
    return (nibbles | high << 4).reshape(-1, 256)


def _f32(blocks: np.ndarray) -> np.ndarray:
    return blocks.view("<f4")


def _q4_1(blocks: np.ndarray) -> np.ndarray:
    return _halves(blocks[:, :2]) * _levels(blocks[:, 4:]) + _halves(blocks[:, 2:4])


def _q4_k(blocks: np.ndarray) -> np.ndarray:
    sc, m = q4_k_scales(blocks[:, 4:16])
    scale, minimum = _halves(blocks[:, :2]) * sc, _halves(blocks[:, 2:4]) * m
    pairs = blocks[:, 16:].reshape(-1, 4, 32)
    levels = np.stack([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 32)
    return scale[..., None] * levels - minimum[..., None]


def _q5_0(blocks: np.ndarray) -> np.ndarray:
    fifth = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    return _halves(blocks[:, :2]) * ((_levels(blocks[:, 6:]) | fifth << 4).astype(np.float32) - 16)


def _q6_k(blocks: np.ndarray) -> np.ndarray:
    scale = _halves(blocks[:, 208:]) * blocks[:, 192:208].view(np.int8)
    return scale[..., None] * (q6_k_levels(blocks).reshape(-1, 16, 16).astype(np.float32) - 32)


def _q8_0(blocks: np.ndarray) -> np.ndarray:
    return _halves(blocks[:, :2]) * blocks[:, 2:].view(np.int8)


_DEQUANTISERS = {
    QuantType.F32: _f32,
    QuantType.Q4_1: _q4_1,
    QuantType.Q4_K: _q4_k,
    QuantType.Q5_0: _q5_0,
    QuantType.Q6_K: _q6_k,
    QuantType.Q8_0: _q8_0,
}


def _to_f32(values: np.ndarray) -> np.ndarray:
    return values


def _to_q4_1(blocks: np.ndarray) -> np.ndarray:
    low = blocks.min(axis=1, keepdims=True)
    scale = (blocks.max(axis=1, keepdims=True) - low) / np.float32(15)
    levels = np.minimum((blocks - low) * _inverse(scale) + np.float32(0.5), 15).astype(np.uint8)
    return _rows(scale.astype(np.float16), low.astype(np.float16), _pairs(levels))


def _to_q4_k(blocks: np.ndarray) -> np.ndarray:
    parts = blocks.reshape(-1, 8, 32)
    low = np.maximum(-parts.min(axis=2), 0)
    scale = (parts.max(axis=2) + low) / 15
    d, dmin = (np.float16(part.max(axis=1, keepdims=True) / 63) for part in (scale, low))
    sc, m = (
        np.minimum(np.rint(part * _inverse(unit.astype(np.float32))), 63).astype(np.uint8)
        for part, unit in ((scale, d), (low, dmin))
    )
    steps, minima = (d.astype(np.float32) * sc)[..., None], (dmin.astype(np.float32) * m)[..., None]
    levels = np.clip(np.rint((parts + minima) * _inverse(steps)), 0, 15).astype(np.uint8).reshape(-1, 4, 2, 32)
    pairs = (levels[:, :, 0] | levels[:, :, 1] << 4).reshape(-1, 128)
    return _rows(d, dmin, packed_q4_k_scales(sc, m), pairs)


def _to_q5_0(blocks: np.ndarray) -> np.ndarray:
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1, keepdims=True), axis=1)
    scale = largest / np.float32(-16)
    levels = np.minimum(blocks * _inverse(scale) + np.float32(16.5), 31).astype(np.uint8)
    return _rows(scale.astype(np.float16), np.packbits(levels >> 4, axis=1, bitorder="little"), _pairs(levels & 15))


def _to_q6_k(blocks: np.ndarray) -> np.ndarray:
    parts = blocks.reshape(-1, 16, 16)
    scale = np.abs(parts).max(axis=2) / 31
    d = np.float16(scale.max(axis=1, keepdims=True) / 127)
    sc = np.minimum(np.rint(scale * _inverse(d.astype(np.float32))), 127).astype(np.int8)
    steps = (d.astype(np.float32) * sc)[..., None]
    levels = (np.clip(np.rint(parts * _inverse(steps)), -32, 31) + 32).astype(np.uint8).reshape(-1, 2, 4, 32)
    low = levels & 15
    pairs = (low[:, :, :2] | low[:, :, 2:] << 4).reshape(-1, 128)
    high = np.bitwise_or.reduce(levels >> 4 << np.arange(0, 8, 2, np.uint8).reshape(4, 1), axis=2).reshape(-1, 64)
    return _rows(pairs, high, sc, d)


def _to_q8_0(blocks: np.ndarray) -> np.ndarray:
    scale = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    levels = _round_half_away(blocks * _inverse(scale)).astype(np.int8)
    return _rows(scale.astype(np.float16), levels)


_QUANTISERS = {
    QuantType.F32: _to_f32,
    QuantType.Q4_1: _to_q4_1,
    QuantType.Q4_K: _to_q4_k,
    QuantType.Q5_0: _to_q5_0,
    QuantType.Q6_K: _to_q6_k,
    QuantType.Q8_0: _to_q8_0,
}


def _halves(data: np.ndarray) -> np.ndarray:
    return data.copy().view("<f2").astype(np.float32)


def _levels(pairs: np.ndarray) -> np.ndarray:
    return np.hstack([pairs & 15, pairs >> 4])


def _pairs(levels: np.ndarray) -> np.ndarray:
    return levels[:, :16] | levels[:, 16:] << 4


def _inverse(scale: np.ndarray) -> np.ndarray:
    return np.divide(1, scale, out=np.zeros_like(scale), where=scale != 0)


def _round_half_away(values: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(values) + np.float32(0.5)), values)


def _rows(*columns: np.ndarray) -> np.ndarray:
    return np.hstack([np.ascontiguousarray(column).view(np.uint8) for column in columns])
