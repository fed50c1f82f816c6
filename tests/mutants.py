"""Break the product on purpose, one place at a time, and see that a test goes red: `python3 -m tests.mutants [word]`.

Not part of CI. Run it with the Python of the test environment, after a change of the tests; a mutant that survives
means that a promise is not tested. Every mutant is made in a copy of the tree. The kernels' mutants need a browser.
A word runs only the mutants whose file or text holds it.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutations import GROUPS

ROOT = Path(__file__).resolve().parents[1]
# What the tests named here need; not the vendored parts, not the models.
COPIED = ("py", "tests", "wgsl", "worker", "static/strings", "index.html", "pyproject.toml", "serve.py")


@dataclass(frozen=True)
class Mutant:
    """`old`, which stands exactly once in `file`, becomes `new`; then one of `tests` must fail."""

    file: str
    old: str
    new: str
    tests: str

    def apply(self, root: Path) -> str:
        """Break the file below `root` and return its sound text."""
        path = root / self.file
        sound = path.read_text("utf-8")
        count = sound.count(self.old)
        if count != 1:
            sys.exit(f"{self.file}: {self.old!r} stands {count} times; the list of mutants is out of date")
        path.write_text(sound.replace(self.old, self.new), "utf-8")
        return sound


# A mutant may wait for ever, which is noticed as well: after so many times what the tests took without it, and a bit.
PATIENCE, PATIENCE_S = 5, 20

MUTANTS = [Mutant(file, old, new, tests) for file, tests, changes in GROUPS for old, new in changes]


def copy_tree(to: Path) -> None:
    """Copy what the tests need."""
    for name in COPIED:
        source, target = ROOT / name, to / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def goes_red(root: Path, tests: str, patience_s: float | None = None) -> bool:
    """Run `tests` in `root`, at most for `patience_s`; anything but passed and failed tests ends the command."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", tests]
    try:
        finished = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=patience_s)
    except subprocess.TimeoutExpired:
        return True
    if finished.returncode not in (0, 1):
        sys.exit(finished.stdout + finished.stderr)
    return finished.returncode == 1


def main(word: str) -> int:
    """Run the mutants that hold `word` and return how many survived."""
    chosen = [mutant for mutant in MUTANTS if word in f"{mutant.file} {mutant.old} {mutant.tests}"]
    n_survived = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        patience_s = {}
        for tests in sorted({mutant.tests for mutant in chosen}):
            began = time.monotonic()
            if goes_red(root, tests):
                sys.exit(f"{tests} is red without any mutant")
            patience_s[tests] = PATIENCE * (time.monotonic() - began) + PATIENCE_S
        for mutant in chosen:
            sound = mutant.apply(root)
            is_killed = goes_red(root, mutant.tests, patience_s[mutant.tests])
            (root / mutant.file).write_text(sound, "utf-8")
            n_survived += not is_killed
            print(f"{'killed  ' if is_killed else 'SURVIVED'} {mutant.file}: {mutant.old.strip()!r}", flush=True)
    print(f"{len(chosen) - n_survived} of {len(chosen)} mutants were killed")
    return n_survived


if __name__ == "__main__":
    sys.exit(min(main(" ".join(sys.argv[1:])), 1))
