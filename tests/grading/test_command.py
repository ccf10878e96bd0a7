"""Options of the command line; the notebooks are our own and need no sandbox."""

import pytest

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
