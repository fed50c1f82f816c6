"""Block layouts of ggml's tensor types, and a reference dequantiser for those we run.

A row of a tensor is a whole number of blocks; a block holds `block_size` weights in `block_bytes` bytes.
Every type that ggml can store is listed, so that a file with a type we do not run can be refused by name.
Source: ggml's `ggml-common.h` (block structs) and the type numbers of the GGUF specification.
"""

import struct
from collections.abc import Callable
from enum import Enum


class QuantType(Enum):
    """A ggml tensor type; the enum's value is the number that a GGUF file stores."""

    block_size: int
    block_bytes: int

    F32 = 0, 1, 4
    F16 = 1, 1, 2
    Q4_0 = 2, 32, 18
    Q4_1 = 3, 32, 20
    Q5_0 = 6, 32, 22
    Q5_1 = 7, 32, 24
    Q8_0 = 8, 32, 34
    Q8_1 = 9, 32, 36
    Q2_K = 10, 256, 84
    Q3_K = 11, 256, 110
    Q4_K = 12, 256, 144
    Q5_K = 13, 256, 176
    Q6_K = 14, 256, 210
    Q8_K = 15, 256, 292
    IQ2_XXS = 16, 256, 66
    IQ2_XS = 17, 256, 74
    IQ3_XXS = 18, 256, 98
    IQ1_S = 19, 256, 50
    IQ4_NL = 20, 32, 18
    IQ3_S = 21, 256, 110
    IQ2_S = 22, 256, 82
    IQ4_XS = 23, 256, 136
    I8 = 24, 1, 1
    I16 = 25, 1, 2
    I32 = 26, 1, 4
    I64 = 27, 1, 8
    F64 = 28, 1, 8
    IQ1_M = 29, 256, 56
    BF16 = 30, 1, 2
    TQ1_0 = 34, 256, 54
    TQ2_0 = 35, 256, 66
    MXFP4 = 39, 32, 17
    NVFP4 = 40, 64, 36
    Q1_0 = 41, 128, 18

    def __new__(cls, type_id: int, block_size: int, block_bytes: int) -> "QuantType":
        """Make the type number the enum's value, so that members hash and print by it."""
        member = object.__new__(cls)
        member._value_ = type_id
        member.block_size = block_size
        member.block_bytes = block_bytes
        return member


BY_TYPE_ID = {quant.value: quant for quant in QuantType}
"""The types that a GGUF file may name, by the number in the file."""


def row_size_bytes(quant: QuantType, n: int) -> int:
    """Return the bytes of a row of `n` weights; `n` is a multiple of the type's block size."""
    assert n % quant.block_size == 0, f"{n} weights are not whole blocks of {quant.name}"
    return n // quant.block_size * quant.block_bytes


def dequantise_block(quant: QuantType, block: bytes | memoryview) -> list[float]:
    """Return the weights of one block of a type in `SUPPORTED`, in order."""
    assert len(block) == quant.block_bytes
    return _DEQUANTISERS[quant](block)


def _f32(block: bytes | memoryview) -> list[float]:
    return list(struct.unpack("<f", block))


def _q4_1(block: bytes | memoryview) -> list[float]:
    """f16 scale, f16 minimum, then byte j: weight j in its low, j + 16 in its high nibble; w = scale * q + minimum."""
    scale, minimum, *pairs = struct.unpack("<ee16B", block)
    return [scale * level + minimum for level in _nibbles(pairs)]


def _q4_k(block: bytes | memoryview) -> list[float]:
    """f16 d, f16 dmin, 12 bytes of 6-bit numbers sc and m for each 32 weights, then 32 bytes for each 64.

    Byte i holds weight i in its low and weight i + 32 in its high nibble; w = d * sc * q - dmin * m.
    """
    d, dmin, *levels = struct.unpack("<ee140B", block)
    low, middle, high = levels[0:4], levels[4:8], levels[8:12]
    scales = [byte & 63 for byte in low] + [byte & 15 | top >> 6 << 4 for byte, top in zip(high, low, strict=True)]
    minima = [byte & 63 for byte in middle] + [
        byte >> 4 | top >> 6 << 4 for byte, top in zip(high, middle, strict=True)
    ]
    nibbles = [level for at in range(12, 140, 32) for level in _nibbles(levels[at : at + 32])]
    return [d * scales[i // 32] * level - dmin * minima[i // 32] for i, level in enumerate(nibbles)]


def _q5_0(block: bytes | memoryview) -> list[float]:
    """f16 scale, u32 of the fifth bits, nibbles as in Q4_1; w = scale * (q - 16)."""
    scale, fifth, *pairs = struct.unpack("<eI16B", block)
    return [scale * ((level | (fifth >> i & 1) << 4) - 16) for i, level in enumerate(_nibbles(pairs))]


def _q6_k(block: bytes | memoryview) -> list[float]:
    """128 bytes of nibbles, 64 of bits 4 and 5, an int8 sc for each 16 weights, f16 d; w = d * sc * (q - 32).

    Each half of the block is four times 32 weights: the nibbles of 0 and 2, and of 1 and 3, share 32 bytes; the high
    bits of all four share 32.
    """
    levels, (*scales, d) = block[:192], struct.unpack("<16be", block[192:])
    weights = []
    for i in range(256):
        half, j, at = i // 128, i % 128 // 32, i % 32
        nibble = levels[64 * half + 32 * (j % 2) + at] >> 4 * (j // 2) & 15
        high = levels[128 + 32 * half + at] >> 2 * j & 3
        weights.append(d * scales[i // 16] * ((nibble | high << 4) - 32))
    return weights


def _q8_0(block: bytes | memoryview) -> list[float]:
    """f16 scale, 32 signed bytes; w = scale * q."""
    scale, *levels = struct.unpack("<e32b", block)
    return [scale * level for level in levels]


def _nibbles(pairs: list[int]) -> list[int]:
    """Return the low nibbles of some bytes, then the high ones."""
    return [pair & 15 for pair in pairs] + [pair >> 4 for pair in pairs]


_DEQUANTISERS: dict[QuantType, Callable[[bytes | memoryview], list[float]]] = {
    QuantType.F32: _f32,
    QuantType.Q4_1: _q4_1,
    QuantType.Q4_K: _q4_k,
    QuantType.Q5_0: _q5_0,
    QuantType.Q6_K: _q6_k,
    QuantType.Q8_0: _q8_0,
}

SUPPORTED = frozenset(_DEQUANTISERS)
"""The types that our kernels read."""
