"""The list of mutants is sound, and ten of them are planted; ``make mutants`` plants them all."""

import os

import pytest

from tests import run_mutants

MUTANTS = run_mutants.load()
PLANTED = [mutant for mutant in MUTANTS if "equivalent" not in mutant]


def test_there_are_enough_and_the_equivalent_ones_say_why():
    assert len(PLANTED) >= 120
    assert all(len(mutant.get("equivalent", "reason enough")) >= 10 for mutant in MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["file"])
def test_every_mutant_still_fits_its_file(mutant):
    source = (run_mutants.ROOT / mutant["file"]).read_text(encoding="utf-8")
    assert run_mutants.planted(mutant, source) != source
    compile(run_mutants.planted(mutant, source), mutant["file"], "exec")


def test_ten_mutants_are_noticed():
    # Those whose tests are named one by one: a whole file takes longer than it is worth here.
    quick = [mutant for mutant in PLANTED if "::" in mutant["tests"] or " -k " in mutant["tests"]]
    slice_of_ten = quick[:: len(quick) // 10][:10]
    assert run_mutants.run(slice_of_ten, jobs=int(os.environ.get("RANKBOOK_JOBS", "2"))) == []


def test_an_unnoticed_mutant_is_reported(tmp_path):
    harmless = {
        "file": "rankbook/exceptions.py",
        "old": "A solver's answer failed",
        "new": "A solver's answer did fail",
        "tests": "tests/test_costs.py",
    }
    (line,) = run_mutants.run([harmless], jobs=1)
    assert "exceptions.py" in line
