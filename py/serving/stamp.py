"""What was verified, so that a second start need not hash 100 MB again.

The stamp keeps, for each installed file, the hash that was checked and the size and modification time that
the file had right then. A file is trusted only while all three still fit the manifest and the disk; any
doubt, a broken stamp included, means hash again.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from serving.archive import sha256_of
from serving.manifest import Part, PartFile


@dataclass(frozen=True)
class Verified:
    """A file as it was when its hash was checked."""

    sha256: str
    size_bytes: int
    mtime_ns: int


class Stamp:
    """The stamp file of one static/ folder; `static` is that folder."""

    def __init__(self, static: Path) -> None:
        self._static = static
        self._path = static / "vendor" / ".stamp.json"
        self._files = self._load()

    def trusts(self, file: PartFile) -> bool:
        """Say whether the installed file is known to be right, without reading it."""
        now = self._on_disk(file)
        return now is not None and self._files.get(file.path) == now

    def verify(self, file: PartFile) -> bool:
        """Say whether the installed file is right, hashing it if need be, and remember it."""
        if self.trusts(file):
            return True
        now = self._on_disk(file)
        if now is None or now.size_bytes != file.size_bytes or sha256_of(self._static / file.path) != file.sha256:
            return False
        self._files[file.path] = now
        return True

    def remember(self, part: Part) -> None:
        """Record the freshly installed files of `part`, whose bytes have just been checked."""
        for file in part.files:
            if now := self._on_disk(file):
                self._files[file.path] = now

    def forget_all_but(self, paths: set[str]) -> list[str]:
        """Drop, and return, the paths that an older manifest installed and this one does not name."""
        stale = sorted(set(self._files) - paths)
        for path in stale:
            del self._files[path]
        return stale

    def save(self) -> None:
        """Replace the stamp file in one step."""
        document = {path: [file.sha256, file.size_bytes, file.mtime_ns] for path, file in sorted(self._files.items())}
        temporary = self._path.with_name(".stamp.json.new")
        temporary.write_text(json.dumps(document, indent=0), encoding="utf-8")
        os.replace(temporary, self._path)

    def _on_disk(self, file: PartFile) -> Verified | None:
        path = self._static / file.path
        try:
            status = path.lstat()
        except OSError:
            return None
        return Verified(file.sha256, status.st_size, status.st_mtime_ns)

    def _load(self) -> dict[str, Verified]:
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
            return {str(path): Verified(str(a), int(b), int(c)) for path, (a, b, c) in document.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
