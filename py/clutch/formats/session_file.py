"""A saved session as a file, read as hostile input.

    magic (8 bytes), version (u32), length of the header (u32), length of the pages (u64), all little-endian;
    the header: one JSON object in UTF-8 with the fields of `_FIELDS`;
    the pages: keys and values, `page_bytes` a page, 16 positions a page, the last one as far as it is filled;
    the SHA-256 of everything before it.

The checksum finds damage, not intent: a file can be forged with a right one. So nothing in it is believed. Lengths are
compared with the bytes at hand before anything is made of them, and every field is checked by type and range.
"""

import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from clutch.errors import RequestError, SavedSessionError

_MAGIC = b"CLUTCHSE"
_VERSION = 1
_PREAMBLE = struct.Struct("<8sIIQ")
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_MOST_HEADER_BYTES = 32 << 20
"""What the page wants back came in a message of at most 4 million characters; a prompt has at most a MiB."""

# As `kv.pool.PAGE_POSITIONS`; a file with other pages would be another version.
PAGE_POSITIONS = 16
# As `engine.overflow.Overflow`.
OVERFLOWS = ("stop", "drop_oldest")
_MOST_TEXT_CHARS = 100
_MOST_MAX_TOKENS = 1 << 31

_FIELDS: dict[str, tuple[type, ...]] = {
    "model_identity": (str,),
    "kv_format": (str,),
    "prompt_ids": (list,),
    "output_ids": (list,),
    "params": (dict,),
    "messages": (list, type(None)),
    "overflow": (str,),
    "reason": (str,),
    "max_tokens": (int,),
    "kv_token_ids": (list,),
    "page": (dict,),
    "page_bytes": (int,),
}
_HINTS = {
    "damaged": "Delete it; it cannot be restored.",
    "truncated": "Delete it; it cannot be restored.",
    "not_a_session": "Choose a file that Clutch has saved.",
    "version": "Restore it with the version of Clutch that saved it.",
    "other_model": "Load the model with which it was saved.",
}


@dataclass(frozen=True)
class SavedSession:
    """What is kept of a session.

    Args:
        model_identity: of the model's file, see `model/identity.py`.
        kv_format: how the keys and values are kept, "f16" or "q8".
        prompt_ids: of the last question, with everything before it.
        output_ids: of the last answer.
        params: how to sample, as in a `generate` message.
        messages: that the prompt was made of; None for a raw prompt.
        overflow: what happens when the context is full, one of `OVERFLOWS`.
        reason: why the last answer ended; "" without one.
        max_tokens: most tokens of the last answer.
        kv_token_ids: whose keys and values follow; may be empty.
        page: what the page wants back.
        kv_pages: bytes of a page, all of the same length, for every 16 of `kv_token_ids` or part thereof.
    """

    model_identity: str
    kv_format: str
    prompt_ids: list[int]
    output_ids: list[int]
    params: dict[str, Any]
    messages: Sequence[Mapping[str, str]] | None
    overflow: str
    reason: str
    max_tokens: int
    kv_token_ids: list[int]
    page: dict[str, Any]
    kv_pages: list[bytes]


def encode(saved: SavedSession) -> bytes:
    """Return the file.

    Raises:
        RequestError: `page`, `messages` or `params` hold something that JSON cannot, or far too much.
    """
    assert len(saved.kv_pages) == _pages_for(saved.kv_token_ids), (len(saved.kv_pages), len(saved.kv_token_ids))
    assert len({len(page) for page in saved.kv_pages}) <= 1
    fields: dict[str, Any] = {name: getattr(saved, name) for name in _FIELDS if name != "page_bytes"}
    fields["page_bytes"] = len(saved.kv_pages[0]) if saved.kv_pages else 0
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"The session cannot be written as JSON: {error}.", field="page") from None
    # Half an emoji is legal in JavaScript, and comes back as it was.
    header = text.encode("utf-8", "surrogatepass")
    if len(header) > _MOST_HEADER_BYTES:
        raise RequestError(
            f"The session's texts have {len(header)} bytes; the limit is {_MOST_HEADER_BYTES}.",
            hint="Reset the conversation.",
            header_bytes=len(header),
            limit_bytes=_MOST_HEADER_BYTES,
        )
    pages_bytes = fields["page_bytes"] * len(saved.kv_pages)
    preamble = _PREAMBLE.pack(_MAGIC, _VERSION, len(header), pages_bytes)
    content = b"".join([preamble, header, *saved.kv_pages])
    return content + hashlib.sha256(content).digest()


