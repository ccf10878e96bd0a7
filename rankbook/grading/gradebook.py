"""Points for people and for machines: gradebook.csv, the sheets of Moodle and Canvas, nbgrader."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rankbook.grading import _files
from rankbook.grading._checks import Checks
from rankbook.grading._records import Result

__all__ = ["canvas_sheet", "gradebook", "moodle_sheet", "to_nbgrader"]

# Moodle's heading of the column with the grade, by language.
GRADE = {"Grade", "Bewertung", "Calificación", "Note", "Valutazione", "Beoordeling", "Nota"}
GRADE |= {"Ocena", "Оценка", "評点", "成绩", "Karakter", "Betyg", "Arvosana", "Hinne"}
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
POSSIBLE = "    Points Possible"


def gradebook(results: Sequence[Result], checks: Checks) -> str:
    """Return the gradebook as CSV: a row a student, a column a question.

    An empty cell is a question that a human has to decide.
    """
    questions = [question.id for question in [*checks.questions, *checks.manual]]
    rows: list[list[str]] = [
        ["student", "name", *questions, "earned", "possible", "status", "flags"]
    ]
    for result in results:
        earned = {outcome.question: outcome.earned for outcome in result.outcomes}
        rows.append(
            [
                _files.harmless(result.student),
                _files.harmless(result.name),
                *(_files.points(earned[name]) for name in questions),
                _files.points(result.earned),
                _files.points(result.possible),
                "complete" if result.is_complete else "a human has to look",
                _files.harmless("; ".join(result.flags)),
            ]
        )
    return _files.to_csv(rows)


def _final(results: Sequence[Result]) -> dict[str, str]:
    """The grade of each student for whom every question is decided."""
    return {r.student: _files.points(r.earned) for r in results if r.is_complete}


def moodle_sheet(
    results: Sequence[Result], worksheet: str | None = None, column: str | None = None
) -> str:
    """Return Moodle's grading worksheet with the grades filled in.

    Parameters
    ----------
    results : sequence of Result
        Only complete ones are entered.
    worksheet : str, optional
        The text of the worksheet that Moodle offers; everything else in it stays as it is. Without
        it, a sheet with the columns that Moodle needs, in English.
    column : str, optional
        The heading of the column with the grade, in a language that is not known here.

    Returns
    -------
    str
        What Moodle's "Upload grading worksheet" takes.
    """
    final = _final(results)
    if worksheet is None:
        rows = [["Identifier", "Full name", "Grade", "Last modified (grade)"]]
        for r in results:
            grade = final.get(r.student, "")
            rows.append([f"Participant {r.student}", _files.harmless(r.name), grade, "-"])
        return _files.to_csv(rows)
    rows = list(csv.reader(io.StringIO(worksheet.removeprefix("\ufeff"))))
    wanted = {column} if column else GRADE
    places = [i for i, heading in enumerate(rows[0]) if heading.strip() in wanted] if rows else []
    if len(places) != 1:
        raise ValueError(
            f"worksheet must have one column of grades, got the headings {rows[:1]}: "
            "name it with --grade-column"
        )
    for row in rows[1:]:
        match = re.search(r"(\d+)\s*$", row[0]) if row else None
        if match and match[1] in final:
            row[places[0]] = final[match[1]]
    return "\ufeff" + _files.to_csv(rows)


def _is_of_set(heading: str, checks: Checks) -> bool:
    """Whether a heading has the title of the set, its id, as P3, or its number, as in set 3."""
    name = re.escape(checks.set_id)
    number = re.escape(checks.set_id.lstrip("P"))
    told = re.search(rf"\b(?:{name}|set {number})\b", heading, re.I)
    return bool(told) or checks.title.casefold() in heading.casefold()


def canvas_sheet(
    results: Sequence[Result],
    checks: Checks,
    worksheet: str | None = None,
    column: str | None = None,
) -> str:
    """Return the sheet that Canvas imports.

    Parameters
    ----------
    results : sequence of Result
        Only complete ones are entered.
    checks : Checks
        For the title and the points.
    worksheet : str, optional
        The gradebook that Canvas exports; its students, sections and ids are used.
    column : str, optional
        The heading of the assignment, "Title (id)"; by default the one with the title or the number
        of the set.

    Returns
    -------
    str
        CSV with Canvas's columns and its row of points.
    """
    final = _final(results)
    if worksheet is None:
        rows = [[*CANVAS, column or checks.title]]
        rows.append([POSSIBLE, "", "", "", "", _files.points(checks.possible)])
        for r in results:
            name = _files.harmless(r.name)
            rows.append([name, r.student, "", "", "", final.get(r.student, "")])
        return _files.to_csv(rows)
    old = list(csv.reader(io.StringIO(worksheet.removeprefix("\ufeff"))))
    headings = old[0] if old else []
    wanted = [h for h in headings if (h == column if column else _is_of_set(h, checks))]
    if len(wanted) != 1 or not set(CANVAS) <= set(headings):
        raise ValueError(
            f"worksheet must have Canvas's columns and one of {column or checks.title!r}: "
            "name it with --grade-column"
        )
    places = [headings.index(name) for name in [*CANVAS, wanted[0]]]
    rows = []
    for row in old:
        if len(row) == len(headings):
            kept = [row[place] for place in places]
            kept[-1] = final.get(kept[1], kept[-1]) if row is not headings else kept[-1]
            rows.append(kept)
    return _files.to_csv(rows)


def to_nbgrader(
    results: Sequence[Result],
    database: str,
    assignment: str,
    notebook: str,
    cells: Mapping[str, str] | None = None,
) -> list[str]:
    """Write the automatic points into nbgrader's gradebook.

    A submission that nbgrader does not know is made. What a human has to decide stays open there.

    Parameters
    ----------
    results : sequence of Result
        The points.
    database : str
        Such as ``sqlite:///gradebook.db``.
    assignment : str
        nbgrader's name of the assignment, which it has generated.
    notebook : str
        The name of the notebook in it.
    cells : mapping, optional
        From a question's id to the id of nbgrader's cell. By default a question goes to the cell
        of its name, or with P1-3 for P1.3, or without the letter of a part, P1-3 for P1.3a. Points
        of questions that share a cell are added.

    Returns
    -------
    list of str
        What nbgrader has no cell for.
    """
    from nbgrader.api import Gradebook, MissingEntry  # type: ignore[import-untyped]

    lost = set()
    # nbgrader starts alembic by name, which lies beside this Python.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    with Gradebook(database) as book:
        try:
            known = {cell.name for cell in book.find_notebook(notebook, assignment).grade_cells}
        except MissingEntry:
            raise ValueError(
                f"{database} must hold the notebook {notebook!r} of the assignment "
                f"{assignment!r}: let nbgrader generate it first"
            ) from None
        for result in results:
            book.update_or_create_student(result.student)
            book.update_or_create_submission(assignment, result.student)
            scores: dict[str, float | None] = {}
            for outcome in result.outcomes:
                if outcome.status != "manual":
                    cell = (cells or {}).get(outcome.question) or _cell(outcome.question, known)
                    so_far = scores.get(cell, 0.0)
                    both = so_far is not None and outcome.earned is not None
                    scores[cell] = so_far + outcome.earned if both else None  # type: ignore[operator]
            for cell, score in scores.items():
                try:
                    grade = book.find_grade(cell, notebook, assignment, result.student)
                except MissingEntry:
                    lost.add(cell)
                    continue
                grade.auto_score = score
                grade.needs_manual_grade = score is None
        book.db.commit()
    return sorted(lost)


def _cell(question: str, known: set[str]) -> str:
    """nbgrader's name of a question's cell: it may hold no dot, and parts share one."""
    plain = question.replace(".", "-")
    names = (question, plain, plain.rstrip("abcdefghijklmnopqrstuvwxyz"))
    return next((name for name in names if name in known), question)


def read_sheet(path: Path) -> str:
    """Return the text of a sheet that a learning management system wrote."""
    return path.read_text(encoding="utf-8-sig")
