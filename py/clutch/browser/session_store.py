"""Saved sessions in the browser's own file system (OPFS), one file each; only this site sees them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote

import js
from pyodide.ffi import JsException, to_js

from clutch.engine.session_store import check_name
from clutch.errors import SavedSessionError

_DIRECTORY = "sessions"
# A write that was cut off may leave files with other endings.
_ENDING = ".clutch"

# By the `name` of the JS error: `cause`, what happened, what to do.
_CAUSES = {
    "NotFoundError": ("missing", "There is no saved session {name}.", "It was deleted, perhaps in another tab."),
    "QuotaExceededError": (
        "quota",
        "Session {name} does not fit what this browser lets the site keep.",
        "Delete saved sessions, or save without the computed cache.",
    ),
}
_OTHERWISE = ("storage", "This browser does not keep sessions: {error}.", "Leave private browsing, or allow site data.")


class OpfsSessionStore:
    """Implements `engine.session_store.SessionStore`.

    A file is written beside the old one and takes its place when it is complete. An empty file is the trace of a first
    write that was never completed, and counts as none.
    """

    def __init__(self) -> None:
        # Pyodide knows a JavaScript error by its stack. This one is a class of its own now and has none, and whoever
        # waits for its promise waits for ever (measured, Chromium 156).
        if (quota_exceeded := getattr(js, "QuotaExceededError", None)) is not None:
            quota_exceeded.prototype.stack = ""

    async def list(self) -> Sequence[tuple[str, int]]:
        """Return (name, size in bytes), oldest first."""
        found: list[tuple[float, str, int]] = []
        with _translated(_DIRECTORY):
            directory = await _open_directory()
            async for handle in directory.values():
                if not handle.name.endswith(_ENDING):
                    continue
                file = await handle.getFile()
                if file.size:
                    found.append((file.lastModified, unquote(handle.name.removesuffix(_ENDING)), int(file.size)))
        return [(name, size_bytes) for _, name, size_bytes in sorted(found)]

    async def write(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`."""
        check_name(name)
        with _translated(name, asked_bytes=len(data)):
            directory = await _open_directory()
            handle = await directory.getFileHandle(_file_name(name), _creating())
            stream = await handle.createWritable()
            try:
                await stream.write(to_js(data))
                await stream.close()
            except BaseException:
                await stream.abort()
                raise

    async def read(self, name: str) -> bytes:
        """Return what is kept under `name`."""
        check_name(name)
        with _translated(name):
            directory = await _open_directory()
            handle = await directory.getFileHandle(_file_name(name))
            file = await handle.getFile()
            data: bytes = (await file.arrayBuffer()).to_bytes()
        if not data:
            raise _error("NotFoundError", name)
        return data

    async def delete(self, name: str) -> None:
        """Throw away what is kept under `name`."""
        check_name(name)
        with _translated(name):
            directory = await _open_directory()
            await directory.removeEntry(_file_name(name))


async def _open_directory() -> Any:
    root = await js.navigator.storage.getDirectory()
    return await root.getDirectoryHandle(_DIRECTORY, _creating())


def _creating() -> Any:
    return to_js({"create": True}, dict_converter=js.Object.fromEntries)


def _file_name(name: str) -> str:
    return quote(name, safe="") + _ENDING


@contextmanager
def _translated(name: str, **data: object) -> Iterator[None]:
    """Turn what the browser cannot do into the error of the tree."""
    try:
        yield
    except JsException as error:
        message = str(getattr(error, "message", error))
        raise _error(str(getattr(error, "name", "")), name, error=message, **data) from error
    except AttributeError as error:
        # An older browser, which lacks a part of it.
        raise _error("", name, error=str(error), **data) from error


def _error(js_name: str, name: str, *, error: str = "", **data: object) -> SavedSessionError:
    cause, message, hint = _CAUSES.get(js_name, _OTHERWISE)
    return SavedSessionError(message.format(name=repr(name), error=error), hint=hint, cause=cause, name=name, **data)
