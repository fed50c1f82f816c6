"""Take named members out of a .tgz, .tar.gz, .whl or .zip, and hash files.

A hostile archive is harmless here: nothing is unpacked under its own name. Members are looked up by the exact
names of the manifest, must be regular files, and are read no further than one byte past the promised size.
"""

import hashlib
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from serving.errors import MismatchError
from serving.manifest import Part, PartFile

_PIECE_BYTES = 1 << 20


class Archive:
    """An open archive; `names` lists its regular files."""

    def __init__(self, names: Iterable[str], open_member: Callable[[str], IO[bytes] | None]) -> None:
        self.names = tuple(names)
        self._open_member = open_member

    def open(self, name: str) -> IO[bytes]:
        """Return a reader of the regular file `name`.

        Raises:
            KeyError: there is none.
        """
        stream = self._open_member(name) if name in self.names else None
        if stream is None:
            raise KeyError(name)
        return stream


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open the archive at `path` for the length of a `with` block."""
    if path.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(path) as zipped:
            entries = zipped.infolist()
            yield Archive((entry.filename for entry in entries if not entry.is_dir()), zipped.open)
    else:
        with tarfile.open(path, "r:gz") as tar:
            members = tar.getmembers()
            yield Archive((member.name for member in members if member.isfile()), tar.extractfile)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as lower-case hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_archive(part: Part, path: Path) -> None:
    """Compare the fetched archive with the manifest.

    Raises:
        MismatchError: size or hash differ.
    """
    size_bytes = path.stat().st_size
    if size_bytes != part.size_bytes:
        raise mismatch(part, path.name, f"{part.size_bytes} bytes", f"{size_bytes} bytes")
    sha256 = sha256_of(path)
    if sha256 != part.sha256:
        raise mismatch(part, path.name, part.sha256, sha256)


def extract(part: Part, archive: Archive, file: PartFile, destination: Path) -> None:
    """Write one member to `destination`, checking size and hash on the way.

    Raises:
        MismatchError: the member is missing or differs; `destination` must then be thrown away.
    """
    digest = hashlib.sha256()
    left = file.size_bytes
    try:
        source = archive.open(file.member)
    except KeyError:
        raise mismatch(part, file.member, "a regular file", "none of that name") from None
    destination.parent.mkdir(parents=True, exist_ok=True)
    with source, destination.open("wb") as target:
        while piece := source.read(min(_PIECE_BYTES, left + 1)):
            left -= len(piece)
            if left < 0:
                raise mismatch(part, file.member, f"{file.size_bytes} bytes", "more")
            digest.update(piece)
            target.write(piece)
    if left > 0:
        raise mismatch(part, file.member, f"{file.size_bytes} bytes", f"{file.size_bytes - left} bytes")
    if digest.hexdigest() != file.sha256:
        raise mismatch(part, file.member, file.sha256, digest.hexdigest())


def mismatch(part: Part, what: str, expected: str, found: str) -> MismatchError:
    """Return the error that says which bytes are wrong."""
    return MismatchError(
        f"{part.name} {part.version}: {what} is not as pinned\n  expected {expected}\n  found    {found}",
        hint="Nothing of this part was installed. Try again; if it stays so, the registry serves other bytes "
        "than those that were reviewed: do not use them, and report it.",
    )
