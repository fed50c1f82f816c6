"""The tensor section of a GGUF header: names, shapes, types and places, but no weights.

Shapes and offsets are u64 in the file, and attackers choose them so that products and sums wrap. Python's
integers do not, so they are compared as they are.
Source: the GGUF specification, `gguf_tensor_info_t`; ggml's `gguf_init_from_file_impl`.
"""

import math
from dataclasses import dataclass

from clutch.formats.gguf_cursor import Cursor, format_error
from clutch.formats.quants import BY_TYPE_ID, QuantType, row_size_bytes

TENSOR_MIN_BYTES = 8 + 1 + 4 + 8 + 4 + 8
"""Name length, a name of one byte, number of dimensions, one dimension, type, offset."""


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies and what it is made of."""

    name: str
    shape: tuple[int, ...]
    """GGUF order: the length of a row first."""
    type: QuantType
    offset: int
    """Of its first byte, from the start of the file."""
    size_bytes: int


def read_tensor_infos(cursor: Cursor, count: int, alignment: int) -> list[TensorInfo]:
    """Read `count` entries; their data lie one after the other, each starting aligned.

    Returns:
        The entries with offsets as the file gives them: from the start of the data section.

    Raises:
        ModelFormatError: an entry breaks the format or a limit, or its data do not follow the one before.
    """
    infos: dict[str, TensorInfo] = {}
    data_end = 0
    for index in range(count):
        start = cursor.offset
        name = cursor.name(f"name of tensor {index}", limit=cursor.limits.name_bytes)
        if name in infos:
            raise format_error(f"name of tensor {index}", start, "a name not used before", name)
        shape = _read_shape(cursor, name)
        quant = _read_type(cursor, name, shape[0])
        start = cursor.offset
        offset = cursor.u64(f"offset of {name}")
        if offset != data_end:
            expected = f"{data_end}, where the data before it end"
            raise format_error(f"offset of {name}", start, expected, offset)
        size_bytes = row_size_bytes(quant, shape[0]) * math.prod(shape[1:])
        data_end = align(offset + size_bytes, alignment)
        infos[name] = TensorInfo(name, shape, quant, offset, size_bytes)
    return list(infos.values())


def align(offset: int, alignment: int) -> int:
    """Return the first multiple of `alignment` that is not below `offset`; both in bytes."""
    return (offset + alignment - 1) // alignment * alignment


def _read_shape(cursor: Cursor, name: str) -> tuple[int, ...]:
    start = cursor.offset
    n_dims = cursor.u32(f"dimensions of {name}")
    if not 1 <= n_dims <= cursor.limits.dims:
        raise format_error(f"dimensions of {name}", start, f"1 to {cursor.limits.dims}", n_dims)
    start = cursor.offset
    shape = tuple(cursor.u64(f"shape of {name}") for _ in range(n_dims))
    if 0 in shape:
        raise format_error(f"shape of {name}", start, "no dimension of 0", str(shape))
    return shape


def _read_type(cursor: Cursor, name: str, row: int) -> QuantType:
    start = cursor.offset
    type_id = cursor.u32(f"type of {name}")
    quant = BY_TYPE_ID.get(type_id)
    if quant is None:
        raise format_error(f"type of {name}", start, "a known ggml type", type_id)
    if row % quant.block_size:
        expected = f"rows of whole {quant.name} blocks of {quant.block_size}"
        raise format_error(f"shape of {name}", start, expected, f"rows of {row}")
    return quant
