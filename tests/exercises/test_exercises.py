"""Checkers of the chapters' exercises: right answers pass, wrong ones get a message that helps."""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml

from rankbook import exercises
from rankbook.exercises import Question, student_rng
from rankbook.exercises._make import CHAPTERS
from rankbook.exercises._registry import questions
from tests.exercises.answers import RIGHT, WRONG

ROOT = Path(__file__).resolve().parents[2]
IDS = [row["id"] for row in exercises.table()]
EXERCISE = r"\{exercise(?:-start)?\}[^\n]*\n\s*:label:\s*(\S+)"


def test_every_checker_is_tried():
    assert list(RIGHT) == list(WRONG) == IDS
    assert all(len(wrong) >= 3 for wrong in WRONG.values())


@pytest.mark.parametrize("id", IDS)
def test_right_answers_pass(id):
    for seed in (0, 1):
        verdict = exercises.check(id, RIGHT[id], rng=seed)
        assert verdict and verdict.passed, verdict


@pytest.mark.parametrize("id", IDS)
def test_wrong_answers_fail_and_the_message_keeps_the_secret(id):
    question = questions()[id]
    for answer in WRONG[id]:
        verdict = exercises.check(id, answer)
        assert not verdict, f"{answer!r} passes"
        assert len(verdict.message) > 20 and verdict.message.endswith((".", "?"))
        if not question.function and question.accepts is None:
            numbers = re.findall(r"\d+\.\d+", verdict.message)
            right = np.concatenate([np.ravel(part) for part in np.atleast_1d(question.reference())])
            assert not any(np.isclose(float(n), right, atol=5e-3).any() for n in numbers)


