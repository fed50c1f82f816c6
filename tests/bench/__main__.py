"""Run a benchmark and print its table or one JSON object; exit code 1 when the page did something it must not."""

import json
import sys
from collections.abc import Sequence

from tests.bench import kv, lifecycle, speed
from tests.bench.arguments import KvJob, SpeedJob, parse
from tests.bench.table import table


def main(arguments: Sequence[str]) -> int:
    """Do the job that `arguments` describe and return the exit code."""
    job = parse(arguments)
    if isinstance(job, KvJob):
        found = kv.measure(job)
        text = found.table()
    elif isinstance(job, SpeedJob):
        found = speed.measure(job)
        text = found.table()
    else:
        found = lifecycle.measure(job)
        text = table(found)
    print(json.dumps(found.to_json()) if job.prints_json else text, flush=True)
    return int(bool(found.faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
