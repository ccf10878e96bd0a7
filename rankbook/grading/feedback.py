"""What a student gets back: one page that holds everything."""

from __future__ import annotations

import re
from html import escape

from rankbook.grading import _files, _html
from rankbook.grading._checks import Checks
from rankbook.grading._records import Outcome, Result

__all__ = ["feedback"]

WORDS = {
    "passed": "right",
    "failed": "not right",
    "error": "raised an error",
    "missing": "not there",
    "forbidden": "against the rules",
    "killed": "stopped; a human looks",
    "unsure": "a human looks",
    "manual": "graded by a human",
}


def feedback(result: Result, checks: Checks) -> str:
    """Return a student's page: points, messages, and the errors of the cells."""
    name = result.name or result.student
    so_far = "" if result.is_complete else " so far; a human has not graded all yet"
    body = [
        f"<p>{escape(name)}: <strong>{_files.points(result.earned)} of "
        f"{_files.points(result.possible)} points</strong>{so_far}.</p>",
        _html.table(
            "Questions",
            ["Question", "Title", "Points", "Result", "Remarks"],
            [_row(outcome) for outcome in sorted(result.outcomes, key=_place)],
            numbers=[2],
        ),
    ]
    if result.cells:
        rows = [
            [str(c["cell"] or "?"), str(c["line"] or "?"), str(c["error"])] for c in result.cells
        ]
        body.append(_html.table("Cells that raised an error", ["Cell", "Line", "Error"], rows, [1]))
    if result.output.strip():
        body += ["<h2>What your cells printed</h2>", f"<pre>{escape(result.output[:4000])}</pre>"]
    return _html.page(f"{checks.heading}: feedback", body, sandboxed=result.sandboxed)


def _place(outcome: Outcome) -> list[tuple[int, str]]:
    """Where a question stands in the set: P1.2 before P1.10, whoever grades it."""
    parts = re.findall(r"\d+|\D+", outcome.question)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def _row(outcome: Outcome) -> list[str]:
    earned = "?" if outcome.earned is None else _files.points(outcome.earned)
    word = "graded by a human" if outcome.by_hand else WORDS[outcome.status]
    points = f"{earned} of {_files.points(outcome.possible)}"
    return [outcome.question, outcome.title, points, word, outcome.message]
