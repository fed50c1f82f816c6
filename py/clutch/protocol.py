"""The only list of messages between the page and the worker.

Runs under CPython and MicroPython: plain dicts, no dataclasses, no typing at run time. A message is one JSON
object with a `kind`; the fields of each kind stand in the tables below as ``name: (types, required)``. Fields
that a table does not name are refused, so a typing slip is found on the first run. A File cannot be JSON; it
travels beside the message (see `browser/port.py`).
"""

import json
import sys

from clutch.errors import RequestError

_INT = (int,)
_NUMBER = (int, float)
_STR = (str,)
_LIST = (list,)
_DICT = (dict,)
_BOOL = (bool,)
_OPTIONAL_INT = (int, type(None))

MAX_MESSAGE_CHARS = 4_000_000

# MicroPython 1.27 misreads the surrogate escapes that CPython writes for an emoji (measured), and writes none itself.
_WRITE_PLAIN = {} if sys.implementation.name == "micropython" else {"ensure_ascii": False}

# Sessions are numbered 0 to MAX_SESSIONS - 1. Session 0 is always open, and is meant where a message names none.
MAX_SESSIONS = 16

# The `cells` of a `pool` event, a character a page: free; held by nobody but kept for reuse; held by one session alone,
# by its number; shared, by the lowest number of those that hold it.
CELL_FREE = "."
CELL_CACHED = "-"
CELLS_OWN = "0123456789abcdef"
CELLS_SHARED = "ABCDEFGHIJKLMNOP"

# Page -> worker.
REQUESTS = {
    # `url` is relative to the page; without it the File beside the message is read. `pool_positions` is the room of
    # all sessions together; `kv_format` is how keys and values are kept, "f16" or "q8".
    "load": {
        "request_id": (_INT, True),
        "url": (_STR, False),
        "context_length": (_INT, False),
        "pool_positions": (_INT, False),
        "kv_format": (_STR, False),
    },
    # `messages` go through the chat template, `prompt` is raw text; exactly one of the two. `overflow` is what happens
    # when the context is full: "stop", or "drop_oldest" turns. Without `reuse` everything is computed anew. With
    # `ignore_eos` the model cannot end the answer, as a measurement wants it.
    "generate": {
        "request_id": (_INT, True),
        "epoch": (_INT, True),
        "session": (_INT, False),
        "messages": (_LIST, False),
        "prompt": (_STR, False),
        "params": (_DICT, True),
        "top_logits": (_INT, False),
        "overflow": (_STR, False),
        "reuse": (_BOOL, False),
        "ignore_eos": (_BOOL, False),
    },
    # Goes on with the last answer, from the kept keys and values; `params` replace some of its parameters.
    "continue": {"request_id": (_INT, True), "epoch": (_INT, True), "session": (_INT, False), "params": (_DICT, False)},
    # Measures a step behind what the session holds, which stays: of one token as when writing, of more as when reading
    # a prompt. Refused while a session is busy. `benchmarked` follows, or `finished` when it was stopped.
    "benchmark": {"request_id": (_INT, True), "epoch": (_INT, True), "session": (_INT, False), "tokens": (_INT, True)},
    # Stops this request of the session and all before it: a `load`, a `generate`, a `continue`, a `benchmark`,
    # running or to come.
    "stop": {"request_id": (_INT, True), "session": (_INT, False)},
    # `wipe` also overwrites the keys and values on the GPU.
    "reset": {"epoch": (_INT, True), "session": (_INT, False), "wipe": (_BOOL, False)},
    "unload": {},
    # A new, empty session, or one that begins as a copy of `source`.
    "open_session": {"session": (_INT, True), "epoch": (_INT, True), "source": (_INT, False)},
    "close_session": {"session": (_INT, True)},
    # `page` is what the page wants back with the session, such as its transcript; `with_kv` keeps keys and values too.
    "save_session": {
        "session": (_INT, True),
        "name": (_STR, True),
        "page": (_DICT, True),
        "with_kv": (_BOOL, False),
    },
    # Into an open session, in place of what it holds.
    "restore_session": {"session": (_INT, True), "epoch": (_INT, True), "name": (_STR, True)},
    "list_saved": {},
    "delete_saved": {"name": (_STR, True)},
}

