"""Bring the page's pinned parts and the default model, through serve.py's own code."""

import sys

from tests.runner.steps import ROOT, stop

sys.path.insert(0, str(ROOT / "py"))

from serving.errors import ServingError
from serving.install import install


def ensure() -> None:
    """Fetch what is missing; progress goes to standard error.

    Raises:
        SystemExit: a part cannot be had; the message says which and what to do.
    """
    try:
        install(ROOT / "static", report=_report)
    except ServingError as error:
        stop(f"The parts that the page needs could not be fetched. {error}")


def _report(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
