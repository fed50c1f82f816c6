"""One byte range of a representation (RFC 9110 section 14); several at once, or malformed ones, mean the
whole.
"""

import re
from http import HTTPStatus

from serving.request import HttpError

_SINGLE = re.compile(r"bytes=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII)


def parse_range(value: str | None, size_bytes: int) -> range | None:
    """Return the offsets that a Range header asks for, or None for the whole representation.

    Raises:
        HttpError: 416, the range begins beyond the end.
    """
    matched = _SINGLE.fullmatch(value or "")
    if matched is None or matched[0].strip() == "bytes=-":
        return None
    first, last = matched.groups()
    if not first:
        offsets = range(max(0, size_bytes - int(last)), size_bytes)
    elif last and int(last) < int(first):
        return None
    else:
        offsets = range(int(first), min(int(last or size_bytes) + 1, size_bytes))
    if not offsets:
        unsatisfied = {"Content-Range": f"bytes */{size_bytes}"}
        raise HttpError(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=unsatisfied)
    return offsets
