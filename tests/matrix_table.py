"""`python3 -m tests.matrix_table` writes the fault matrix's document."""

from pathlib import Path

from tests.support.fault_cells import FAULTS
from tests.support.fault_matrix import CASES, PHASES

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "fault-matrix.md"


def main() -> None:
    """Write it."""
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(to_markdown(), encoding="utf-8")


def to_markdown() -> str:
    """Return `docs/fault-matrix.md`."""
    n_cells = len(PHASES) * len(FAULTS)
    lines = [
        "# The fault matrix",
        "",
        "What may go wrong, where, and how it must end. Written by `python3 -m tests.matrix_table` from",
        "`tests/support/fault_matrix.py`. `tests/browser/test_fault_matrix*.py` makes each case happen in a worker",
        "and asks a question afterwards, whose answer is known.",
        "",
        f"{len(PHASES)} phases, {len(FAULTS)} faults: {len(CASES)} cases; {n_cells - len(CASES)} cells are no case.",
        "",
        "There is no phase of verifying: a model file has no known hash, and the product's own parts are verified when",
        "they are installed. E700, READY: the page replaces the worker, keeps the transcript and loads the",
        "model again.",
        "",
        f"| phase | {' | '.join(FAULTS.values())} |",
        f"| --- |{' --- |' * len(FAULTS)}",
    ]
    lines += [f"| {phase.name} | {' | '.join(str(phase.cells[fault]) for fault in FAULTS)} |" for phase in PHASES]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
