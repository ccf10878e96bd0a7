"""Options of the command line; the notebooks are our own and need no sandbox."""

import subprocess
import sys
import zipfile

import pytest

from rankbook.grading import __main__ as command
from rankbook.grading.__main__ import main
from tests.grading.attacks import HONEST
from tests.grading.conftest import CHECKS, earned, notebook, results, status


@pytest.fixture
def grade(tmp_path, capsys):
    """From a notebook and options to its stored result."""

    def run(text, *options):
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / "s1.ipynb").write_text(text)
        output = tmp_path / "graded"
        places = [CHECKS, tmp_path / "class", "--output", output, "--unsafe-no-sandbox"]
        code = main([str(word) for word in (*places, "--question-seconds", 60, *options)])
        assert code == 0, capsys.readouterr().err
        return results(output)["s1"]

    return run


def test_inputs_are_drawn_by_the_name_of_the_roster_and_the_secret(grade, checks, tmp_path):
    """The answer knows the inputs of one name and one secret by heart, and no others."""
    question = checks.questions[0]
    rng = checks.student_rng(question.id, "Ada Lovelace", secret="hush")
    known = {repr(x.tolist()): question.reference(x) for (x,) in question.instances(rng)}
    text = notebook(f"def spread(x): return {known!r}[repr(x.tolist())]")
    roster, secret = tmp_path / "roster.csv", tmp_path / "secret"
    roster.write_text("id,student\ns1,Ada Lovelace\ns2,Emmy Noether\n", encoding="utf-8-sig")
    secret.write_text("hush\n")
    names, seeds = ("--roster", roster), ("--secret-file", secret)
    assert status(grade(text))["P9.1"] == "error"
    assert status(grade(text, *names))["P9.1"] == "error"
    assert status(grade(text, *seeds))["P9.1"] == "error"
    assert status(grade(text, *names, *seeds))["P9.1"] == "passed"


def test_what_was_killed_is_graded_again_when_asked(grade, tmp_path):
    """The notebook ends its process until a file is there."""
    mark = tmp_path / "mark"
    text = notebook(HONEST, f"import os\nif not os.path.exists({str(mark)!r}): os._exit(1)")
    assert status(grade(text))["P9.1"] == "killed"
    mark.touch()
    assert earned(grade(text))["P9.1"] is None
    assert earned(grade(text, "--retry-killed"))["P9.1"] == 4


def test_an_error_of_the_instructors_is_told_and_nothing_is_graded(tmp_path, capsys):
    assert main([str(tmp_path / "none.py"), str(tmp_path), "--output", str(tmp_path / "out")]) == 2
    assert "none.py" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_each_learning_management_system_gets_its_sheet(tmp_path, capsys):
    """And a worksheet of its own is filled in."""
    names = {
        "moodle": "Ada Lovelace_101_assignsubmission_file_/ps1.ipynb",
        "canvas": "lovelaceada_101_9001_ps1.ipynb",
    }
    head = "Student,ID,SIS User ID,SIS Login ID,Section,Points\n"
    (tmp_path / "sheet.csv").write_text(head + "Ada,101,s1,ada,One,7\n")
    for system, name in names.items():
        with zipfile.ZipFile(tmp_path / f"{system}.zip", "w") as archive:
            archive.writestr(name, notebook(HONEST))
        output = tmp_path / system
        words = [CHECKS, tmp_path / f"{system}.zip", "--output", output, "--unsafe-no-sandbox"]
        if system == "canvas":
            words += ["--worksheet", tmp_path / "sheet.csv", "--grade-column", "Points"]
        assert main([str(word) for word in words]) == 0, capsys.readouterr().err
        assert sorted(p.name for p in output.glob("*.csv")) == sorted(
            ["gradebook.csv", f"{system}.csv", "review.csv"]
        )
    # A human has still to look at the proof: the old points stand.
    assert (tmp_path / "canvas" / "canvas.csv").read_text().splitlines()[1].endswith("One,7")
    assert "Participant 101" in (tmp_path / "moodle" / "moodle.csv").read_text()


def test_cells_that_nbgrader_lacks_are_told(grade, monkeypatch, capsys):
    asked = []
    for lost in (["P9.1", "P9.2"], []):
        monkeypatch.setattr(command, "to_nbgrader", lambda *a, lost=lost: asked.append(a) or lost)
        grade(notebook(HONEST), "--nbgrader", "sqlite:///book.db")
        told = capsys.readouterr().err
        assert ("nbgrader has no cell for P9.1, P9.2" in told) == bool(lost)
    assert asked[0][1:] == ("sqlite:///book.db", "P9", "P9")


def test_it_is_started_as_a_module(tmp_path):
    words = [sys.executable, "-m", "rankbook.grading", str(tmp_path / "none.py"), str(tmp_path)]
    run = subprocess.run(words, capture_output=True, text=True)
    assert run.returncode == 2 and "none.py" in run.stderr
