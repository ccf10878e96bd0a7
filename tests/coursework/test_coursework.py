"""Problem sets: the release hides all that it should, and the checks score as they should."""

import ast
import copy
import importlib
import re
import runpy
import sys
import warnings
from pathlib import Path

import nbformat
import numpy as np
import pytest

from rankbook.exercises import ManualQuestion, Question, student_rng

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "coursework"
SETS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
CONVERT = runpy.run_path(str(FOLDER / "convert.py"))
BROKEN = object()  # stands for the value of a call that raised


@pytest.fixture(params=SETS, scope="module")
def built(request, tmp_path_factory):
    """The source of a set, and the folder of what is made of it."""
    folder = tmp_path_factory.mktemp(request.param)
    CONVERT["convert"](FOLDER / f"{request.param}.ipynb", folder)
    return nbformat.read(FOLDER / f"{request.param}.ipynb", 4), folder


@pytest.fixture(scope="module")
def checks(built):
    return runpy.run_path(str(built[1] / "checks.py"))


@pytest.fixture(scope="module")
def answers(built):
    """The cells of the solution."""
    return nbformat.read(built[1] / "solution.ipynb", 4).cells


@pytest.fixture(scope="module")
def release(built):
    return nbformat.read(built[1] / "release.ipynb", 4)


@pytest.fixture(scope="module")
def wrong(built):
    return importlib.import_module(f"tests.coursework.wrong_{built[1].name[4]}").WRONG


def run(cells):
    space = {}
    for cell in cells:
        if cell.cell_type == "code":
            exec(cell.source, space)
    return space


def call(function, arguments):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*copy.deepcopy(arguments))
    except Exception:  # noqa: BLE001 - whatever a student's function raises
        return BROKEN


def lost(checks, space, student="ada"):
    """The ids of the questions that these functions do not answer."""
    missing = set()
    for question in checks["QUESTIONS"]:
        rng = student_rng(question.id, student, secret=b"test")
        instances = question.instances(rng)
        function = space.get(question.function)
        values = [call(function, arguments) for arguments in instances]
        again = student_rng(question.id, student, secret=b"test")
        if not question.grade(values, again):
            missing.add(question.id)
    return missing


def test_there_are_sets():
    assert SETS


class TestForm:
    def test_questions_points_and_times(self, built, checks):
        source, _ = built
        automatic, manual = checks["QUESTIONS"], checks["MANUAL"]
        assert all(isinstance(question, Question) for question in automatic)
        assert all(isinstance(question, ManualQuestion) for question in manual)
        assert checks["SET"] == source.metadata.rankbook.set and checks["TITLE"]
        assert sum(question.points for question in [*automatic, *manual]) == 100
        text = "\n".join(cell.source for cell in source.cells if cell.cell_type == "markdown")
        heads = re.findall(r"^## (\d+)\. .* \((\d+) points, (\d+) minutes\)$", text, re.M)
        assert [int(number) for number, _, _ in heads] == list(range(1, len(heads) + 1))
        assert 8 <= len(heads) <= 10
        for number, points, _ in heads:
            mine = re.compile(rf"{checks['SET']}\.{number}[a-z]?")
            given = [q.points for q in [*automatic, *manual] if mine.fullmatch(q.id)]
            assert sum(given) == int(points), f"question {number}"

    def test_names_are_unique_and_instances_many(self, checks):
        names = [question.id for question in [*checks["QUESTIONS"], *checks["MANUAL"]]]
        assert len(names) == len(set(names))
        for question in checks["QUESTIONS"]:
            assert question.hints, f"{question.id} has no hint"
            draws = [question.instances(np.random.default_rng(seed)) for seed in (1, 2)]
            if draws[0] != [()]:
                differ = sum(repr(a) != repr(b) for a, b in zip(*draws, strict=True))
                assert differ >= 2 and len(draws[0]) >= 3, question.id

    def test_rubrics_add_up(self, built, checks):
        text = (built[1] / "rubric.md").read_text(encoding="utf-8")
        for question in checks["MANUAL"]:
            assert question.rubric in text and f"## {question.id} " in text
            items = re.findall(r"^- (?:Part \d, )?(\d+) points?:", question.rubric, re.M)
            assert sum(map(int, items)) == question.points, question.id

    def test_no_outputs_are_stored(self, built):
        for cell in built[0].cells:
            assert not cell.get("outputs") and cell.get("execution_count") is None


class TestRelease:
    def test_no_solution_check_or_marker(self, built, release):
        source, folder = built
        raw = (folder / "release.ipynb").read_text(encoding="utf-8")
        assert not re.search(r"BEGIN|END SOLUTION|hidden|rubric|Question\(|\breference", raw)
        text = "\n".join(cell.source for cell in release.cells)
        secret = CONVERT["secret_lines"](source)
        assert len(secret) > 100
        assert not [line for line in secret if line in text]

    def test_every_answer_has_its_place(self, built, release):
        stubs = [c for c in release.cells if c.metadata.get("nbgrader", {}).get("solution")]
        for cell in stubs:
            stub = "raise NotImplementedError()" if cell.cell_type == "code" else "YOUR ANSWER HERE"
            assert stub in cell.source
        source = [c for c in built[0].cells if c.metadata.get("nbgrader", {}).get("solution")]
        assert len(stubs) == len(source)

    def test_it_scores_nothing(self, checks, release):
        space = run([c for c in release.cells if not CONVERT["graded"](c)])
        assert lost(checks, space) == {question.id for question in checks["QUESTIONS"]}

    def test_it_needs_what_the_book_needs(self, release):
        known = {"numpy", "rankbook", "scipy", "sklearn", "matplotlib", "pandas"}
        known |= set(sys.stdlib_module_names)
        for cell in release.cells:
            for node in ast.walk(ast.parse(cell.source)) if cell.cell_type == "code" else ():
                if isinstance(node, ast.Import):
                    assert {alias.name.split(".")[0] for alias in node.names} <= known
                elif isinstance(node, ast.ImportFrom):
                    assert node.module.split(".")[0] in known

    def test_its_tests_are_locked(self, release):
        tests = [c for c in release.cells if CONVERT["graded"](c) and c.cell_type == "code"]
        assert tests
        assert all(c.metadata.editable is False and c.metadata.nbgrader.checksum for c in tests)


