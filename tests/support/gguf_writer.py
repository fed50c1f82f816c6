"""Write small GGUF files, valid ones, and say where each number of the header lies so that a test can lie.

encoded = encode_gguf({"general.architecture": "llama"}, [tensor("w", values, QuantType.Q8_0)])
encoded.data                                    a valid file
encoded.patched({"offset of w": 64})            the same with one wrong number

A large file is written piece by piece: `write_gguf`.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from clutch.formats.quants import QuantType
from tests.support.numpy_quants import quantise


class ValueType(IntEnum):
    U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)


FORMATS = dict(zip(ValueType, ["B", "b", "H", "h", "I", "i", "f", "?", "", "", "Q", "q", "d"], strict=True))


class Typed(NamedTuple):
    """A metadata value with an explicit type; a list becomes an array of it."""

    type: ValueType
    value: object


class Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]  # GGUF order: the length of a row first
    type_id: int
    data: bytes


class Number(NamedTuple):
    """One number of the header: what it says, where it lies, how it is stored."""

    label: str
    offset: int
    format: str


@dataclass
class Encoded:
    """A file and the places of its header's numbers."""

    data: bytes = b""
    header_bytes: int = 0  # up to the padding before the tensor data
    numbers: list[Number] = field(default_factory=list)

    def patched(self, values: Mapping[str, int]) -> bytes:
        """Return the file with some numbers replaced, each cut to the width it is stored in."""
        data = bytearray(self.data)
        places = {number.label: number for number in self.numbers}
        for label, value in values.items():
            _, offset, form = places[label]
            width = struct.calcsize(f"<{form}")
            data[offset : offset + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
        return bytes(data)


def tensor(name: str, values: np.ndarray, quant: QuantType) -> Tensor:
    """Return a tensor of f32 `values`, in NumPy order, stored as `quant`."""
    return Tensor(name, values.shape[::-1], quant.value, quantise(values, quant))


def encode_gguf(
    metadata: Mapping[str, object], tensors: Iterable[Tensor], *, version: int = 3, alignment: int = 32
) -> Encoded:
    """Return the bytes of a file. A plain value gets the type that fits it (int: U32); see `Typed`."""
    tensors = list(tensors)
    places = [Place(item.name, item.shape, item.type_id, len(item.data)) for item in tensors]
    out = _header(metadata, places, version, alignment)
    header_bytes = len(out.data)
    for data in [b"", *(item.data for item in tensors)]:
        out.raw(data)
        out.raw(bytes(-len(out.data) % alignment))
    return Encoded(bytes(out.data), header_bytes, out.numbers)


class Place(NamedTuple):
    """What the header says of a tensor."""

    name: str
    shape: tuple[int, ...]
    type_id: int
    size_bytes: int


def write_gguf(
    path: Path, metadata: Mapping[str, object], tensors: Iterable[tuple[Place, Iterable[bytes]]], *, alignment: int = 32
) -> None:
    """Write a file whose tensors come in pieces, one at a time."""
    tensors = list(tensors)
    header = _header(metadata, [place for place, _ in tensors], 3, alignment)
    with path.open("wb") as file:
        file.write(header.data)
        file.write(bytes(-file.tell() % alignment))
        for place, pieces in tensors:
            start = file.tell()
            for piece in pieces:
                file.write(piece)
            assert file.tell() - start == place.size_bytes, place
            file.write(bytes(-file.tell() % alignment))


def _header(metadata: Mapping[str, object], tensors: Sequence[Place], version: int, alignment: int) -> "_Output":
    out = _Output()
    out.raw(b"GGUF")
    out.number("version", "I", version)
    out.number("tensor count", "Q", len(tensors))
    out.number("metadata count", "Q", len(metadata))
    for key, value in metadata.items():
        out.string(f"key {key}", key)
        out.value(key, value)
    offset = 0
    for item in tensors:
        out.string(f"name of {item.name}", item.name)
        out.number(f"dimensions of {item.name}", "I", len(item.shape))
        for axis, length in enumerate(item.shape):
            out.number(f"dimension {axis} of {item.name}", "Q", length)
        out.number(f"type of {item.name}", "I", item.type_id)
        out.number(f"offset of {item.name}", "Q", offset)
        offset += item.size_bytes + -item.size_bytes % alignment
    return out


class _Output:
    def __init__(self) -> None:
        self.data = bytearray()
        self.numbers: list[Number] = []

    def raw(self, data: bytes) -> None:
        self.data += data

    def number(self, label: str, form: str, value: object) -> None:
        self.numbers.append(Number(label, len(self.data), form))
        self.data += struct.pack(f"<{form}", value)

    def string(self, label: str, text: str) -> None:
        data = text.encode()
        self.number(f"length of {label}", "Q", len(data))
        self.data += data

    def value(self, key: str, value: object) -> None:
        value_type, value = value if isinstance(value, Typed) else (_infer(value), value)
        if isinstance(value, list):
            self.number(f"type of {key}", "I", ValueType.ARRAY)
            self.number(f"element type of {key}", "I", value_type)
            self.number(f"length of {key}", "Q", len(value))
            for index, element in enumerate(value):
                self._scalar(f"{key}[{index}]", value_type, element)
            return
        self.number(f"type of {key}", "I", value_type)
        self._scalar(key, value_type, value)

    def _scalar(self, label: str, value_type: ValueType, value: object) -> None:
        if value_type is ValueType.STRING:
            assert isinstance(value, str)
            self.string(label, value)
        else:
            self.number(f"value of {label}", FORMATS[value_type], value)


def _infer(value: object) -> ValueType:
    if isinstance(value, list):
        return _infer(value[0])
    types = {bool: ValueType.BOOL, int: ValueType.U32, float: ValueType.F32, str: ValueType.STRING}
    return types[type(value)]
