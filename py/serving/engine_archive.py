"""`/engine.zip`: all that the worker's Python imports, and the kernels, in one request.

The archive is a function of names and contents alone (sorted, stored, all dates 1980), so that equal trees
give equal bytes and the browser's copy stays valid. It is made again when a file was added, removed or
touched.
"""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

from serving.content import Content, of_bytes
from serving.paths import contained

_SOURCES = (
    ("py/clutch", "clutch", "**/*.py"),
    ("wgsl", "wgsl", "*.wgsl"),
    ("static/vendor/python/jinja2", "jinja2", "*.py"),
    ("static/vendor/python/markupsafe", "markupsafe", "*.py"),
)
_EPOCH = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16

_State = tuple[tuple[str, Path, int, int], ...]


class EngineArchive:
    """The archive of the repository at `root`, kept in memory between requests."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._state: _State = ()
        self._data = b""

    def content(self) -> Content:
        """Return the current archive."""
        data = self.data()
        return of_bytes(data, "application/zip", hashlib.sha256(data).hexdigest())

    def data(self) -> bytes:
        """Return the bytes of the current archive."""
        with self._lock:
            state = tuple(sorted(self._members()))
            if state != self._state or not self._data:
                self._data = _pack(state)
                self._state = state
            return self._data

    def _members(self) -> Iterator[tuple[str, Path, int, int]]:
        for folder, prefix, pattern in _SOURCES:
            base = self._root / folder
            for path in base.glob(pattern):
                if path.is_file() and contained(self._root, path.relative_to(self._root).as_posix()):
                    status = path.stat()
                    name = f"{prefix}/{path.relative_to(base).as_posix()}"
                    yield name, path, status.st_size, status.st_mtime_ns


def _pack(state: _State) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, path, _, _ in state:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3  # Unix, wherever this runs: the field would otherwise name this machine's system
            entry.external_attr = _REGULAR_FILE
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()
