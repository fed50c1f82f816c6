"""The weight formats in NumPy: what repack_*.wgsl writes and what format_*.wgsl reads, both bit for bit.

A buffer comes as the bytes of its binding. Only the layout is told here; what a file's block means says
`tests/support/numpy_quants.py`.
"""

import numpy as np

from clutch.gpu.weight_formats import FORMATS
from tests.support.numpy_quants import q4_k_scales, q6_k_levels

_TYPES = {layout.name: quant for quant, layout in FORMATS.items()}


def dequantised(b, fmt, rows, columns):
    """Return the (rows, columns) weights behind `quants` and `scales`."""
    quant = _TYPES[fmt]
    n_blocks = rows * columns // quant.block_size
    quants, scales = (
        b[name][: n_blocks * size].reshape(n_blocks, size)
        for name, size in (("quants", FORMATS[quant].quants_bytes), ("scales", FORMATS[quant].scales_bytes))
    )
    return _WEIGHTS[fmt](quants, scales).astype(np.float32).reshape(rows, columns)


def _f32(quants, scales):
    return _as(quants, np.float32)


def _q4_1(quants, scales):
    d, m = np.split(_as(scales, np.float16).astype(np.float32), 2, axis=1)
    return d * _nibbles(quants) + m


def _q4_k(quants, scales):
    d, dmin = np.split(_as(scales[:, :4], np.float16).astype(np.float32), 2, axis=1)
    sc, m = scales[:, 4::2], scales[:, 5::2]
    return ((d * sc)[..., None] * _nibbles(quants, 8) - (dmin * m)[..., None]).reshape(len(quants), 256)


def _q5_0(quants, scales):
    fifth = 1 - np.unpackbits(scales[:, 4:], axis=1, bitorder="little").reshape(-1, 4, 8)
    # [byte of a word, low or high, word] -> weights in order
    fifth = fifth.reshape(-1, 4, 2, 4).transpose(0, 2, 3, 1).reshape(-1, 32)
    levels = (_nibbles(quants) | fifth << 4).astype(np.int32) - 16
    return _as(scales[:, :4], np.float32) * 8 * levels


def _q6_k(quants, scales):
    d = _as(scales[:, :4], np.float32) * 4
    sc = _as(scales[:, 4:20], np.int8).astype(np.float32)
    pairs = scales[:, 20:].reshape(-1, 8, 2, 1, 4) >> np.arange(0, 8, 2, np.uint8).reshape(4, 1) & 3
    high = (pairs ^ 2).reshape(-1, 16, 16)
    levels = (_nibbles(quants, 8).reshape(-1, 16, 16) | high << 4).astype(np.int32) - 32
    return ((d * sc)[..., None] * levels).reshape(len(quants), 256)


def _q8_0(quants, scales):
    return _as(scales[:, :2], np.float16).astype(np.float32) * quants.view(np.int8)


_WEIGHTS = {"f32": _f32, "q4_1": _q4_1, "q4_k": _q4_k, "q5_0": _q5_0, "q6_k": _q6_k, "q8_0": _q8_0}


def _repacked_q4_1(blocks):
    return blocks[:, 4:], blocks[:, :4]


def _repacked_q4_k(blocks):
    pairs = blocks[:, 16:].reshape(-1, 4, 32)
    levels = np.stack([pairs & 15, pairs >> 4], axis=2)  # (blocks, 4, 2, 32)
    sc, m = q4_k_scales(blocks[:, 4:16])
    return _packed(levels), np.hstack([blocks[:, :4], np.stack([sc, m], axis=-1).reshape(-1, 16)])


def _repacked_q5_0(blocks):
    fifth = 1 - np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    fifth = fifth.reshape(-1, 2, 4, 4).transpose(0, 3, 1, 2).reshape(-1, 32)
    return blocks[:, 6:], np.hstack([_scaled(blocks[:, :2], 1 / 8), np.packbits(fifth, axis=1, bitorder="little")])


def _repacked_q6_k(blocks):
    levels = q6_k_levels(blocks).reshape(-1, 8, 2, 4, 4)  # 8 times low and high, word, byte
    high = (levels >> 4 ^ 2) << np.arange(0, 8, 2, np.uint8).reshape(4, 1)
    high = np.bitwise_or.reduce(high, axis=3).reshape(-1, 64)
    return _packed(levels & 15), np.hstack([_scaled(blocks[:, 208:], 1 / 4), blocks[:, 192:208], high])


def _repacked_q8_0(blocks):
    return blocks[:, 2:], np.hstack([blocks[:, :2], np.zeros((len(blocks), 2), np.uint8)])


def _repacked_f32(blocks):
    return blocks, np.zeros((len(blocks), 0), np.uint8)


_REPACKED = {
    "f32": _repacked_f32,
    "q4_1": _repacked_q4_1,
    "q4_k": _repacked_q4_k,
    "q5_0": _repacked_q5_0,
    "q6_k": _repacked_q6_k,
    "q8_0": _repacked_q8_0,
}


def repacked(data, quant):
    """Return (quants, scales) of the stored bytes of whole blocks, a row a block."""
    return _REPACKED[FORMATS[quant].name](np.frombuffer(data, np.uint8).reshape(-1, quant.block_bytes))


def _repack(quant):
    layout, size = FORMATS[quant], quant.block_size

    def repack(b, c, step, files):
        n_items, items_per_row, first_row, stride, offset, half = b["rows"][:24].view(np.uint32).tolist()
        # A thread moves at most 32 weights, a block of the quantisation may have more.
        threads = max(1, size // 32)
        n_blocks, per_row = n_items // threads, items_per_row // threads
        raw = b["raw"][: n_blocks * quant.block_bytes]
        rows = first_row + np.arange(n_blocks) // per_row
        if half:
            head, i = np.divmod(rows, 2 * half)
            rows = head * 2 * half + i % half * 2 + i // half
        to = (rows * stride + offset) % 2**32 * per_row + np.arange(n_blocks) % per_row
        for name, data in zip(("quants", "scales"), repacked(raw, quant), strict=True):
            width = getattr(layout, f"{name}_bytes")
            if width:
                b[name][: len(b[name]) // width * width].reshape(-1, width)[to] = data

    repack.__name__ = f"repack_{layout.name}"
    return repack


REPACKS = {f"repack_{layout.name}": _repack(quant) for quant, layout in FORMATS.items()}
"""The references of the repack kernels, by name."""


def _as(data, kind):
    return np.ascontiguousarray(data).view(kind)


def _nibbles(quants, n=1):
    """Return the levels of n times 32 weights a row: of 16 bytes first the low nibbles, then the high ones."""
    pairs = quants.reshape(len(quants), n, 16)
    levels = np.concatenate([pairs & 15, pairs >> 4], axis=2)
    return levels if n > 1 else levels[:, 0]


def _packed(levels):
    """Return the inverse of `_nibbles` for 256 weights a row."""
    levels = levels.reshape(-1, 8, 2, 16)
    return (levels[:, :, 0] | levels[:, :, 1] << 4).reshape(-1, 128)


def _scaled(halves, factor):
    return (_as(halves, np.float16).astype(np.float32) * np.float32(factor)).view(np.uint8)
