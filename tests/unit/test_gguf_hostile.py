"""GGUF files that are each wrong in one named way."""

import dataclasses
import json
import struct

import numpy as np
import pytest

from clutch.errors import ModelFormatError
from clutch.formats.gguf import DEFAULT, parse_header
from clutch.formats.quants import QuantType
from tests.support.gguf_writer import Tensor, Typed, ValueType, encode_gguf, tensor

METADATA = {
    "general.architecture": "llama",
    "general.alignment": 32,
    "a.flag": True,
    "a.flags": [True, False],
    "a.number": 1.5,
    "a.numbers": Typed(ValueType.I32, [1, 2, 3]),
    "a.strings": ["x", "yy", "zzz"],
}
TENSORS = [
    tensor("first", np.ones((2, 32), np.float32), QuantType.Q8_0),  # 68 bytes, padded to 96
    tensor("second", np.ones(8, np.float32), QuantType.F32),
]
GOOD = encode_gguf(METADATA, TENSORS)
HUGE = {"2^31": 1 << 31, "2^32": 1 << 32, "2^53": 1 << 53, "2^63": 1 << 63, "2^64-1": (1 << 64) - 1}


def patched(**values):
    """Return GOOD with numbers replaced; underscores in a label stand for spaces."""
    return GOOD.patched({label.replace("_", " "): value for label, value in values.items()})


def replaced(old, new):
    assert GOOD.data.count(old) == 1 and len(old) == len(new)
    return GOOD.data.replace(old, new)


def with_metadata(**entries):
    return encode_gguf({**METADATA, **entries}, TENSORS).data


def with_tensors(*tensors):
    return encode_gguf(METADATA, tensors).data


def raw(name, shape=(32,), type_id=8, data=bytes(34)):
    return Tensor(name, shape, type_id, data)


