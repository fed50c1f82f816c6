"""The list of mutants is up to date: what it would change stands in its file exactly once."""

from tests.mutants import MUTANTS, ROOT


def test_every_mutant_can_be_made():
    stale = [mutant for mutant in MUTANTS if (ROOT / mutant.file).read_text("utf-8").count(mutant.old) != 1]
    assert stale == []
    assert {mutant.tests for mutant in MUTANTS if not (ROOT / mutant.tests.split("::")[0]).exists()} == set()
