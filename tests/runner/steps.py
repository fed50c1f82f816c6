"""Run one step as a child process, say which one it is and how it ended."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parents[2]


def say(text: str) -> None:
    """Print one line of the command's own to standard error, which leaves standard output to the children."""
    print(f"[tests] {text}", file=sys.stderr, flush=True)


def stop(text: str) -> NoReturn:
    """End the command with a message that says what to do.

    Raises:
        SystemExit: always, with exit code 2.
    """
    say(text)
    raise SystemExit(2)


def run(title: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> int:
    """Run `command` in the repository root, say how it ended and return its exit code.

    Args:
        title: what the reader sees.
        command: program and arguments.
        environment: variables to add to ours.
    """
    say(title)
    begun = time.monotonic()
    code = call(command, environment)
    ending = "ok" if code == 0 else f"FAILED with exit code {code}"
    say(f"{title}: {ending} ({time.monotonic() - begun:.0f} s)")
    return code


def prepare(title: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> int:
    """Run `command` and return its exit code; what it prints goes to standard error, as it is no result."""
    say(title)
    return call(command, environment, output=sys.stderr)


def call(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None, output: IO[str] | None = None
) -> int:
    """Run `command` in the repository root and return its exit code; 127 when there is no such program."""
    arguments = [str(part) for part in command]
    variables = {**os.environ, **(environment or {})}
    try:
        return subprocess.run(arguments, cwd=ROOT, env=variables, stdout=output, check=False).returncode
    except FileNotFoundError:
        say(f"{arguments[0]} is not installed")
        return 127