#: name -> (file, the field that the error names)
CASES = {
    # What is not GGUF.
    "empty": (b"", "magic"),
    "one byte": (b"G", "magic"),
    "gzip": (b"\x1f\x8b\x08" + bytes(61), "magic"),
    "zip": (b"PK\x03\x04" + bytes(60), "magic"),
    "web page": (b"\n <!DOCTYPE html><html><body>Not found</body>", "magic"),
    "safetensors": (struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[1]}}', "magic"),
    "git lfs pointer": (b"version https://git-lfs.example/spec/v1\noid sha256:00", "magic"),
    "swapped magic": (b"FUGG" + GOOD.data[4:], "magic"),
    "lower-case magic": (b"gguf" + GOOD.data[4:], "magic"),
    "zeros": (bytes(64), "magic"),
    "big-endian": (patched(version=3 << 24), "version"),
    "version 0": (patched(version=0), "version"),
    "version 1": (patched(version=1), "version"),
    "version 4": (patched(version=4), "version"),
    "magic alone": (b"GGUF", "version"),
    "no counts": (GOOD.data[:8], "tensor count"),
    # Counts.
    **{f"tensor count {name}": (patched(tensor_count=n), "tensor count") for name, n in HUGE.items()},
    **{f"metadata count {name}": (patched(metadata_count=n), "metadata count") for name, n in HUGE.items()},
    "more tensors than bytes left": (patched(tensor_count=100), "tensor count"),
    "more metadata than bytes left": (patched(metadata_count=400), "metadata count"),
    "one tensor too many": (patched(tensor_count=3), "name of tensor 2"),
    "one entry too many": (patched(metadata_count=8), "length of name of tensor 0"),
    "one entry too few": (patched(metadata_count=6), "dimensions of a.strings"),
    # Keys.
    "empty key": (with_metadata(**{"": 1}), "metadata key 7"),
    "key with NUL": (replaced(b"a.number\x06", b"a.num\x00er\x06"), "metadata key 4"),
    "key with a space": (with_metadata(**{"a b": 1}), "metadata key 7"),
    "key not ASCII": (with_metadata(**{"clé": 1}), "metadata key 7"),
    "key of invalid UTF-8": (replaced(b"a.number\x06", b"a.n\xffmber\x06"), "metadata key 4"),
    "key too long": (with_metadata(**{"k" * 257: 1}), "length of metadata key 7"),
    "key length into the next entries": (patched(**{"length of key a.flag": 250}), "metadata key 2"),
    "duplicate key": (replaced(b"a.numbers", b"a.strings"), "metadata key 6"),
    # Values.
    "unknown value type": (patched(**{"type of a.number": 13}), "type of a.number"),
    "value type 2^31": (patched(**{"type of a.number": 1 << 31}), "type of a.number"),
    "bool of 2": (patched(**{"value of a.flag": 2}), "a.flag"),
    "bool of 255 in an array": (patched(**{"value of a.flags[1]": 255}), "a.flags"),
    **{
        f"string length {k}": (
            patched(**{"length of general.architecture": n}),
            "length of general.architecture",
        )
        for k, n in HUGE.items()
    },
    "string beyond the file": (
        patched(**{"length of general.architecture": 2000}),
        "length of general.architecture",
    ),
    "string of invalid UTF-8": (replaced(b"llama", b"ll\xe9ma"), "general.architecture"),
    "string with a surrogate": (replaced(b"llama", b"l\xed\xa0\x80a"), "general.architecture"),
    "string too long": (with_metadata(s="s" * (DEFAULT.string_bytes + 1)), "length of s"),
    "template too long": (
        with_metadata(**{"tokenizer.chat_template": "t" * 65537}),
        "length of tokenizer.chat_template",
    ),
    "named template too long": (
        with_metadata(**{"tokenizer.chat_template.x": "t" * 65537}),
        "length of tokenizer.chat_template.x",
    ),
    # Arrays.
    **{f"array length {k}": (patched(**{"length of a.numbers": n}), "length of a.numbers") for k, n in HUGE.items()},
    **{f"strings length {k}": (patched(**{"length of a.strings": n}), "length of a.strings") for k, n in HUGE.items()},
    "array beyond the file": (patched(**{"length of a.numbers": 150}), "length of a.numbers"),
    "strings beyond the file": (patched(**{"length of a.strings": 80}), "length of a.strings"),
    "array of arrays": (patched(**{"element type of a.numbers": 9}), "element type of a.numbers"),
    "unknown element type": (patched(**{"element type of a.numbers": 13}), "element type of a.numbers"),
    "element of invalid UTF-8": (replaced(b"zzz", b"z\xc0z"), "a.strings[2]"),
    "element too long": (with_metadata(s=["t" * 1025]), "length of s[0]"),
    "element length 2^64-1": (patched(**{"length of a.strings[1]": -1}), "length of a.strings[1]"),
    "element beyond the file": (patched(**{"length of a.strings[2]": 1000}), "length of a.strings[2]"),
    # Alignment.
    "alignment 0": (patched(**{"value of general.alignment": 0}), "general.alignment"),
    "alignment 4": (patched(**{"value of general.alignment": 4}), "general.alignment"),
    "alignment 48": (patched(**{"value of general.alignment": 48}), "general.alignment"),
    "alignment 2^31": (patched(**{"value of general.alignment": 1 << 31}), "offset of second"),
    "alignment is a float": (patched(**{"type of general.alignment": 6}), "general.alignment"),
    "alignment is an i32": (patched(**{"type of general.alignment": 5}), "general.alignment"),
    "alignment is an array": (with_metadata(**{"general.alignment": [32]}), "general.alignment"),
    # Tensors.
    "empty tensor name": (with_tensors(raw("")), "name of tensor 0"),
    "tensor name of 64 bytes": (with_tensors(raw("n" * 64)), "length of name of tensor 0"),
    "tensor name with NUL": (replaced(b"second", b"seco\x00d"), "name of tensor 1"),
    "tensor name with a newline": (replaced(b"second", b"seco\nd"), "name of tensor 1"),
    "duplicate tensor": (with_tensors(raw("same"), raw("same")), "name of tensor 1"),
    "no dimensions": (patched(**{"dimensions of first": 0}), "dimensions of first"),
    "five dimensions": (patched(**{"dimensions of first": 5}), "dimensions of first"),
    "2^32-1 dimensions": (patched(**{"dimensions of first": -1}), "dimensions of first"),
    "zero row": (patched(**{"dimension 0 of first": 0}), "shape of first"),
    "zero rows": (patched(**{"dimension 1 of first": 0}), "shape of first"),
    "row of half a block": (patched(**{"dimension 0 of first": 48}), "shape of first"),
    "type 4, removed": (patched(**{"type of first": 4}), "type of first"),
    "type 99": (patched(**{"type of first": 99}), "type of first"),
    "type 2^31": (patched(**{"type of first": 1 << 31}), "type of first"),
    **{f"{k} rows": (patched(**{"dimension 1 of first": n}), "offset of second") for k, n in HUGE.items()},
    **{f"row of {k}": (patched(**{"dimension 0 of second": n}), "data of second") for k, n in HUGE.items()},
    "element count wraps to 0": (with_tensors(raw("t", (1 << 32, 1 << 32))), "data of t"),
    "byte count wraps to 34": (with_tensors(raw("t", (32, (1 << 64) - 1, 2, 1))), "data of t"),
    "sizes wrap in sum": (with_tensors(raw("t", (1 << 60,)), raw("u", (1 << 60,))), "offset of u"),
    # Places.
    "first offset not 0": (patched(**{"offset of first": 32}), "offset of first"),
    "overlap": (patched(**{"offset of second": 64}), "offset of second"),
    "same place": (patched(**{"offset of second": 0}), "offset of second"),
    "gap": (patched(**{"offset of second": 128}), "offset of second"),
    "offset not aligned": (patched(**{"offset of second": 68}), "offset of second"),
    "offset beyond the file": (patched(**{"offset of second": 1 << 40}), "offset of second"),
    "offset 2^64-1": (patched(**{"offset of second": -1}), "offset of second"),
    "second before first": (patched(**{"offset of first": 96, "offset of second": 0}), "offset of first"),
    "data cut by a byte": (GOOD.data[:-1], "data of second"),
    "no data": (GOOD.data[: GOOD.header_bytes], "data of first"),
}


