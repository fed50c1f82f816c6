"""`python3 -m tests` (the test command), `... drive` (the page from the command line), `... bench` (its speed).

`... synthetic FILE` writes a model of a real one's shape for speed runs.
"""

import os
import shutil
import sys

OLDEST = (3, 11)


def _newer_python():
    names = ("python3.13", "python3.12", "python3.11")
    return next((path for path in map(shutil.which, names) if path), None)


def main(arguments):
    """Hand over to the test command or the driver; an old `python3` hands over to a newer one first."""
    if sys.version_info < OLDEST:
        python = _newer_python()
        if python is None:
            sys.exit("Python 3.11 or newer is needed; this is %d.%d." % sys.version_info[:2])  # noqa: UP031
        os.execv(python, [python, "-m", "tests", *arguments])
    from tests.runner import benching, command, driving

    if arguments[:1] == ["drive"]:
        return driving.main(arguments[1:])
    if arguments[:1] == ["bench"]:
        return benching.main(arguments[1:])
    if arguments[:1] == ["synthetic"]:
        return benching.synthetic(arguments[1:])
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
