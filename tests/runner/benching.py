"""Start the benchmarks inside the test environment."""

from collections.abc import Sequence

from tests.runner import environment
from tests.runner.steps import call


def main(arguments: Sequence[str]) -> int:
    """Run `tests.bench` with `arguments` and return its exit code."""
    python = environment.ensure()
    return call([python, "-m", "tests.bench", *arguments])


def synthetic(arguments: Sequence[str]) -> int:
    """Run `tests.bench.synthetic` with `arguments` and return its exit code."""
    python = environment.ensure()
    return call([python, "-m", "tests.bench.synthetic", *arguments])
