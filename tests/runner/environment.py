"""The virtual environment in `.venv`, made from the hash-pinned lock and made again when the lock changes.

`tests/requirements.lock` comes from `tests/requirements.in`, for all platforms and Python 3.11 on, by `uv pip
compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header`.
Where there is no network, `CLUTCH_VENV` names an environment to use as it stands.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from tests.runner.steps import ROOT, prepare, say, stop

LOCK = ROOT / "tests" / "requirements.lock"
VENV = ROOT / ".venv"
STAMP = VENV / "lock.sha256"


def ensure() -> Path:
    """Return the Python of the test environment; makes the environment first when it is missing or stale.

    Raises:
        SystemExit: the environment cannot be made; the message says why.
    """
    given = os.environ.get("CLUTCH_VENV")
    if given:
        return _existing(Path(given))
    wanted = f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()} {sys.version_info.major}.{sys.version_info.minor}"
    if not (STAMP.exists() and STAMP.read_text() == wanted and program(VENV, "python").exists()):
        _make()
        STAMP.write_text(wanted)
    return program(VENV, "python")


def program(environment: Path, name: str) -> Path:
    """Return the path of an environment's program."""
    return environment / "Scripts" / f"{name}.exe" if os.name == "nt" else environment / "bin" / name


def _existing(environment: Path) -> Path:
    python = program(environment, "python")
    if not python.exists():
        stop(f"CLUTCH_VENV is {environment}, but {python} does not exist.")
    return python


def _make() -> None:
    if VENV.exists():
        say("the lock or the Python changed: .venv is made again")
        shutil.rmtree(VENV)
    if prepare("make .venv", [sys.executable, "-m", "venv", VENV]):
        shutil.rmtree(VENV, ignore_errors=True)
        stop("This Python cannot make virtual environments. On Debian: apt-get install python3-venv")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(LOCK)]
    if prepare("install the pinned packages", [program(VENV, "python"), *install]):
        shutil.rmtree(VENV, ignore_errors=True)
        stop("The pinned packages of tests/requirements.lock could not be installed; pip's message is above.")