# Worker -> page.
EVENTS = {
    # Once a second while the worker's event loop turns; its absence is how the page notices a hang.
    "heartbeat": {},
    "capabilities": {"adapter": (_DICT, True), "shared_memory": (_BOOL, True)},
    # `phase` is a key of the page's strings; `unit` is "bytes", "kernels" or "". Without a session it is the engine's.
    "progress": {
        "phase": (_STR, True),
        "done": (_NUMBER, True),
        "total": (_NUMBER, True),
        "unit": (_STR, True),
        "session": (_INT, False),
    },
    "state": {"state": (_STR, True), "session": (_INT, True), "epoch": (_INT, True), "kv_length": (_INT, True)},
    "loaded": {
        "model": (_DICT, True),
        "memory": (_DICT, True),
        "ledger": (_DICT, True),
        "timings": (_DICT, True),
        "self_test": (_DICT, True),
        # The recipe's name, its origin ("default", "tuned" now, or "kept" from a load before), and what tuning took.
        "kernels": (_DICT, True),
    },
    # The KV pool in pages: `cells` has a character a page, see above; `utilisation` is None while it is empty.
    "pool": {
        "page_positions": (_INT, True),
        "total": (_INT, True),
        "used": (_INT, True),
        "shared": (_INT, True),
        "cached": (_INT, True),
        "free": (_INT, True),
        "utilisation": ((int, float, type(None)), True),
        "cells": (_STR, True),
    },
    # `text` is the answer so far: empty for `generate`, what is kept for `continue`.
    "started": {
        "request_id": (_INT, True),
        "session": (_INT, True),
        "epoch": (_INT, True),
        "text": (_STR, True),
        "prompt_ids": (_LIST, True),
        "num_cached_tokens": (_INT, True),
    },
    # The oldest turns were left out, to make room: so many messages of the chat; what is left has so many tokens.
    "trimmed": {
        "request_id": (_INT, True),
        "session": (_INT, True),
        "epoch": (_INT, True),
        "dropped_messages": (_INT, True),
        "prompt_tokens": (_INT, True),
    },
    # `seq_no` counts the deltas of one request from 0.
    "delta": {
        "request_id": (_INT, True),
        "session": (_INT, True),
        "epoch": (_INT, True),
        "seq_no": (_INT, True),
        "text": (_STR, True),
        "token_ids": (_LIST, True),
    },
    # Exactly one a request, unless the request ended with `error`; a `load` or a `benchmark` has one only when it was
    # stopped.
    "finished": {
        "request_id": (_INT, True),
        "session": (_INT, True),
        "epoch": (_INT, True),
        "reason": (_STR, True),
        "output_ids": (_LIST, True),
        "text": (_STR, True),
        "usage": (_DICT, True),
        "timings": (_DICT, True),
        "ledger": (_DICT, True),
        "top_logits": (_LIST, False),
    },
    # What `engine/benchmark.py` has found.
    "benchmarked": {
        "request_id": (_INT, True),
        "session": (_INT, True),
        "epoch": (_INT, True),
        "step": (_DICT, True),
    },
    "opened": {
        "session": (_INT, True),
        "epoch": (_INT, True),
        "source": (_OPTIONAL_INT, True),
        "kv_length": (_INT, True),
    },
    "closed": {"session": (_INT, True)},
    # What is kept in this browser, oldest first: [{name, size_bytes}]; after `list_saved` and after every change.
    "saved": {"sessions": (_LIST, True)},
    # `end` is how the last answer ended, "" without one: whether `continue` is possible, as after `finished`.
    "restored": {
        "session": (_INT, True),
        "epoch": (_INT, True),
        "name": (_STR, True),
        "page": (_DICT, True),
        "end": (_STR, True),
        "output_tokens": (_INT, True),
        "kv_length": (_INT, True),
    },
    # Something went wrong and was mended: the same fields as an error, but everything goes on. `request_id` and
    # `session` say whose it is; None: the engine's.
    "notice": {
        "request_id": (_OPTIONAL_INT, True),
        "session": (_OPTIONAL_INT, True),
        "epoch": (_INT, True),
        "code": (_STR, True),
        "message": (_STR, True),
        "hint": (_STR, True),
        "data": (_DICT, True),
    },
    "error": {
        "request_id": (_OPTIONAL_INT, True),
        "session": (_OPTIONAL_INT, True),
        "epoch": (_INT, True),
        "code": (_STR, True),
        "message": (_STR, True),
        "hint": (_STR, True),
        "data": (_DICT, True),
    },
}


def encode(table: dict, kind: str, **fields: object) -> str:
    """Return the JSON text of one message of `table` (REQUESTS or EVENTS); refuses what `decode` would refuse."""
    _check(table, kind, fields)
    return json.dumps(dict(fields, kind=kind), **_WRITE_PLAIN)  # type: ignore[arg-type]


def decode(table: dict, text: str) -> dict:
    """Return the message in `text` as a dict with its `kind`.

    Raises:
        RequestError: not JSON, too long, unknown kind, missing, unknown or wrongly typed field.
    """
    if len(text) > MAX_MESSAGE_CHARS:
        raise RequestError(
            "A message has " + str(len(text)) + " characters; the limit is " + str(MAX_MESSAGE_CHARS) + ".",
            hint="Send a shorter prompt.",
            length=len(text),
            limit=MAX_MESSAGE_CHARS,
        )
    try:
        message = json.loads(text)
    except (ValueError, RuntimeError):
        # RuntimeError: nested deeper than the interpreter goes; CPython's RecursionError is one.
        raise RequestError("A message is not JSON.", hint="Send one JSON object.") from None
    if not isinstance(message, dict):
        raise RequestError("A message is not a JSON object.", hint="Send one JSON object.")
    kind = message.pop("kind", None)
    _check(table, kind, message)
    message["kind"] = kind
    return message


def _check(table: dict, kind: str, fields: dict) -> None:
    if not isinstance(kind, str) or kind not in table:
        known = ", ".join(sorted(table))
        raise RequestError("Unknown message kind " + repr(kind) + ".", hint="Known: " + known + ".", kind=str(kind))
    rules = table[kind]
    for name in fields:
        if name not in rules:
            raise _field_error(kind, name, "is unknown")
    for name, (types, is_required) in rules.items():
        if name not in fields:
            if is_required:
                raise _field_error(kind, name, "is missing")
            continue
        value = fields[name]
        # bool is an int in Python; a True where a number belongs is a slip.
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise _field_error(kind, name, "has the wrong type")


def _field_error(kind: str, name: str, what: str) -> RequestError:
    return RequestError("Field " + repr(name) + " of message " + kind + " " + what + ".", kind=kind, field=name)