class TestScores:
    def test_solutions_earn_all(self, checks, answers):
        for student in ("ada", "bob"):
            assert lost(checks, run(answers), student) == set()

    def test_wrong_answers_lose_what_they_should(self, checks, answers, wrong):
        for name, cases in wrong.items():
            mine = [q for q in checks["QUESTIONS"] if re.fullmatch(rf"{name}[a-z]?", q.id)]
            assert mine and len(cases) >= 3, name
            for code, expected in cases:
                # it can touch no other question
                assert set(re.findall(r"^def (\w+)", code, re.M)) <= {q.function for q in mine}
                defined = [cell for cell in answers if not CONVERT["graded"](cell)]
                space = run([*defined, nbformat.v4.new_code_cell(code)])
                assert lost({"QUESTIONS": mine}, space) == expected, code

    def test_every_question_has_three_wrong_answers(self, checks, wrong):
        for question in checks["QUESTIONS"]:
            losing = [
                code for cases in wrong.values() for code, gone in cases if question.id in gone
            ]
            assert len(losing) >= 3, question.id

    def test_solutions_do_not_use_what_is_forbidden(self, checks, answers):
        source = "\n".join(cell.source for cell in answers if cell.cell_type == "code")
        for question in checks["QUESTIONS"]:
            for name in question.forbidden:
                assert name not in source, f"{question.id}: {name}"


class TestLeaks:
    """A mistake in a source is an error, not a leak."""

    @pytest.fixture
    def source(self):
        return nbformat.read(FOLDER / f"{SETS[0]}.ipynb", 4)

    def solution(self, source):
        return next(c for c in source.cells if "BEGIN SOLUTION" in c.source)

    def test_a_misspelt_marker(self, source):
        cell = next(c for c in source.cells if CONVERT["graded"](c) and c.cell_type == "code")
        cell.source += "\n### BEGIN HIDDEN TEST\nassert secret()\n### END HIDDEN TESTS"
        with pytest.raises((ValueError, RuntimeError)):
            CONVERT["release_of"](source)

    def test_a_line_of_the_solution_outside_of_it(self, source):
        cell = self.solution(source)
        line = re.search(r"BEGIN SOLUTION\n\s*(.*)", cell.source)[1]
        source.cells[0].source += f"\nHint: `{line}`"
        with pytest.raises(ValueError, match="release would show"):
            CONVERT["release_of"](source)

    def test_no_end_of_a_solution(self, source):
        cell = self.solution(source)
        cell.source = cell.source.replace("### END SOLUTION", "")
        with pytest.raises(RuntimeError, match="no end solution"):
            CONVERT["release_of"](source)

    def test_a_solution_in_a_cell_of_tests(self, source):
        cell = next(c for c in source.cells if CONVERT["graded"](c) and c.cell_type == "code")
        cell.source += "\n### BEGIN SOLUTION\nanswer_of_the_set = 42\n### END SOLUTION"
        with pytest.raises(RuntimeError, match="(?i)solution region"):
            CONVERT["release_of"](source)

    def test_a_name_twice(self, source):
        ids = [c for c in source.cells if "nbgrader" in c.metadata]
        ids[1].metadata.nbgrader.grade_id = ids[0].metadata.nbgrader.grade_id
        with pytest.raises(Exception, match="failed to validate"):
            CONVERT["release_of"](source)

    def test_a_question_without_a_rubric(self, source):
        source.cells = [c for c in source.cells if "rubric" not in CONVERT["tags"](c)]
        with pytest.raises(ValueError, match="no rubric for"):
            CONVERT["checks_of"](source)

    def test_points_that_do_not_add_up(self, source, tmp_path):
        next(filter(CONVERT["graded"], source.cells)).metadata.nbgrader.points += 1
        nbformat.write(source, tmp_path / "set.ipynb")
        with pytest.raises(ValueError, match="100 are wanted"):
            CONVERT["convert"](tmp_path / "set.ipynb", tmp_path / "out")


def test_the_command_converts_all(tmp_path):
    CONVERT["main"](str(tmp_path))
    files = {"checks.py", "release.ipynb", "rubric.md", "solution.ipynb"}
    assert {path.name: {f.name for f in path.iterdir()} for path in tmp_path.iterdir()} == {
        name: files for name in SETS
    }


def test_the_command_converts_a_set_that_lies_elsewhere(tmp_path):
    source = tmp_path / "mine.ipynb"
    source.write_bytes((FOLDER / f"{SETS[0]}.ipynb").read_bytes())
    CONVERT["main"](str(tmp_path / "out"), str(source))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