@pytest.mark.parametrize("id", [id for id in IDS if questions()[id].function])
def test_instances_are_two_random_ones_and_edge_cases(id):
    draw = questions()[id].instances
    one, same, other = (draw(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert repr(one) == repr(same) and len(one) >= 4
    assert sum(repr(a) != repr(b) for a, b in zip(one, other, strict=True)) >= 2


def chapters():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    parts = [part for part in contents["parts"] if part.get("numbered")]
    return [c["file"].removeprefix("book/") for part in parts for c in part["chapters"]]


def test_numbers_are_those_of_the_pages():
    assert list(CHAPTERS) == chapters(), "_make.CHAPTERS is not the order of _toc.yml"


def exercise_texts():
    """Number as on the page -> text of the exercise."""
    found = {}
    for number, chapter in enumerate(chapters(), 1):
        cells = json.loads((ROOT / "book" / f"{chapter}.ipynb").read_text())["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        text = text.split("\n## Exercises")[1]
        pieces = re.split(EXERCISE, text)[1:]
        for k, body in enumerate(pieces[1::2], 1):
            found[f"{number}.{k}"] = re.split(r"\{solution|^(?:`{3,}|:{3,})\s*$", body, flags=re.M)[
                0
            ]
    return found


def test_chapters_say_how_to_check():
    texts = exercise_texts()
    told = {
        number: re.findall(r'exercises\.check\("([\d.]+)", (\w+)\)', text)
        for number, text in texts.items()
    }
    wrong = {number: ids for number, ids in told.items() if ids and [i for i, _ in ids] != [number]}
    assert not wrong, f"exercise -> the number that its line gives: {wrong}"
    assert [number for number, ids in told.items() if ids] == IDS
    for number in IDS:
        assert re.search(r"\*\*\([EMH], code", texts[number]), f"{number} is no code exercise"
        name = questions()[number].function
        assert told[number][0][1] == (name or "answer"), number


def test_the_page_of_the_book_lists_every_checker():
    page = (ROOT / "book" / "reference" / "checked_exercises.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \{ref\}`(.+?) <(.+?)>` \| (.+?) \| (.+?) \|$", page, re.M)
    assert [(n, t, a) for n, _, t, a in rows] == [tuple(row.values()) for row in exercises.table()]
    labels = {}
    for number, chapter in enumerate(chapters(), 1):
        text = (ROOT / "book" / f"{chapter}.ipynb").read_text()
        found = re.findall(r"\{exercise(?:-start)?\}.*?:label:\s*([\w-]+)", text, re.S)
        labels |= {f"{number}.{k}": label for k, label in enumerate(found, 1)}
    assert all(labels[n] == label for n, label, _, _ in rows)


class TestCompare:
    """Types, shapes and numbers, on a question whose answer is known."""

    def judge(self, answer, expected, **options):
        question = Question("0.0", "t", 1, "f", lambda rng: [()], lambda: expected, **options)
        return question.compare(answer, expected)

    @pytest.mark.parametrize(
        "answer, expected",
        [
            (1, 1.0),
            (Fraction(1, 3), 1 / 3),
            (np.array(2.0), 2),
            (np.float32(0.5), 0.5),
            ([1, 2], np.array([1.0, 2.0])),
            ((1, [2, 3]), (1.0, np.array([2.0, 3.0]))),
            (np.nan, np.nan),
            (np.inf, np.inf),
            (np.True_, True),
            (np.array(True), True),
            ([True, False], np.array([True, False])),
            ("abc", "abc"),
            (None, None),
            ({"a": 1}, {"a": 1.0}),
            (1 + 5e-9, 1.0),
        ],
    )
    def test_right(self, answer, expected):
        assert self.judge(answer, expected)

    @pytest.mark.parametrize(
        "answer, expected, part",
        [
            (True, 1.0, "number"),
            (np.True_, 1.0, "number"),
            (1, True, "True or False"),
            (1j, 1.0, "number"),
            (10**400, 1.0, "not right"),
            (np.nan, 1.0, "NaN"),
            ([1.0], 1.0, "single number"),
            (1.0, np.array([1.0]), "array"),
            (np.array(1.0), np.array([1.0]), "shape"),
            ([1, 2, 3], np.array([1.0, 2.0]), "2 entries, not 3"),
            ([[1], [1, 2]], np.ones((2, 2)), "different lengths"),
            ([1, 2], np.ones((2, 2)), "shape"),
            ([True, True], np.ones(2), "booleans"),
            (["1", "1"], np.ones(2), "text"),
            ([1, 0], np.array([True, False]), "True and False"),
            ([1.0, 2.0, 5.0], np.array([1.0, 2.0, 3.0]), "1 of 3 entries (the first is entry 2)"),
            (None, 1.0, "return"),
            (None, np.ones(2), "return"),
            (lambda: 1, 1.0, "function"),
            ((1, 2), (1, 2, 3), "3 values"),
            (5, (1, 2), "2 values"),
            ((1, 5), (1, 2), "value 2 of 2"),
            (1, "a", "string"),
            (0, None, "None"),
            ([1], {"a": 1}, "dictionary"),
            ({"b": 1}, {"a": 1}, "keys"),
            ({"a": 2}, {"a": 1}, "'a'"),
            (1 + 5e-8, 1.0, "not right"),
        ],
    )
    def test_wrong(self, answer, expected, part):
        verdict = self.judge(answer, expected)
        assert not verdict and part in verdict.message

    def test_hints_are_added_by_kind(self):
        hints = {"shape": "Look at the shape.", "value": "Look at the value."}
        assert self.judge(2.0, 1.0, hints=hints).message.endswith("Look at the value.")
        assert self.judge([2.0], 1.0, hints=hints).message.endswith("Look at the shape.")
        assert "Look" not in self.judge("2", 1.0, hints=hints).message

    def test_an_answer_that_breaks_the_check_is_wrong(self):
        verdict = self.judge("x", 1, accepts=lambda answer, expected: answer / 0)
        assert not verdict and "form" in verdict.message


class TestGrade:
    question = Question(
        "0.0", "double", 4, "double", lambda rng: [(rng.random(),), (0.0,)], lambda x: 2 * x
    )

    def values(self, function):
        return [function(*a) for a in self.question.instances(np.random.default_rng(5))]

    def test_all_values_are_judged(self):
        good = self.question.grade(self.values(lambda x: x + x), np.random.default_rng(5))
        bad = self.question.grade(self.values(lambda x: 3 * x), np.random.default_rng(5))
        assert good and good.message == "all 2 cases are right."
        assert not bad and bad.message.startswith("1 of 2 cases are right")

    def test_other_instances_are_other_values(self):
        assert not self.question.grade(self.values(lambda x: x + x), np.random.default_rng(6))

    def test_too_few_values(self):
        assert not self.question.grade([0.0], np.random.default_rng(5))

    def test_answers_must_fit_together(self):
        def draws(rng):
            return [(seed,) for seed in (int(rng.integers(9)), 1, 2, 1)]

        def seed_decides(answers, seeds):
            return "" if answers[1] == answers[3] != answers[2] else "the seed does not decide"

        question = Question(
            "9.9",
            "Seed",
            1,
            "f",
            draws,
            lambda seed: seed,
            together=seed_decides,
            accepts=lambda answer, seed: "" if 0 <= answer < 1 else "out of range",
        )
        for answers, told in (
            ([0.1, 0.2, 0.3, 0.2], "all 4 cases are right."),
            ([0.1, 0.2, 0.3, 0.4], "the seed does not decide."),
            ([0.1, 0.2, 0.2, 0.2], "the seed does not decide."),
            ([7.0, 0.2, 0.3, 0.4], "3 of 4 cases are right; in one, out of range."),
        ):
            verdict = question.grade(answers, np.random.default_rng(0))
            assert verdict.message == told and bool(verdict) == told.startswith("all")


class TestCheck:
    def test_a_function_for_a_value_and_the_reverse(self):
        assert "a value, not a function" in exercises.check("1.1", lambda: 7 / 8).message
        assert "volume(y, scores)" in exercises.check("5.5", 0.5).message

    def test_errors_are_told(self):
        def broken(y, scores):
            raise KeyError("no such class")

        message = exercises.check("5.5", broken).message
        assert "KeyError" in message and "no such class" in message and "0 of 5" in message

    def test_arguments_are_copies(self):
        def spoils(y, scores):
            value = RIGHT["5.5"](y, scores)
            y[:] = 1
            return value

        assert exercises.check("5.5", spoils)

    def test_unknown_exercise(self):
        with pytest.raises(ValueError, match="id must be .*1.1"):
            exercises.check("1.12", 1)
        with pytest.raises(ValueError, match="id must be one of"):
            exercises.check(3, 1)


class TestStudents:
    def test_the_seed_is_the_hmac(self):
        import hashlib
        import hmac

        digest = hmac.new(b"key", b"term:P1.9:ada", hashlib.sha256).hexdigest()
        ours = student_rng("P1.9", "ada", secret="key", course="term").random(3)
        np.testing.assert_array_equal(ours, np.random.default_rng(int(digest, 16)).random(3))

    def test_every_part_of_the_seed_counts(self):
        draws = {
            student_rng("P1.9", "ada").random(),
            student_rng("P1.8", "ada").random(),
            student_rng("P1.9", "bob").random(),
            student_rng("P1.9", "ada", secret=b"key").random(),
            student_rng("P1.9", "ada", course="other").random(),
        }
        assert len(draws) == 5

    def test_data_of_ones_own(self):
        (X, y), (X_again, _), (X_other, _), (X_secret, _) = (
            exercises.dataset("P1.9", student=name, secret=secret)
            for name, secret in (("ada", None), ("ada", None), ("bob", None), ("ada", "s"))
        )
        assert X.shape == (60, 2) and set(y) == {0, 1}
        np.testing.assert_array_equal(X, X_again)
        assert not np.array_equal(X, X_other) and not np.array_equal(X, X_secret)

    def test_bad_arguments(self):
        with pytest.raises(TypeError, match="student must be a string"):
            student_rng("P1.9", 7)
        with pytest.raises(ValueError, match="student must not be empty"):
            exercises.dataset("P1.9", student="")
        with pytest.raises(TypeError, match="secret"):
            student_rng("P1.9", "ada", secret=3)
        with pytest.raises(ValueError, match="id must be"):
            exercises.dataset("1.1", student="ada")  # a value has no data
