"""The file of checks: what it must define."""

import numpy as np
import pytest

from rankbook.exercises import student_rng
from rankbook.grading import load_checks

HEAD = "from types import SimpleNamespace as Q\nSET, TITLE, MANUAL = 'P0', 'Nothing', []\n"


def write(folder, text):
    path = folder / "checks.py"
    path.write_text(text)
    return path


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ValueError, match="define TITLE, MANUAL"):
        load_checks(write(tmp_path, "SET, QUESTIONS = 'P0', []"))


def test_an_id_stands_for_one_question(tmp_path):
    text = HEAD + "QUESTIONS = [Q(id='a'), Q(id='b'), Q(id='a')]"
    with pytest.raises(ValueError, match=r"repeats \['a'\]"):
        load_checks(write(tmp_path, text))


def test_inputs_are_drawn_as_in_the_book_unless_the_file_says_how(tmp_path):
    checks = load_checks(write(tmp_path, HEAD + "QUESTIONS = []"))
    drawn = checks.student_rng("P0.1", "ada", secret="hush").normal(size=3)
    wanted = student_rng("P0.1", "ada", secret="hush").normal(size=3)
    np.testing.assert_array_equal(drawn, wanted)
