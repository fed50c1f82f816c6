"""Read scalars, strings and arrays from the front of a GGUF file, bounds first.

The cursor may hold only a prefix of the file. Whatever the prefix, the same checks run in the same order, so
that a parse repeated with more bytes ends in the same answer: a count is compared with the limits, then with
the bytes that the *file* has left, and only then with the bytes at hand. Nothing is allocated before that.
"""

import struct
from array import array

from clutch.errors import ModelFormatError
from clutch.formats.gguf_limits import Limits

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class NeedMoreBytes(Exception):
    """The prefix ends too early. A signal to whoever feeds the parser; it never leaves `clutch.formats`."""

    def __init__(self, at_least: int) -> None:
        super().__init__(f"the first {at_least} bytes of the file are needed")
        self.at_least = at_least


def format_error(field: str, offset: int, expected: str, found: object) -> ModelFormatError:
    """Return (not raise) the error for one wrong field of a GGUF header."""
    return ModelFormatError(
        f"GGUF header, {field} at byte {offset}: expected {expected}, found {found}",
        hint="The file is damaged, incomplete or not a GGUF model; fetch it again.",
        field=field,
        offset=offset,
        expected=expected,
        found=found,
    )


class Cursor:
    """A position in the first bytes of a file.

    Args:
        data: the file's first bytes, not more than `file_size`.
        file_size: size of the whole file in bytes.
        limits: bounds on what the header may ask for.

    Every method raises ModelFormatError when the file is wrong or ends too early, and NeedMoreBytes when only
    `data` does.
    """

    def __init__(self, data: bytes | memoryview, file_size: int, limits: Limits) -> None:
        self.offset = 0
        self.limits = limits
        self._data = data
        self._file_size = file_size

    def require(self, n_bytes: int, field: str) -> None:
        """Check that the next `n_bytes` exist and are at hand."""
        self._require_in_file(n_bytes, field)
        if self.offset + n_bytes > len(self._data):
            raise NeedMoreBytes(self.offset + n_bytes)

    def u32(self, field: str) -> int:
        """Read a little-endian u32."""
        self.require(4, field)
        (value,) = _U32.unpack_from(self._data, self.offset)
        self.offset += 4
        return int(value)

    def u64(self, field: str) -> int:
        """Read a little-endian u64."""
        self.require(8, field)
        (value,) = _U64.unpack_from(self._data, self.offset)
        self.offset += 8
        return int(value)

    def count(self, field: str, *, limit: int, item_bytes: int) -> int:
        """Read a u64 that says how many items follow.

        Args:
            field: its name in errors.
            limit: the most that is allowed.
            item_bytes: the least that one item takes in the file.
        """
        start = self.offset
        value = self.u64(field)
        if value > limit:
            raise format_error(field, start, f"at most {limit}", value)
        self._require_in_file(value * item_bytes, field)
        return value

    def string(self, field: str, *, limit: int) -> str:
        """Read a u64 length and that many bytes of UTF-8."""
        length = self.count(f"length of {field}", limit=limit, item_bytes=1)
        self.require(length, field)
        start, self.offset = self.offset, self.offset + length
        try:
            return str(self._data[start : self.offset], "utf-8")
        except UnicodeDecodeError as error:
            at = start + error.start
            raise format_error(field, at, "valid UTF-8", f"byte 0x{self._data[at]:02x}") from None

    def name(self, field: str, *, limit: int) -> str:
        """Read a string that names something: printable ASCII without spaces, not empty."""
        start = self.offset
        name = self.string(field, limit=limit)
        if not name or " " in name or not (name.isascii() and name.isprintable()):
            raise format_error(field, start, "printable ASCII without spaces", repr(name))
        return name

    def strings(self, field: str, count: int) -> list[str]:
        """Read `count` strings, each at most `limits.element_bytes` long.

        The first loop is the fast path of 100,000 tokens and merges. It stops at the first string that it
        cannot take, and `string` reads that one again to say what is wrong with it.
        """
        data, offset, limit = self._data, self.offset, self.limits.element_bytes
        end = min(len(data), self.limits.header_bytes)
        unpack_from = _U64.unpack_from
        strings: list[str] = []
        try:
            for _ in range(count):
                (length,) = unpack_from(data, offset)
                start = offset + 8
                if length > limit or start + length > end:
                    break
                strings.append(str(data[start : start + length], "utf-8"))
                offset = start + length
        except (struct.error, UnicodeDecodeError):
            pass
        self.offset = offset
        for index in range(len(strings), count):
            strings.append(self.string(f"{field}[{index}]", limit=limit))
        return strings

    def numbers(self, field: str, typecode: str, count: int) -> "array[int] | array[float]":
        """Read `count` numbers of an `array` typecode.

        They are copied as they lie: every CPU and the WebAssembly that Pyodide runs on is little-endian, as
        the file is.
        """
        numbers: array[int] | array[float] = array(typecode)
        size_bytes = count * numbers.itemsize
        self.require(size_bytes, field)
        numbers.frombytes(self._data[self.offset : self.offset + size_bytes])
        self.offset += size_bytes
        return numbers

    def _require_in_file(self, n_bytes: int, field: str) -> None:
        for name, end in ("file", self._file_size), ("header limit", self.limits.header_bytes):
            if self.offset + n_bytes > end:
                left = f"{end - self.offset} before the {name} of {end} bytes ends"
                raise format_error(field, self.offset, f"{n_bytes} more bytes", left)
