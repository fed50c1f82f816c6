"""What may be served: an allow-list of names, a fixed table of types, and the models named on start.

The allow-list is applied to the name asked for and again to the file that its symbolic links lead to.
"""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path

from serving import content
from serving.content import Content
from serving.engine_archive import EngineArchive
from serving.errors import AddressError
from serving.paths import contained, is_safe_name
from serving.request import HttpError

MIME_TYPES = {
    "css": "text/css; charset=utf-8",
    "gguf": "application/octet-stream",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "mjs": "text/javascript; charset=utf-8",
    "png": "image/png",
    "py": "text/x-python; charset=utf-8",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "txt": "text/plain; charset=utf-8",
    "wasm": "application/wasm",
    "webp": "image/webp",
    "wgsl": "text/wgsl; charset=utf-8",
    "woff2": "font/woff2",
    "zip": "application/zip",
}
_STATIC_TYPES = "css|gguf|ico|js|json|mjs|png|svg|txt|wasm|webp|woff2|zip"
_NAME = r"[A-Za-z0-9_@][A-Za-z0-9_@.+-]*"
_ALLOWED = re.compile(
    rf"index\.html|pyscript\.toml|py/(?:ui|clutch)/(?:{_NAME}/)*{_NAME}\.py|wgsl/{_NAME}\.wgsl"
    rf"|worker/{_NAME}\.js|static/(?:{_NAME}/)*{_NAME}\.(?:{_STATIC_TYPES})"
)


class Site:
    """The files of the repository at `root`, `/engine.zip`, and each of `models` as `/models/<its name>`.

    A model may lie anywhere and may appear later; it is looked for when it is asked for.
    """

    def __init__(self, root: Path, models: Sequence[Path] = ()) -> None:
        self.root = root
        self.engine = EngineArchive(root)
        self._models = {path.name: path for path in models}
        unusable = [name for name in self._models if not is_safe_name(name)]
        if unusable or len(self._models) != len(models):
            raise AddressError(
                f"These models cannot be told apart or named in an address: {[str(path) for path in models]}",
                hint="Give each its own name, without colon, percent sign or backslash.",
            )

    def open(self, segments: tuple[str, ...]) -> Content:
        """Open what the decoded path names.

        Raises:
            HttpError: 404, for all that is absent, hidden or not on the list.
        """
        match segments:
            case ():
                return self._open_file("index.html")
            case ("engine.zip",):
                return self.engine.content()
            case ("models", name) if name in self._models:
                return content.of_file(self._models[name], MIME_TYPES["gguf"])
            case _:
                return self._open_file("/".join(segments))

    def files(self, *folders: str) -> Iterator[str]:
        """Yield, sorted, the names of the files below the folders that may be served."""
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                name = path.relative_to(self.root).as_posix()
                if path.is_file() and self._locate(name) is not None:
                    yield name

    def _open_file(self, name: str) -> Content:
        real = self._locate(name)
        if real is None:
            raise HttpError(HTTPStatus.NOT_FOUND)
        return content.of_file(self.root / real, MIME_TYPES[name.rpartition(".")[2]])

    def _locate(self, name: str) -> str | None:
        if not _ALLOWED.fullmatch(name):
            return None
        real = contained(self.root, name)
        return real if real is not None and _ALLOWED.fullmatch(real) else None
