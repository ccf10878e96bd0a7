"""Problem sets: from one source notebook to what students, instructors and the grader need.

A source holds questions, solutions and checks. Solutions are nbgrader's: cells with its metadata,
code between ``### BEGIN SOLUTION`` and ``### END SOLUTION``. A cell tagged ``hidden-checks`` adds
`rankbook.exercises.Question` objects to ``QUESTIONS``, which the first such cell makes; a cell
tagged ``rubric`` tells the marker of the manual question before it what earns points. ``python
book/coursework/convert.py [FOLDER [SOURCE ...]]`` writes

* ``release.ipynb``, for students: no solution, no check, no rubric;
* ``solution.ipynb``, for instructors: with solutions and rubrics;
* ``checks.py``, for the grader; and ``rubric.md``, for markers.
"""

from __future__ import annotations

import copy
import re
import runpy
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

HERE = Path(__file__).resolve().parent
REGION = re.compile(r"### BEGIN SOLUTION\n(.*?)^\s*### END SOLUTION[^\n]*$", re.M | re.S)
MARKERS = re.compile(r"(begin|end)\s+(solution|hidden|mark)|hidden.?(check|test)|rubric", re.I)
SHORTEST = 12  # a shorter line of a solution, such as "return x", says nothing

HEADER = '''"""Checks of problem set {set}, {title}: for the grader, not for students."""

from rankbook.exercises import ManualQuestion

SET = {set!r}
TITLE = {title!r}
MANUAL: list[ManualQuestion] = []
'''


def tags(cell: NotebookNode) -> set[str]:
    """The tags of a cell."""
    return set(cell.metadata.get("tags", []))


def graded(cell: NotebookNode) -> NotebookNode | None:
    """nbgrader's metadata of a cell that earns points."""
    found = cell.metadata.get("nbgrader", {})
    return found if found.get("grade") else None


def is_manual(cell: NotebookNode) -> bool:
    """Whether a human marks the cell."""
    return bool(graded(cell)) and cell.metadata.nbgrader.solution


def question_id(grade_id: str) -> str:
    """The question's name, P1.2, from nbgrader's, P1-2, which may hold no dot."""
    return grade_id.replace("-", ".")


def manual_questions(source: NotebookNode) -> list[dict]:
    """The manual questions: id, title, points and rubric, which the next such cell holds."""
    found: list[dict] = []
    for cell in source.cells:
        if is_manual(cell):
            about = cell.metadata.nbgrader
            title = cell.metadata.rankbook.title
            found.append(
                {"id": question_id(about.grade_id), "title": title, "points": about.points}
            )
        elif "rubric" in tags(cell):
            if not found or "rubric" in found[-1]:
                raise ValueError(f"a rubric without a question: {cell.source[:60]!r}")
            found[-1]["rubric"] = cell.source.strip()
    lacking = [question["id"] for question in found if "rubric" not in question]
    if lacking:
        raise ValueError(f"no rubric for {', '.join(lacking)}")
    return found


def checks_of(source: NotebookNode) -> str:
    """The module that the grader reads."""
    parts = [HEADER.format(**source.metadata.rankbook)]
    parts += [cell.source for cell in source.cells if "hidden-checks" in tags(cell)]
    for question in manual_questions(source):
        fields = ", ".join(f"{key}={value!r}" for key, value in question.items())
        parts.append(f"MANUAL.append(ManualQuestion({fields}))")
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def rubric_of(source: NotebookNode) -> str:
    """What markers read."""
    about = source.metadata.rankbook
    lines = [f"# Rubric of problem set {about.set}, {about.title}", ""]
    for question in manual_questions(source):
        head = f"## {question['id']} {question['title']} ({question['points']} points)"
        lines += [head, "", question["rubric"], ""]
    return "\n".join(lines)


def solution_of(source: NotebookNode) -> NotebookNode:
    """The notebook with solutions and rubrics, without checks and markers."""
    notebook = copy.deepcopy(source)
    notebook.cells = [cell for cell in notebook.cells if "hidden-checks" not in tags(cell)]
    for cell in notebook.cells:
        cell.source = re.sub(r"^\s*### (BEGIN|END) SOLUTION[^\n]*\n?", "", cell.source, flags=re.M)
    return notebook


def release_of(source: NotebookNode) -> NotebookNode:
    """The students' notebook, by nbgrader's own steps; a leak is an error."""
    from nbgrader import preprocessors as steps  # slow to import, and needed here alone

    notebook = copy.deepcopy(source)
    secret = {"hidden-checks", "rubric"}
    notebook.cells = [cell for cell in notebook.cells if not tags(cell) & secret]
    for step in (
        steps.LockCells,
        steps.ClearSolutions,
        steps.ClearOutput,
        steps.CheckCellMetadata,
        steps.ClearHiddenTests,
        steps.ClearMarkScheme,
        steps.ComputeChecksums,
    ):
        notebook, _ = step().preprocess(notebook, {})
    leaks = leaks_of(source, notebook)
    if leaks:
        raise ValueError(f"the release would show: {leaks[:3]}")
    return notebook


def secret_lines(source: NotebookNode) -> set[str]:
    """The lines of solutions, checks and rubrics that are long enough to tell."""
    lines: set[str] = set()
    for cell in source.cells:
        if tags(cell) & {"hidden-checks", "rubric"} or is_manual(cell):
            text = cell.source
        else:
            text = "\n".join(REGION.findall(cell.source))
        lines |= {line.strip() for line in text.splitlines() if len(line.strip()) >= SHORTEST}
    return {line for line in lines if not line.startswith(("import ", "from "))}


def leaks_of(source: NotebookNode, release: NotebookNode) -> list[str]:
    """Markers, and lines of the secret parts, that stand in the release."""
    secret, found = secret_lines(source), []
    for cell in release.cells:
        found += [match[0] for match in MARKERS.finditer(cell.source)]
        found += [line for line in secret if line in cell.source]
        found += sorted(tags(cell) & {"hidden-checks", "rubric"})
    return found


def check_points(source: NotebookNode, checks: dict) -> None:
    """Raise unless the points of the cells are those of the checks, and 100 in all."""
    wanted = {
        question_id(about.grade_id): about.points
        for cell in source.cells
        if (about := graded(cell))
    }
    given = dict.fromkeys(wanted, 0)
    for question in [*checks["QUESTIONS"], *checks["MANUAL"]]:
        name = question.id if question.id in given else question.id[:-1]
        given[name] += question.points
    if wanted != given or sum(wanted.values()) != 100:
        raise ValueError(f"points of the cells {wanted}, of the checks {given}; 100 are wanted")


def convert(path: Path, folder: Path) -> None:
    """Write the four files of a source into a folder."""
    source = nbformat.read(path, as_version=4)
    release, solution = release_of(source), solution_of(source)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "checks.py").write_text(checks_of(source), encoding="utf-8")
    check_points(source, runpy.run_path(str(folder / "checks.py")))
    (folder / "rubric.md").write_text(rubric_of(source), encoding="utf-8")
    nbformat.write(release, folder / "release.ipynb")
    nbformat.write(solution, folder / "solution.ipynb")


def main(folder: str = "_build/coursework", *sources: str) -> None:
    """Convert these sources, or every one beside this file."""
    for path in map(Path, sources) if sources else sorted(HERE.glob("*.ipynb")):
        convert(path, Path(folder) / path.stem)
        print(f"{path.stem}: {Path(folder) / path.stem}")


if __name__ == "__main__":
    main(*sys.argv[1:])
