"""The head of an HTTP/1 request, read strictly: what is ambiguous is refused, never repaired.

Source of the grammar: RFC 9112 sections 2 to 5. Only the origin form of the target ("/path?query") is taken.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

MAX_HEAD_BYTES = 16 * 1024
_REQUEST_LINE = re.compile(r"([A-Za-z]+) (/[!-\"$-~]*) HTTP/1\.([01])")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_METHODS = ("GET", "HEAD")


class HttpError(Exception):
    """A request that is answered with an error status; `detail` is one sentence for the reader."""

    def __init__(self, status: HTTPStatus, detail: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status.value} {status.phrase}")
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Request:
    """A parsed head; the names of `fields` are in lower case, and "host" is among them."""

    method: str
    target: str
    version: str
    fields: Mapping[str, str]

    @property
    def path(self) -> str:
        """The target without its query, still percent-encoded."""
        return self.target.partition("?")[0]

    @property
    def keeps_alive(self) -> bool:
        """Whether the client wants to send another request on this connection."""
        tokens = [token.strip() for token in self.fields.get("connection", "").lower().split(",")]
        return "close" not in tokens if self.version == "1.1" else "keep-alive" in tokens


def parse_head(head: bytes) -> Request:
    r"""Parse a head without its final empty line ("\r\n" between lines).

    Raises:
        HttpError: 400 malformed, 405 neither GET nor HEAD, 413 it announces a body.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    matched = _REQUEST_LINE.fullmatch(first)
    if matched is None:
        raise HttpError(HTTPStatus.BAD_REQUEST, "The request line is malformed.")
    method, target, minor = matched.groups()
    fields = _parse_fields(lines)
    if method not in _METHODS:
        raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(_METHODS)})
    if "host" not in fields:
        raise HttpError(HTTPStatus.BAD_REQUEST, "The Host header is missing.")
    if "transfer-encoding" in fields or fields.get("content-length", "0") != "0":
        raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "A request here has no body.")
    return Request(method, target, f"1.{minor}", fields)


def _parse_fields(lines: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines:
        matched = _FIELD.fullmatch(line)
        if matched is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "A header line is malformed.")
        name, value = matched[1].lower(), matched[2]
        if name in fields and name in {"host", "content-length"}:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"The {name} header is repeated.")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields
