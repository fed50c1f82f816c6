"""Failures of the browser, translated into the error tree."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyodide.ffi import JsException

from clutch.errors import CapabilityError, ClutchError, DeviceLost, DeviceTimeout, OutOfMemory, SourceError

# By the `name` of the JS error; `worker/*.js` name theirs so.
_BY_NAME: dict[str, tuple[type[ClutchError], str]] = {
    "DeviceLost": (DeviceLost, "Load the model again."),
    "DeviceTimeout": (DeviceTimeout, "Reload the page; the GPU or its driver may hang."),
    "SourceError": (SourceError, "Check that the file is there and complete."),
    # fetch() and streams say TypeError when the network fails, NotFoundError and NotReadableError when a file is gone.
    "TypeError": (SourceError, "Check the connection to the server."),
    "NotFoundError": (SourceError, "The file has moved or changed; choose it again."),
    "NotReadableError": (SourceError, "The file has moved or changed; choose it again."),
    "OperationError": (CapabilityError, "Reload the page, or restart the browser."),
    # What JavaScript says when it cannot have an array that long.
    "RangeError": (OutOfMemory, "Close other tabs, or choose a smaller model."),
    "OutOfMemory": (OutOfMemory, "Close other tabs, or choose a smaller model or context."),
}


def translation(error: Exception) -> Exception:
    """Return the error of the tree that a JsException stands for, or itself."""
    name = str(getattr(error, "name", ""))
    if name not in _BY_NAME:
        return error
    kind, hint = _BY_NAME[name]
    return kind(str(getattr(error, "message", error)), hint=hint)


@contextmanager
def translated() -> Iterator[None]:
    """Turn a JsException that has a place in the tree into its error; anything else passes."""
    try:
        yield
    except JsException as error:
        found = translation(error)
        if found is error:
            raise
        raise found from error
