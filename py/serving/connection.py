"""One client's connection: read a head, check it, answer it; again while both sides want to.

Every wait has an end: a head must be complete, and each piece of an answer taken, within `TIMEOUT_S`. A
client that goes away is not an event.
"""

import contextlib
import socket
import time
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import BinaryIO

from serving.content import Content
from serving.guard import Guard
from serving.headers import HeaderPolicy
from serving.paths import split_path
from serving.ranges import parse_range
from serving.request import MAX_HEAD_BYTES, HttpError, Request, parse_head
from serving.site import Site

TIMEOUT_S = 30.0
_PIECE_BYTES = 256 * 1024
_LINGER_S = 1.0
_END_OF_HEAD = b"\r\n\r\n"


class Connection:
    """Serves `site` on an accepted socket; `headers` gives each answer its policy headers."""

    def __init__(self, client: socket.socket, site: Site, guard: Guard, headers: HeaderPolicy) -> None:
        self._client = client
        self._site = site
        self._guard = guard
        self._headers = headers
        self._received = b""

    def serve(self) -> None:
        """Answer requests until either side has had enough."""
        try:
            while self._serve_one():
                pass
        except (ConnectionError, TimeoutError):
            return

    def _serve_one(self) -> bool:
        path = "/"
        request = None
        try:
            head = self._read_head()
            if head is None:
                return False
            request = parse_head(head)
            segments = split_path(request.path)
            path = "/" + "/".join(segments)
            self._guard.check(request)
            self._answer(request, path, self._site.open(segments))
        except HttpError as error:
            keeps_alive = request is not None and request.keeps_alive
            self._answer_error(error, path, keeps_alive=keeps_alive, has_body=not _is_head(request))
            return keeps_alive
        return request.keeps_alive

    def _read_head(self) -> bytes | None:
        deadline = time.monotonic() + TIMEOUT_S
        while (end := self._received.find(_END_OF_HEAD)) < 0 and len(self._received) <= MAX_HEAD_BYTES:
            self._client.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                piece = self._client.recv(MAX_HEAD_BYTES)
            except TimeoutError:
                if self._received:
                    raise HttpError(HTTPStatus.REQUEST_TIMEOUT) from None
                return None
            if not piece:
                return None
            self._received += piece
        if not 0 <= end <= MAX_HEAD_BYTES:
            raise HttpError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        head, self._received = self._received[:end], self._received[end + len(_END_OF_HEAD) :]
        return head

    def _answer(self, request: Request, path: str, content: Content) -> None:
        with content.stream as stream:
            fields = {"ETag": content.etag, "Cache-Control": "no-cache", "Accept-Ranges": "bytes"}
            if not request.keeps_alive:
                fields["Connection"] = "close"
            status, offsets = HTTPStatus.OK, range(content.size_bytes)
            if _has_current(request, content.etag):
                self._send_head(HTTPStatus.NOT_MODIFIED, path, fields)
                return
            if wanted := _wanted_range(request, content):
                status, offsets = HTTPStatus.PARTIAL_CONTENT, wanted
                fields["Content-Range"] = f"bytes {wanted[0]}-{wanted[-1]}/{content.size_bytes}"
            fields |= {"Content-Type": content.mime, "Content-Length": str(len(offsets))}
            self._send_head(status, path, fields)
            if not _is_head(request):
                self._send_body(stream, offsets)

    def _send_body(self, stream: BinaryIO, offsets: range) -> None:
        stream.seek(offsets.start)
        left = len(offsets)
        while left:
            piece = stream.read(min(_PIECE_BYTES, left))
            if not piece:
                raise ConnectionAbortedError("the file became shorter while it was sent")
            self._client.sendall(piece)
            left -= len(piece)

    def _answer_error(self, error: HttpError, path: str, *, keeps_alive: bool, has_body: bool) -> None:
        body = f"{error.status.value} {error.status.phrase}\n{error.detail}".strip().encode() + b"\n"
        fields = {
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            **error.headers,
        }
        if not keeps_alive:
            fields["Connection"] = "close"
        self._send_head(error.status, path, fields)
        if has_body:
            self._client.sendall(body)
        if not keeps_alive:
            self._linger()

    def _send_head(self, status: HTTPStatus, path: str, fields: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Date: {formatdate(usegmt=True)}"]
        lines += [f"{name}: {value}" for name, value in {**fields, **self._headers(path)}.items()]
        self._client.settimeout(TIMEOUT_S)
        self._client.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def _linger(self) -> None:
        """Read what the client still sends: closing a socket with unread bytes would discard the answer."""
        deadline = time.monotonic() + _LINGER_S
        with contextlib.suppress(OSError):
            self._client.shutdown(socket.SHUT_WR)
            while (left_s := deadline - time.monotonic()) > 0:
                self._client.settimeout(left_s)
                if not self._client.recv(_PIECE_BYTES):
                    return


def _is_head(request: Request | None) -> bool:
    return request is not None and request.method == "HEAD"


def _has_current(request: Request, etag: str) -> bool:
    known = [tag.strip().removeprefix("W/") for tag in request.fields.get("if-none-match", "").split(",")]
    return etag in known or "*" in known


def _wanted_range(request: Request, content: Content) -> range | None:
    if _is_head(request) or request.fields.get("if-range", content.etag) != content.etag:
        return None
    return parse_range(request.fields.get("range"), content.size_bytes)
