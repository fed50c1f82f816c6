"""`static/parts.json`: the one list of what is fetched, from which package, and what every file must hash to.

A part is one archive of one registry. `take` says which members are wanted (glob -> folder below static/);
`files` is what `pin.py` made of it: each member with its destination, size and SHA-256, and all that an
install believes. Destinations are relative to static/ and confined to its two git-ignored folders, so that
a bad manifest cannot overwrite the repository.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from serving.errors import ManifestError

Kind = Literal["npm", "wheel", "sdist"]

INSTALL_FOLDERS = ("vendor", "models")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PACKAGE = re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*")
_VERSION = re.compile(r"[0-9][0-9a-z.+-]*")


@dataclass(frozen=True)
class PartFile:
    """One file of a part: `member` inside the archive, `path` below static/."""

    member: str
    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """One archive; `size_bytes` and `sha256` are the archive's own."""

    name: str
    package: str
    version: str
    kind: Kind
    licence: str
    size_bytes: int
    sha256: str
    take: tuple[tuple[str, str], ...]
    files: tuple[PartFile, ...]


@dataclass(frozen=True)
class Tool:
    """The PyPI package that carries npm, for machines without one; one hash for each platform's wheel."""

    package: str
    version: str
    sha256: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """All parts, in the order in which they are fetched."""

    parts: tuple[Part, ...]
    npm: Tool


def load(path: Path) -> Manifest:
    """Read and check the manifest at `path`.

    Raises:
        ManifestError: unreadable, a field missing or malformed, or a destination outside the install folders.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        manifest = Manifest(tuple(_part(entry) for entry in document["parts"]), _tool(document["npm"]))
        paths = [file.path for part in manifest.parts for file in part.files]
        _require(len(set(paths)) == len(paths), "two files have the same destination")
    except (OSError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise ManifestError(
            f"{path} cannot be used: {type(error).__name__}: {error}",
            hint="Restore it from the repository: git checkout -- static/parts.json",
        ) from error
    return manifest


def _part(entry: dict[str, Any]) -> Part:
    _require(entry["kind"] in get_args(Kind), f"unknown kind {entry['kind']!r}")
    _require(entry["archive"]["size_bytes"] >= 0, "negative size")
    return Part(
        name=str(entry["name"]),
        package=_match(_PACKAGE, entry["package"]),
        version=_match(_VERSION, entry["version"]),
        kind=entry["kind"],
        licence=str(entry["licence"]),
        size_bytes=int(entry["archive"]["size_bytes"]),
        sha256=_match(_SHA256, entry["archive"]["sha256"]),
        take=tuple((str(glob), str(folder)) for glob, folder in entry["take"].items()),
        files=tuple(_file(file) for file in entry["files"]),
    )


def _file(entry: dict[str, Any]) -> PartFile:
    path, member = str(entry["path"]), str(entry["member"])
    for name in (path, member):
        segments = name.split("/")
        _require(not {"", ".", ".."} & set(segments) and not set("\\:\0") & set(name), f"unsafe path {name!r}")
    _require(PurePosixPath(path).parts[0] in INSTALL_FOLDERS, f"{path!r} is outside {INSTALL_FOLDERS}")
    _require(not any(segment.startswith(".") for segment in path.split("/")), f"hidden path {path!r}")
    _require(entry["size_bytes"] >= 0, f"negative size of {path!r}")
    return PartFile(member, path, int(entry["size_bytes"]), _match(_SHA256, entry["sha256"]))


def _tool(entry: dict[str, Any]) -> Tool:
    hashes = tuple(_match(_SHA256, value) for value in entry["sha256"])
    return Tool(_match(_PACKAGE, entry["package"]), _match(_VERSION, entry["version"]), hashes)


def _match(pattern: re.Pattern[str], value: str) -> str:
    _require(pattern.fullmatch(value) is not None, f"malformed value {value!r}")
    return value


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
