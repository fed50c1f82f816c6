"""Run a benchmark and print its table or one JSON object; exit code 1 when the page did something it must not."""

import json
import sys
from collections.abc import Sequence

from tests.bench.arguments import parse
from tests.bench.lifecycle import measure
from tests.bench.table import table


def main(arguments: Sequence[str]) -> int:
    """Do the job that `arguments` describe and return the exit code."""
    job = parse(arguments)
    report = measure(job)
    print(json.dumps(report.to_json()) if job.prints_json else table(report), flush=True)
    return int(bool(report.faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
