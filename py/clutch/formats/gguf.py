"""Read the header of a GGUF file (versions 2 and 3) that may be broken or hostile.

Only the header is read, never a weight. What comes out is consistent: every tensor lies inside the file,
aligned, in order, without gap or overlap, and its size follows from its shape and type. Python's integers do
not wrap, so sums and products are compared as they are; everything that passes is at most the file's size.
Source: the GGUF specification (ggml `docs/gguf.md`) and the checks of ggml's own reader (`src/gguf.cpp`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from clutch.errors import SourceError
from clutch.formats.gguf_cursor import Cursor, NeedMoreBytes, format_error
from clutch.formats.gguf_limits import DEFAULT, Limits
from clutch.formats.gguf_metadata import Value, alignment_of, read_metadata, read_metadata_count
from clutch.formats.gguf_tensors import TENSOR_MIN_BYTES, TensorInfo, align, read_tensor_infos
from clutch.formats.signature import describe_foreign

__all__ = ["DEFAULT", "GGUFHeader", "Limits", "NeedMoreBytes", "TensorInfo", "parse_header", "read_header"]

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_FIXED_BYTES = 4 + 4 + 8 + 8
"""Magic, version, tensor count, metadata count."""
_FIRST_READ_BYTES = 4 << 20
"""Enough for a header with 100,000 tokens; SmolLM2's is 1.8 MB."""


@dataclass(frozen=True)
class GGUFHeader:
    """Everything that a GGUF file says before its weights."""

    version: int
    metadata: dict[str, Value]
    tensors: dict[str, TensorInfo]
    """By name, in the order of the file, which is also the order of their data."""
    alignment: int
    data_offset: int
    file_size: int

    @property
    def trailing_bytes(self) -> int:
        """Bytes of the file after the last tensor and its padding: 0 in an honest file."""
        end = max((tensor.offset + tensor.size_bytes for tensor in self.tensors.values()), default=self.data_offset)
        return max(0, self.file_size - align(end, self.alignment))


def parse_header(data: bytes | memoryview, file_size: int, limits: Limits = DEFAULT) -> GGUFHeader:
    """Parse a header from the first bytes of a file.

    Args:
        data: the file's first bytes, as many as are at hand, not more than `file_size`.
        file_size: size of the whole file in bytes.
        limits: bounds on what the header may ask for.

    Raises:
        NeedMoreBytes: the header is longer than `data`; call again with at least that many bytes.
        ModelFormatError: the file is not GGUF, breaks the format, exceeds a limit or is too short.
    """
    assert len(data) <= file_size, f"{len(data)} bytes of a file of {file_size}"
    cursor = Cursor(data, file_size, limits)
    version = _read_preamble(cursor, data, file_size)
    tensor_count = cursor.count("tensor count", limit=limits.tensors, item_bytes=TENSOR_MIN_BYTES)
    metadata = read_metadata(cursor, read_metadata_count(cursor))
    alignment = alignment_of(metadata)
    infos = read_tensor_infos(cursor, tensor_count, alignment)
    data_offset = align(cursor.offset, alignment)
    tensors = {info.name: replace(info, offset=data_offset + info.offset) for info in infos}
    for tensor in tensors.values():
        if tensor.offset + tensor.size_bytes > file_size:
            expected, found = f"{tensor.size_bytes} bytes", f"a file of {file_size} bytes"
            raise format_error(f"data of {tensor.name}", tensor.offset, expected, found)
    return GGUFHeader(version, metadata, tensors, alignment, data_offset, file_size)


async def read_header(
    read: Callable[[int, int], Awaitable[bytes]],
    file_size: int,
    limits: Limits = DEFAULT,
    *,
    first_bytes: int = _FIRST_READ_BYTES,
) -> GGUFHeader:
    """Fetch as much of a file as its header needs, and parse it.

    The prefix at least doubles with each try, so all tries together cost at most twice the last one.

    Args:
        read: `await read(offset, length)` gives exactly those bytes of the file.
        file_size: size of the whole file in bytes.
        limits: bounds on what the header may ask for.
        first_bytes: how much to ask for first.

    Raises:
        ModelFormatError: as `parse_header`.
        SourceError: `read` gave another number of bytes than it was asked for.
    """
    data = b""
    wanted = min(first_bytes, limits.header_bytes, file_size)
    while True:
        piece = await read(len(data), wanted - len(data))
        if len(piece) != wanted - len(data):
            raise SourceError(
                f"asked the source for {wanted - len(data)} bytes at {len(data)}, got {len(piece)}",
                hint="The file changed or the server does not answer range requests; try again.",
                offset=len(data),
                expected=wanted - len(data),
                found=len(piece),
            )
        data += piece
        try:
            return parse_header(data, file_size, limits)
        except NeedMoreBytes as need:
            wanted = min(max(need.at_least, 2 * len(data)), limits.header_bytes, file_size)


def _read_preamble(cursor: Cursor, data: bytes | memoryview, file_size: int) -> int:
    """Read magic and version; a foreign file is named by what it is."""
    head_bytes = min(_FIXED_BYTES, file_size)
    cursor.require(head_bytes, "magic")
    head = bytes(data[:head_bytes])
    if not head.startswith(_MAGIC):
        raise format_error("magic", 0, "GGUF", describe_foreign(head))
    cursor.offset = len(_MAGIC)
    version = cursor.u32("version")
    if version not in _VERSIONS:
        is_swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
        found = "a big-endian file" if is_swapped else version
        raise format_error("version", len(_MAGIC), "2 or 3", found)
    return version
