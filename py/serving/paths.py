"""From URL paths to names that are safe to look up: decoded once; what could mean two things is refused."""

import os
import re
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote_to_bytes

from serving.request import HttpError

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\/:%]")


def split_path(path: str) -> tuple[str, ...]:
    """Return the decoded segments of a percent-encoded path; "/" has none.

    Raises:
        HttpError: 400 for a bad or double escape, a control character, a backslash, colon or encoded slash,
            an empty, "." or ".." segment.
    """
    if path == "/":
        return ()
    return tuple(_decode(segment) for segment in path.removeprefix("/").split("/"))


def is_safe_name(name: str) -> bool:
    """Say whether `name` can be one decoded segment of a path."""
    return name not in {"", ".", ".."} and _FORBIDDEN.search(name) is None


def contained(root: Path, relative: str) -> str | None:
    """Follow symbolic links from `root`/`relative`; return their end relative to `root`, None if outside."""
    real_root = os.path.realpath(root)
    real = os.path.realpath(os.path.join(real_root, relative))
    try:
        is_inside = os.path.commonpath([real_root, real]) == real_root
    except ValueError:  # another drive
        return None
    return Path(os.path.relpath(real, real_root)).as_posix() if is_inside else None


def _decode(segment: str) -> str:
    if _BAD_ESCAPE.search(segment):
        raise HttpError(HTTPStatus.BAD_REQUEST, "The path has a malformed escape.")
    try:
        name = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "The path is not UTF-8.") from None
    if not is_safe_name(name):
        raise HttpError(HTTPStatus.BAD_REQUEST, "The path is not in its plain form.")
    return name
