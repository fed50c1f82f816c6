"""One installer at a time: an advisory file lock that the operating system drops when its holder dies."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
    import time

    def _try_lock(stream: IO[bytes]) -> bool:
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_lock(stream: IO[bytes]) -> None:
        while not _try_lock(stream):
            time.sleep(0.5)

else:
    import fcntl

    def _try_lock(stream: IO[bytes]) -> bool:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _wait_lock(stream: IO[bytes]) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX)


@contextmanager
def exclusive(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file `path` for a `with` block; `on_wait` is called once if another run holds it.

    The file stays: removing it would let two later runs hold two different files of the same name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        if not _try_lock(stream):
            on_wait()
            _wait_lock(stream)
        yield
