"""The key-value section of a GGUF header.

Values become bool, int, float, str, `list[str]`, or an `array.array` of numbers (bools as bytes 0 and 1),
which takes no more of the heap than of the file. Arrays of arrays are legal GGUF; no model we know needs one,
and they are refused.
Source: the GGUF specification, `gguf_metadata_value_type`.
"""

from array import array
from typing import TypeAlias

from clutch.formats.gguf_cursor import Cursor, format_error

Value: TypeAlias = "bool | int | float | str | list[str] | array[int] | array[float]"

_TYPECODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_U32 = 4
_STRING_MIN_BYTES = 8
_ENTRY_MIN_BYTES = 8 + 1 + 4 + 1
"""Key length, a key of one byte, value type, a value of one byte."""

ALIGNMENT_KEY = "general.alignment"
_DEFAULT_ALIGNMENT = 32
_TEMPLATE_KEY = "tokenizer.chat_template"


def read_metadata_count(cursor: Cursor) -> int:
    """Read how many entries the section has."""
    return cursor.count("metadata count", limit=cursor.limits.metadata_keys, item_bytes=_ENTRY_MIN_BYTES)


def read_metadata(cursor: Cursor, count: int) -> dict[str, Value]:
    """Read `count` entries; keys are unique.

    Raises:
        ModelFormatError: an entry breaks the format or a limit.
    """
    metadata: dict[str, Value] = {}
    strings_left = cursor.limits.string_elements
    for index in range(count):
        start = cursor.offset
        key = cursor.name(f"metadata key {index}", limit=cursor.limits.key_bytes)
        if key in metadata:
            raise format_error(f"metadata key {index}", start, "a key not used before", key)
        value = _read_value(cursor, key, strings_left)
        if isinstance(value, list):
            strings_left -= len(value)
        metadata[key] = value
    return metadata


def _read_value(cursor: Cursor, key: str, strings_left: int) -> Value:
    start = cursor.offset
    value_type = cursor.u32(f"type of {key}")
    if value_type == _STRING:
        is_template = key == _TEMPLATE_KEY or key.startswith(f"{_TEMPLATE_KEY}.")
        limit = cursor.limits.template_bytes if is_template else cursor.limits.string_bytes
        value: Value = cursor.string(key, limit=limit)
    elif value_type == _ARRAY:
        value = _read_array(cursor, key, strings_left)
    elif value_type in _TYPECODES:
        value = _read_numbers(cursor, key, value_type, 1)[0]
        value = bool(value) if value_type == _BOOL else value
    else:
        raise format_error(f"type of {key}", start, "a value type from 0 to 12", value_type)
    if key == ALIGNMENT_KEY:
        _check_alignment(start, value_type, value)
    return value


def _read_array(cursor: Cursor, key: str, strings_left: int) -> Value:
    start = cursor.offset
    element_type = cursor.u32(f"element type of {key}")
    limit = cursor.limits.array_elements
    field = f"length of {key}"
    if element_type == _STRING:
        count = cursor.count(field, limit=min(limit, strings_left), item_bytes=_STRING_MIN_BYTES)
        return cursor.strings(key, count)
    if element_type not in _TYPECODES:
        expected = "a scalar or string type (arrays do not nest)"
        raise format_error(f"element type of {key}", start, expected, element_type)
    count = cursor.count(field, limit=limit, item_bytes=array(_TYPECODES[element_type]).itemsize)
    return _read_numbers(cursor, key, element_type, count)


def _read_numbers(cursor: Cursor, key: str, value_type: int, count: int) -> "array[int] | array[float]":
    start = cursor.offset
    numbers = cursor.numbers(key, _TYPECODES[value_type], count)
    if value_type == _BOOL and count and max(numbers) > 1:
        index = next(i for i, number in enumerate(numbers) if number > 1)
        raise format_error(key, start + index, "a bool of 0 or 1", numbers[index])
    return numbers


def alignment_of(metadata: dict[str, Value]) -> int:
    """Return the alignment of tensor data in bytes: the file's own, or GGUF's default."""
    alignment = metadata.get(ALIGNMENT_KEY, _DEFAULT_ALIGNMENT)
    assert isinstance(alignment, int), "checked while reading"
    return alignment


def _check_alignment(start: int, value_type: int, value: Value) -> None:
    expected = "a u32 that is a power of two and a multiple of 8"
    if value_type != _U32 or not isinstance(value, int):
        raise format_error(ALIGNMENT_KEY, start, expected, f"value type {value_type}")
    if value < 8 or value & (value - 1):
        raise format_error(ALIGNMENT_KEY, start, expected, value)
