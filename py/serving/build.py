"""Write the static site: what the server would serve, as plain files for any host that can set headers.

`_headers` lists those headers in the form that several static hosts read. Where two of its rules match,
hosts join their values: both policies then hold for a worker, and their intersection is enough for it.
"""

import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from serving.errors import BuildError
from serving.headers import security_headers
from serving.request import HttpError
from serving.site import Site

_PAGE_FILES = ("index.html", "pyscript.toml")
_FOLDERS = ("py/ui", "worker", "static")
_EVERY_PATH, _WORKER_PATHS = "/*", "/worker/*"


def write_site(root: Path, destination: Path) -> int:
    """Write the site of the repository at `root` into a new or empty folder; return how many files.

    Raises:
        BuildError: the folder is not empty or cannot be written, or a file that the page names is missing;
            nothing is left behind.
    """
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise BuildError(f"{destination} is not an empty folder.", hint="Remove it, or name another one.")
    site = Site(root)
    names = sorted({*_PAGE_FILES, *_named_by_page(root), *site.files(*_FOLDERS)})
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".clutch-site-", dir=destination.parent) as scratch:
            staged = Path(scratch) / "site"
            for name in names:
                _copy(site, name, staged / name)
            (staged / "engine.zip").write_bytes(site.engine.data())
            (staged / "_headers").write_text(headers_file(), encoding="utf-8")
            if destination.exists():
                destination.rmdir()
            os.replace(staged, destination)
    except OSError as error:
        raise BuildError(f"Cannot write the site: {error}", hint="Nothing was left behind.") from error
    return len(names) + 2


def headers_file() -> str:
    """Return the text of `_headers`: a path pattern, then its headers, indented."""
    lines = []
    for pattern, path in ((_EVERY_PATH, "/"), (_WORKER_PATHS, "/worker/")):
        shared = security_headers("/") if pattern != _EVERY_PATH else {}
        own = {name: value for name, value in security_headers(path).items() if shared.get(name) != value}
        lines += [pattern, *(f"  {name}: {value}" for name, value in own.items())]
    return "\n".join(lines) + "\n"


def _named_by_page(root: Path) -> Iterator[str]:
    """Yield the local files that pyscript.toml makes the page fetch."""
    try:
        config = tomllib.loads((root / "pyscript.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BuildError(f"pyscript.toml cannot be read: {error}", hint="Run from a complete checkout.") from error
    modules = config.get("js_modules", {}).get("main", {})
    for address in (*config.get("files", {}), *modules):
        yield address.removeprefix(".").removeprefix("/")


def _copy(site: Site, name: str, target: Path) -> None:
    try:
        content = site.open(tuple(name.split("/")))
    except HttpError as error:
        reason = "is missing" if error.status == HTTPStatus.NOT_FOUND else str(error)
        raise BuildError(f"{name} {reason}.", hint="The page needs it; is it on the server's list?") from error
    target.parent.mkdir(parents=True, exist_ok=True)
    with content.stream as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)
