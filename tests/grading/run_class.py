"""Grade a class of 200 in the sandbox, set by set, and print the seconds: ``make bench-grading``.

Half of the notebooks are solutions, half have wrong answers to one to three questions, and two
never end. Named sets alone: ``python -m tests.grading.run_class set_3``.
"""

import importlib
import runpy
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import numpy as np
from nbformat.v4 import new_code_cell

from tests.grading.conftest import Grader, results

FOLDER = Path(__file__).resolve().parents[2] / "book" / "coursework"
SETS = sorted(path.stem for path in FOLDER.glob("set_*.ipynb"))
CONVERT = runpy.run_path(str(FOLDER / "convert.py"))["convert"]
SIZE, JOBS, LIMIT = 200, 2, 600


def notebooks(folder, name):
    """The submissions of a class, by file name; those that start with s are solutions."""
    rng = np.random.default_rng(0)
    wrong = [
        code
        for answers in importlib.import_module(f"tests.coursework.wrong_{name[4:]}").WRONG.values()
        for code, _ in answers
    ]
    question = runpy.run_path(str(folder / "checks.py"))["QUESTIONS"][0]
    endless = f"def {question.function}(*arguments):\n    while True:\n        pass"
    files = {}
    for number in range(SIZE):
        book = nbformat.read(folder / "solution.ipynb", 4)
        extra = []
        if number >= SIZE - 2:
            extra = [endless]
        elif number >= SIZE // 2:
            extra = [wrong[k] for k in rng.choice(len(wrong), rng.integers(1, 4), replace=False)]
        book.cells += [new_code_cell(code) for code in extra]
        files[f"{'w' if extra else 's'}{number:03}.ipynb"] = nbformat.writes(book)
    return files


def grade_class(stage, name):
    """Seconds by the clock, and how many of the solutions earned every automatic point."""
    grader = Grader(stage)
    grader.give(stage)
    built = stage / "built"
    built.mkdir()
    CONVERT(FOLDER / f"{name}.ipynb", built)
    files = notebooks(built, name)
    private = grader.folder("instructor", {"checks.py": (built / "checks.py").read_text()})
    folder, output = grader.folder("class", files), grader.folder("graded", {})
    start = time.perf_counter()
    places = (private / "checks.py", folder, "--output", output)
    code, out, err = grader.run(*places, "--jobs", JOBS)
    seconds = time.perf_counter() - start
    if code:
        sys.exit(err or out)
    found = results(output)
    full = [
        all(one["earned"] == one["possible"] for one in r["outcomes"] if one["status"] != "manual")
        for student, r in found.items()
        if student.startswith("s")
    ]
    return seconds, len(found), sum(full), len(full)


def main(names):
    """Grade the named sets, or all."""
    for name in names or SETS:
        stage = Path(tempfile.mkdtemp(prefix="rankbook-class-"))
        stage.chmod(0o755)
        try:
            seconds, graded, full, solutions = grade_class(stage, name)
        finally:
            shutil.rmtree(stage)
        print(
            f"{name}: {graded} notebooks, {JOBS} at a time, {seconds:.0f} s of {LIMIT}; "
            f"{full} of {solutions} solutions have all automatic points",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