def decode(data: bytes, *, model_identity: str, n_vocab: int, kv_format: str, page_bytes: int) -> SavedSession:
    """Return the session in `data`.

    Keys and values of another format or page size are left out; they can be computed again.

    Args:
        data: the whole file.
        model_identity: of the model that is loaded.
        n_vocab: its number of tokens.
        kv_format: how it keeps keys and values.
        page_bytes: of a page of them, in all layers.

    Raises:
        SavedSessionError: `cause` is "not_a_session", "version", "truncated", "damaged" or "other_model".
    """
    header, pages = _split(data)
    fields = _fields(header)
    if fields["model_identity"] != model_identity:
        _refuse(
            "other_model",
            "it was saved with another model",
            expected=model_identity[:_MOST_TEXT_CHARS],
            found=fields["model_identity"][:_MOST_TEXT_CHARS],
        )
    for name in ("prompt_ids", "output_ids", "kv_token_ids"):
        _check_ids(name, fields[name], n_vocab)
    size = fields.pop("page_bytes")
    n_pages = _pages_for(fields["kv_token_ids"])
    if n_pages * size != len(pages):
        _refuse("damaged", f"{n_pages} pages of {size} bytes should be {len(pages)} bytes", field="page_bytes")
    if (fields["kv_format"], size) != (kv_format, page_bytes):
        fields["kv_token_ids"], n_pages = [], 0
    return SavedSession(**fields, kv_pages=[bytes(pages[i * size : (i + 1) * size]) for i in range(n_pages)])


def _split(data: bytes) -> tuple[bytes, memoryview]:
    """Return the header and the pages of a file whose checksum is right."""
    if data[: len(_MAGIC)] != _MAGIC[: len(data)]:
        _refuse("not_a_session", f"it begins with {data[: len(_MAGIC)].hex(' ')}")
    if len(data) < _PREAMBLE.size:
        _refuse("truncated", f"it has {len(data)} bytes", expected=_PREAMBLE.size, found=len(data))
    _, version, header_bytes, pages_bytes = _PREAMBLE.unpack_from(data)
    if version != _VERSION:
        _refuse("version", f"it has version {version}, not {_VERSION}", expected=_VERSION, found=version)
    content_bytes = _PREAMBLE.size + header_bytes + pages_bytes
    expected = content_bytes + _CHECKSUM_BYTES
    if len(data) != expected:
        cause = "truncated" if len(data) < expected else "damaged"
        _refuse(cause, f"it has {len(data)} of {expected} bytes", expected=expected, found=len(data))
    view = memoryview(data)
    if hashlib.sha256(view[:content_bytes]).digest() != data[content_bytes:]:
        _refuse("damaged", "its checksum is wrong")
    if header_bytes > _MOST_HEADER_BYTES:
        _refuse("damaged", f"its header has {header_bytes} bytes", expected=_MOST_HEADER_BYTES, found=header_bytes)
    end = _PREAMBLE.size + header_bytes
    return bytes(view[_PREAMBLE.size : end]), view[end:content_bytes]


def _fields(header: bytes) -> dict[str, Any]:
    """Return the fields of the header, each of the type and in the range of its kind."""
    try:
        fields = json.loads(header.decode("utf-8", "surrogatepass"), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        _refuse("damaged", "its header is not JSON")
    if not isinstance(fields, dict) or fields.keys() != _FIELDS.keys():
        _refuse("damaged", "its header has other fields")
    for name, types in _FIELDS.items():
        # bool is an int in Python.
        if not isinstance(fields[name], types) or isinstance(fields[name], bool):
            _refuse("damaged", f"{name} has the wrong type", field=name)
    if not all(_is_message(message) for message in fields["messages"] or ()):
        _refuse("damaged", "a message is none", field="messages")
    if fields["overflow"] not in OVERFLOWS:
        _refuse("damaged", "overflow is unknown", field="overflow")
    if len(fields["reason"]) > _MOST_TEXT_CHARS:
        _refuse("damaged", "reason is too long", field="reason")
    for name, most in ("max_tokens", _MOST_MAX_TOKENS), ("page_bytes", 1 << 62):
        if not 0 <= fields[name] <= most:
            _refuse("damaged", f"{name} is out of range", field=name)
    return fields


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"role", "content"}:
        return False
    return all(isinstance(text, str) for text in value.values())


def _check_ids(name: str, token_ids: Sequence[object], n_vocab: int) -> None:
    for token_id in token_ids:
        if type(token_id) is not int or not 0 <= token_id < n_vocab:
            _refuse("damaged", f"{name} holds what is no token of the model", field=name, n_vocab=n_vocab)


def _pages_for(token_ids: Sequence[int]) -> int:
    return -(-len(token_ids) // PAGE_POSITIONS)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _refuse(cause: str, what: str, **data: object) -> NoReturn:
    raise SavedSessionError(
        f"The saved session cannot be restored: {what}.", hint=_HINTS[cause], cause=cause, **data
    ) from None
