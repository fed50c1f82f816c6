"""Print one answer a line (or a summary of each); exit code 1 when one has errors."""

import json
import sys
from collections.abc import Sequence

from tests.drive.arguments import parse
from tests.drive.session import answers
from tests.drive.summary import summary


def main(arguments: Sequence[str]) -> int:
    """Do the job that `arguments` describe and return the exit code."""
    job = parse(arguments)
    has_errors = False
    for answer in answers(job):
        print(json.dumps(answer.to_json()) if job.prints_json else summary(answer), flush=True)
        has_errors = has_errors or bool(answer.errors)
    return int(has_errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
