"""The problem sets of the book, graded as a class's would be: in the sandbox, by their checks."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "book" / "coursework"
SETS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
CONVERT = runpy.run_path(str(FOLDER / "convert.py"))["convert"]


@pytest.mark.parametrize("name", SETS)
def test_a_solution_earns_all_automatic_points_and_the_release_none(grader, tmp_path, name):
    CONVERT(FOLDER / f"{name}.ipynb", tmp_path)
    files = {
        f"{student}.ipynb": (tmp_path / f"{made}.ipynb").read_text()
        for student, made in (("ada", "solution"), ("eve", "release"))
    }
    private = grader.folder(f"{name}-checks", {"checks.py": (tmp_path / "checks.py").read_text()})
    found, _ = grader.grade(name, files, checks=private / "checks.py")
    for student, share in (("ada", 1), ("eve", 0)):
        automatic = [one for one in found[student]["outcomes"] if one["status"] != "manual"]
        assert automatic
        assert [one["earned"] for one in automatic] == [
            share * one["possible"] for one in automatic
        ]
