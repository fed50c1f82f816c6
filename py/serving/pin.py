"""Rewrite `static/parts.json` after a version was changed in it: fetch, hash, list what `take` matches.

Run from the repository: `PYTHONPATH=py python3 -m serving.pin [part name ...]`, then review the difference.
This is the only place where bytes are believed on first sight, so it never runs on a user's machine.
"""

import dataclasses
import fnmatch
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from serving import archive, manifest
from serving.clients import Clients
from serving.fetch import Fetch, PackageFetcher
from serving.manifest import Part, PartFile


def pin(part: Part, path: Path) -> Part:
    """Return `part` with the sizes and hashes of the archive at `path` and of the members it takes.

    Raises:
        ValueError: a pattern of `take` matches nothing.
    """
    files = []
    with archive.opened(path) as source:
        for pattern, folder in part.take:
            members = sorted(name for name in source.names if _matches(name, pattern))
            if not members:
                raise ValueError(f"{part.name}: nothing in {path.name} matches {pattern!r}")
            for member in members:
                data = source.open(member).read()
                destination = folder + PurePosixPath(member).name if folder.endswith("/") else folder
                files.append(PartFile(member, destination, len(data), hashlib.sha256(data).hexdigest()))
    return dataclasses.replace(part, size_bytes=path.stat().st_size, sha256=archive.sha256_of(path), files=tuple(files))


def dump(wanted: manifest.Manifest) -> str:
    """Return the text of parts.json: one line for each file, so that a difference can be read."""
    text = json.dumps({"npm": _tool(wanted.npm), "parts": [_part(part) for part in wanted.parts]}, indent=2)
    return re.sub(r'\{\s+"member"[^}]*\}', lambda found: " ".join(found[0].split()), text) + "\n"


def main(names: list[str], static: Path, fetch: Fetch | None = None) -> None:
    """Pin the named parts again (all of them by default) and rewrite the manifest."""
    wanted = manifest.load(static / "parts.json")
    with tempfile.TemporaryDirectory() as scratch:
        fetcher = fetch or PackageFetcher(Clients(wanted.npm, Path(scratch) / "tools"))
        parts = []
        for number, part in enumerate(wanted.parts):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            unpinned = dataclasses.replace(part, sha256="")
            is_named = not names or part.name in names
            parts.append(pin(part, fetcher(unpinned, folder)) if is_named else part)
    text = dump(dataclasses.replace(wanted, parts=tuple(parts)))
    (static / "parts.json").write_text(text, encoding="utf-8")


def _matches(name: str, pattern: str) -> bool:
    return name.count("/") == pattern.count("/") and fnmatch.fnmatchcase(name, pattern)


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "package": part.package,
        "version": part.version,
        "kind": part.kind,
        "licence": part.licence,
        "archive": {"size_bytes": part.size_bytes, "sha256": part.sha256},
        "take": dict(part.take),
        "files": [dataclasses.asdict(file) for file in part.files],
    }


def _tool(tool: manifest.Tool) -> dict[str, Any]:
    return {"package": tool.package, "version": tool.version, "sha256": list(tool.sha256)}


if __name__ == "__main__":
    main(sys.argv[1:], Path(__file__).resolve().parents[2] / "static")
