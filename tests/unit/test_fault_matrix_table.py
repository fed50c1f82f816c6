"""The fault matrix's document is current, and the table has no holes."""

from tests.matrix_table import DOCUMENT, to_markdown
from tests.support.fault_cells import FAULTS
from tests.support.fault_matrix import CASES, PHASES, name_of


def test_the_document_is_current():
    assert DOCUMENT.read_text(encoding="utf-8") == to_markdown(), "run python3 -m tests.matrix_table"


def test_every_cell_is_a_case_or_says_why_not():
    for phase in PHASES:
        assert phase.cells.keys() == FAULTS.keys(), phase.name
        assert all(cell.startswith(("n/a: ", "left out: ")) for cell in phase.cells.values() if isinstance(cell, str))


def test_the_cases_have_names_of_their_own():
    names = [name_of(phase, fault) for phase, fault, _ in CASES]
    assert len(names) == len(set(names)) >= 90