def test_the_file_they_start_from_is_good():
    header = parse_header(GOOD.data, len(GOOD.data))
    assert list(header.tensors) == ["first", "second"]
    assert header.trailing_bytes == 0


@pytest.mark.parametrize(("data", "field"), CASES.values(), ids=CASES)
def test_one_fault_one_error(data, field):
    with pytest.raises(ModelFormatError) as caught:
        parse_header(data, len(data))
    error = caught.value
    assert error.data.keys() == {"field", "offset", "expected", "found"}
    assert error.data["field"] == field
    assert 0 <= error.data["offset"] < len(data) + 32
    assert field in error.message and f"byte {error.data['offset']}" in error.message
    assert len(error.message) < 600
    json.dumps(error.to_wire(), allow_nan=False)


def test_there_are_enough_cases():
    assert len(CASES) >= 60


@pytest.mark.parametrize(
    ("name", "found"),
    {
        "empty": "an empty file",
        "gzip": "a gzip archive",
        "zip": "a zip archive",
        "web page": "a web page",
        "safetensors": "a safetensors file",
        "git lfs pointer": "a Git LFS pointer",
        "swapped magic": "swapped bytes",
        "big-endian": "a big-endian file",
        "zeros": "bytes 00 00 00 00",
    }.items(),
)
def test_a_foreign_file_is_named(name, found):
    data, _ = CASES[name]
    with pytest.raises(ModelFormatError, match=found):
        parse_header(data, len(data))


@pytest.mark.parametrize(
    ("limit", "field"),
    {
        "header_bytes": "offset of second",
        "metadata_keys": "metadata count",
        "key_bytes": "length of metadata key 0",
        "string_bytes": "length of general.architecture",
        "element_bytes": "length of a.strings[2]",
        "array_elements": "length of a.numbers",
        "string_elements": "length of a.strings",
        "tensors": "tensor count",
        "name_bytes": "length of name of tensor 1",
        "dims": "dimensions of first",
    }.items(),
)
def test_every_limit_holds(limit, field):
    just_enough = {
        "header_bytes": GOOD.header_bytes,
        "metadata_keys": len(METADATA),
        "key_bytes": len("general.architecture"),
        "string_bytes": len("llama"),
        "element_bytes": len("zzz"),
        "array_elements": 3,
        "string_elements": 3,
        "tensors": 2,
        "name_bytes": len("second"),
        "dims": 2,
    }[limit]
    parse_header(GOOD.data, len(GOOD.data), dataclasses.replace(DEFAULT, **{limit: just_enough}))
    with pytest.raises(ModelFormatError) as caught:
        parse_header(GOOD.data, len(GOOD.data), dataclasses.replace(DEFAULT, **{limit: just_enough - 1}))
    assert caught.value.data["field"] == field


def test_strings_of_all_arrays_together_are_limited():
    limits = dataclasses.replace(DEFAULT, string_elements=5)
    data = with_metadata(more=["a", "b", "c"])
    with pytest.raises(ModelFormatError, match="length of more"):
        parse_header(data, len(data), limits)
