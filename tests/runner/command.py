"""`python3 -m tests`: environment, browser, parts, static checks, then every lane in one pytest."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tests.runner import chromium, environment, parts
from tests.runner.lanes import BROWSER_LANES, LANES, STATIC, static_checks
from tests.runner.steps import ROOT, call, run, say


def main(arguments: Sequence[str]) -> int:
    """Run what `arguments` ask for and return the worst exit code."""
    ours, for_pytest = _split(arguments)
    options = _parser().parse_args(ours)
    chosen = options.lane or [STATIC, *LANES]
    lanes = [lane for lane in LANES if lane in chosen]
    python = environment.ensure()
    settings = _settings(options, lanes)
    if lanes:
        say("the pinned parts of the page")
        parts.ensure()
    failed = _static(python) if STATIC in chosen else []
    code = _pytest(python, lanes, for_pytest, settings, failed, options) if lanes else 0
    return max(code, 1 if failed else 0)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tests",
        description="Run the tests. Without a lane: all of them, on a fresh machine too.",
        epilog="What follows -- goes to pytest. The other command: python3 -m tests drive --help",
    )
    parser.add_argument(
        "lane", nargs="*", choices=[[], STATIC, *LANES], metavar="LANE", help=", ".join([STATIC, *LANES])
    )
    parser.add_argument("--chromium", metavar="PATH", help="the browser to use")
    parser.add_argument("--adapter", metavar="VENDOR/ARCHITECTURE", help="the GPU to run on")
    parser.add_argument("--update-list", action="store_true", help="write tests/tests.txt")
    return parser


def _settings(options: argparse.Namespace, lanes: Sequence[str]) -> list[str]:
    settings = [f"--adapter={options.adapter}"] if options.adapter else []
    if BROWSER_LANES.intersection(lanes):
        browser = chromium.ensure(options.chromium)
        say(f"the browser is {browser}")
        settings.append(f"--chromium={browser}")
    return settings


def _static(python: Path) -> list[str]:
    # import-linter imports the packages it looks at.
    search = {"PYTHONPATH": str(ROOT / "py")}
    return [title for title, command in static_checks(python.parent) if run(title, command, search)]


def _pytest(
    python: Path,
    lanes: Sequence[str],
    extra: Sequence[str],
    settings: Sequence[str],
    failed: Sequence[str],
    options: argparse.Namespace,
) -> int:
    command = [
        str(python),
        "-m",
        "pytest",
        *(f"tests/{lane}" for lane in lanes),
        *settings,
        "-m",
        "not nightly",
    ]
    # Extra arguments may select a part of a lane; then the list of tests says nothing.
    if not extra:
        command += [f"--roll-call={','.join(lanes)}", *(["--update-list"] if options.update_list else [])]
    say("pytest " + " ".join(lanes))
    # Nothing is printed afterwards: pytest's summary is the last line.
    return call([*command, *extra], {"CLUTCH_FAILED_CHECKS": ", ".join(failed)})
