"""Block layouts of ggml's tensor types, and a reference dequantiser for those we run.

A row of a tensor is a whole number of blocks; a block holds `block_size` weights in `block_bytes` bytes.
Every type that ggml can store is listed, so that a file with a type we do not run can be refused by name.
Source: ggml's `ggml-common.h` (block structs) and the type numbers of the GGUF specification.
"""

import struct
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

SUPPORTED = frozenset({QuantType.F32, QuantType.Q4_1, QuantType.Q8_0})
"""The types that our kernels read."""


def row_size_bytes(quant: QuantType, n: int) -> int:
    """Return the bytes of a row of `n` weights; `n` is a multiple of the type's block size."""
    assert n % quant.block_size == 0, f"{n} weights are not whole blocks of {quant.name}"
    return n // quant.block_size * quant.block_bytes


def dequantise_block(quant: QuantType, block: bytes | memoryview) -> list[float]:
    """Return the weights of one block of a type in `SUPPORTED`, in order.

    Q4_1  f16 scale, f16 minimum, 16 bytes: byte j holds weight j in its low and weight j + 16 in its high
          nibble; w = scale * q + minimum
    Q8_0  f16 scale, 32 signed bytes; w = scale * q
    """
    assert quant in SUPPORTED and len(block) == quant.block_bytes
    if quant is QuantType.F32:
        return list(struct.unpack("<f", block))
    if quant is QuantType.Q8_0:
        scale, *levels = struct.unpack("<e32b", block)
        return [scale * level for level in levels]
    scale, minimum, *pairs = struct.unpack("<ee16B", block)
    levels = [pair & 15 for pair in pairs] + [pair >> 4 for pair in pairs]
    return [scale * level + minimum for level in levels]
