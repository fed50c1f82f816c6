"""The lanes (one folder of tests each, in the order they run) and the static checks."""

from pathlib import Path

# Browser lanes come last: Playwright keeps an event loop running in its thread, and asyncio.run() then fails.
LANES = ("unit", "fault", "kernels", "browser")
BROWSER_LANES = frozenset({"kernels", "browser"})
STATIC = "static"


def lane_of(node_id: str) -> str | None:
    """Return the lane of a pytest node id such as ``tests/unit/test_x.py::test_y[3]``, or None."""
    parts = node_id.split("::", 1)[0].split("/")
    return parts[1] if parts[0] == "tests" and len(parts) > 2 and parts[1] in LANES else None


def static_checks(programs: Path) -> list[tuple[str, list[str]]]:
    """Return title and command of every static check.

    Args:
        programs: the folder of the environment's programs.
    """
    return [
        ("ruff check", [str(programs / "ruff"), "check"]),
        ("ruff format", [str(programs / "ruff"), "format", "--check"]),
        ("mypy", [str(programs / "mypy")]),
        ("import-linter", [str(programs / "lint-imports")]),
    ]
