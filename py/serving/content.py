"""An open representation: what a response sends, with the facts that its headers need."""

import io
import os
import stat
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from serving.request import HttpError


@dataclass(frozen=True)
class Content:
    """`size_bytes` bytes in `stream`, which whoever holds this must close; `etag` includes its quotes."""

    mime: str
    size_bytes: int
    etag: str
    stream: BinaryIO


def of_file(path: Path, mime: str) -> Content:
    """Open a regular file; its tag is its size and modification time, so that no byte is read for it.

    Raises:
        HttpError: 404, there is none or it cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # before open: opening a pipe would wait for its writer
            raise HttpError(HTTPStatus.NOT_FOUND)
        stream = path.open("rb")
    except (OSError, ValueError):
        raise HttpError(HTTPStatus.NOT_FOUND) from None
    status = os.fstat(stream.fileno())
    return Content(mime, status.st_size, f'"{status.st_size:x}-{status.st_mtime_ns:x}"', stream)


def of_bytes(data: bytes, mime: str, digest: str) -> Content:
    """Wrap bytes in memory whose hash is `digest`."""
    return Content(mime, len(data), f'"{digest}"', io.BytesIO(data))
