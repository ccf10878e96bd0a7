"""Grade a class: ``python -m rankbook.grading CHECKS SUBMISSIONS [--output DIR]``."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rankbook.grading import _files, _html
from rankbook.grading._checks import Checks, load_checks
from rankbook.grading._records import Result
from rankbook.grading.batch import grade_all
from rankbook.grading.feedback import feedback
from rankbook.grading.grade import ChecksError
from rankbook.grading.gradebook import (
    canvas_sheet,
    gradebook,
    moodle_sheet,
    read_sheet,
    to_nbgrader,
)
from rankbook.grading.report import report
from rankbook.grading.sandbox import Limits, SandboxUnavailable
from rankbook.grading.unpack import Submission, Submissions, read_submissions


def parser() -> argparse.ArgumentParser:
    """Return the options of the command line."""
    found = argparse.ArgumentParser(prog="python -m rankbook.grading", description=__doc__)
    add = found.add_argument
    add("checks", type=Path, help="the set's checks.py")
    add("submissions", type=Path, help="a folder of notebooks, or a zip of Moodle or Canvas")
    add("--output", type=Path, default=Path("graded"), help="folder for all that is written")
    add("--jobs", type=int, help="how many at a time (by default one a processor)")
    add("--secret-file", type=Path, help="the secret from which students' inputs are drawn")
    add("--roster", type=Path, help="CSV with the columns id, student: the names inputs go by")
    add("--worksheet", type=Path, help="Moodle's grading worksheet, or Canvas's export, to fill in")
    add("--grade-column", help="heading of the column of grades in it")
    add("--retry-killed", action="store_true", help="grade again what was killed")
    add("--nbgrader", metavar="URL", help="nbgrader's gradebook, such as sqlite:///gradebook.db")
    add("--question-seconds", type=float, default=Limits.question_seconds)
    add("--cells-seconds", type=float, default=Limits.cells_seconds)
    add("--unsafe-no-sandbox", action="store_true", help="run strangers' code with your rights")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Grade a class from the command line.

    Returns
    -------
    int
        0; 2 if nothing could be graded.
    """
    options = parser().parse_args(arguments)
    if options.unsafe_no_sandbox:
        print(_html.UNSAFE)
    try:
        checks = load_checks(options.checks)
        found = read_submissions(options.submissions)
        results = grade_all(
            _known(found.submissions, options.roster),
            checks,
            options.output,
            limits=Limits(
                question_seconds=options.question_seconds, cells_seconds=options.cells_seconds
            ),
            secret=_secret(options.secret_file),
            sandboxed=not options.unsafe_no_sandbox,
            jobs=options.jobs,
            retry=options.retry_killed,
            progress=sys.stderr.isatty() or not os.environ.get("CI"),
        )
        write_all(results, checks, found, options)
    except (SandboxUnavailable, ChecksError, ValueError, RuntimeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    n_open = sum(not result.is_complete for result in results)
    print(f"{len(results)} submissions, {len(found.refused)} files refused.")
    print(f"{n_open} wait for a human: see {options.output / 'review.csv'}.")
    print(options.output / "report.html")
    return 0


def write_all(
    results: list[Result], checks: Checks, found: Submissions, options: argparse.Namespace
) -> None:
    """Write everything that follows from the results."""
    output = options.output
    for result in results:
        page = output / "feedback" / f"{_files.file_name(result.student)}.html"
        _files.write(page, feedback(result, checks))
    _files.write(output / "gradebook.csv", gradebook(results, checks))
    _files.write(output / "report.html", report(results, checks, found.refused))
    sheet = read_sheet(options.worksheet) if options.worksheet else None
    if found.layout == "moodle":
        _files.write(output / "moodle.csv", moodle_sheet(results, sheet, options.grade_column))
    if found.layout == "canvas":
        text = canvas_sheet(results, checks, sheet, options.grade_column)
        _files.write(output / "canvas.csv", text)
    if options.nbgrader:
        lost = to_nbgrader(results, options.nbgrader, checks.set_id, checks.set_id)
        if lost:
            print(f"nbgrader has no cell for {', '.join(lost)}", file=sys.stderr)


def _secret(path: Path | None) -> str | None:
    return path.read_text("utf-8").strip() if path else None


def _known(submissions: Sequence[Submission], roster: Path | None) -> list[Submission]:
    """The submissions, with the names under which students drew their data."""
    if roster is None:
        return list(submissions)
    with roster.open(encoding="utf-8-sig", newline="") as stream:
        names = {row["id"]: row["student"] for row in csv.DictReader(stream)}
    return [replace(s, seed=names.get(s.student, "")) for s in submissions]


if __name__ == "__main__":
    sys.exit(main())
