"""A whole class graded: in parallel, again only where something changed, and never losing work.

Each result is a file of its own, written whole as soon as it is known. A run that was interrupted,
by whatever, goes on where it was. What a human decided lies in ``review.csv``, which a run reads,
completes and never empties.
"""

from __future__ import annotations

import csv
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rankbook.grading import _files
from rankbook.grading._checks import Checks
from rankbook.grading._records import KILLED, MANUAL, UNDECIDED, Result
from rankbook.grading.grade import grade_submission, submission_key
from rankbook.grading.sandbox import Limits, probe
from rankbook.grading.unpack import Submission

__all__ = ["grade_all", "review"]

REVIEW = "review.csv"
HEADINGS = ["student", "name", "question", "possible", "points", "comment", "reason"]


def grade_all(
    submissions: Sequence[Submission],
    checks: Checks,
    output: str | Path,
    *,
    limits: Limits | None = None,
    secret: str | None = None,
    sandboxed: bool = True,
    jobs: int | None = None,
    retry: bool = False,
    progress: bool = True,
) -> list[Result]:
    """Grade all submissions, or what is new or changed among them.

    Parameters
    ----------
    submissions : sequence of Submission
        One a student.
    checks : Checks
        The questions.
    output : str or Path
        The folder for the results; those that it holds are used again if nothing changed.
    limits : Limits, optional
        What a submission may use.
    secret : str, optional
        The instructor's.
    sandboxed : bool, default=True
        False runs strangers' code with all rights of the user.
    jobs : int, optional
        How many at a time; by default one a processor.
    retry : bool, default=False
        Grade again what was killed.
    progress : bool, default=True
        Show a progress bar.

    Returns
    -------
    list of Result
        In the order of the submissions, with the points that humans gave.

    Examples
    --------
    >>> import tempfile
    >>> from rankbook.grading import Checks, Submission, grade_all
    >>> checks = Checks("P0", "Nothing yet", [], [], "", lambda *args, **options: None)
    >>> folder = tempfile.mkdtemp()
    >>> results = grade_all([], checks, folder, sandboxed=False, progress=False)
    >>> results
    []
    """
    from tqdm import tqdm

    limits, output = limits or Limits(), Path(output)
    if sandboxed:
        probe()
    (output / "results").mkdir(parents=True, exist_ok=True)
    with _locked(output):
        done: dict[str, Result] = {}
        for submission in submissions:
            key = submission_key(submission, checks, limits, secret, sandboxed)
            stored = _stored(output, submission.student, key)
            if stored is not None and not (retry and _was_killed(stored)):
                done[submission.student] = stored
        todo = [s for s in submissions if s.student not in done]

        def work(submission: Submission) -> Result:
            result = grade_submission(
                submission, checks, limits=limits, secret=secret, sandboxed=sandboxed
            )
            _files.write(_path(output, result.student), json.dumps(result.to_json()))
            return result

        jobs = jobs or os.cpu_count() or 1
        with tqdm(
            total=len(submissions), initial=len(done), unit="notebook", disable=not progress
        ) as bar:
            for result in _parallel(work, todo, jobs):
                done[result.student] = result
                bar.update()
        return review([done[s.student] for s in submissions], output)


def _parallel(work, todo: Sequence[Submission], jobs: int) -> Iterator[Result]:
    """Yield results as they come; after an error nothing new is begun."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(work, submission) for submission in todo}
        try:
            while futures:
                finished, futures = wait(futures, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    """Keep a second grader out; the system lets go of the lock when this one ends, or dies."""
    with (output / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"another grader is at work in {output}") from None
        yield


def _path(output: Path, student: str) -> Path:
    return output / "results" / f"{_files.file_name(student)}.json"


def _stored(output: Path, student: str, key: str) -> Result | None:
    """The result of an earlier run, if it is whole and nothing that it depends on changed."""
    try:
        result = Result.from_json(json.loads(_path(output, student).read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return result if (result.key, result.student) == (key, student) else None


def _was_killed(result: Result) -> bool:
    return any(outcome.status == KILLED for outcome in result.outcomes)


def review(results: Sequence[Result], output: Path) -> list[Result]:
    """Enter the points that humans gave in ``review.csv``; list there what still lacks some."""
    path = output / REVIEW
    rows = _read_review(path)
    given = {
        (row["student"], row["question"]): row
        for row in rows
        if row["points"].strip() or row["comment"].strip()
    }
    entered = [_enter(result, given) for result in results]
    lines: list[list[str]] = [HEADINGS]
    known = set()
    for result, raw in zip(entered, results, strict=True):
        for outcome, before in zip(result.outcomes, raw.outcomes, strict=True):
            where = (_files.harmless(result.student), outcome.question)
            if before.status in UNDECIDED or where in given:
                known.add(where)
                row = given.get(where, {})
                lines.append(
                    [
                        where[0],
                        _files.harmless(result.name),
                        outcome.question,
                        _files.points(outcome.possible),
                        row.get("points", ""),
                        row.get("comment", ""),
                        _files.harmless(before.message),
                    ]
                )
    # A human's work on a submission that is not here now is kept all the same.
    lines += [[row[h] for h in HEADINGS] for where, row in given.items() if where not in known]
    text = _files.to_csv(lines)
    if not path.exists() or path.read_bytes() != text.encode():
        _files.write(path, text)
    return entered


def _read_review(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        if not set(HEADINGS) <= set(reader.fieldnames or ()):
            raise ValueError(f"{path} must have the columns {', '.join(HEADINGS)}")
        return [{h: row.get(h) or "" for h in HEADINGS} for row in reader]


def _enter(result: Result, given: dict[tuple[str, str], dict[str, str]]) -> Result:
    outcomes = []
    for outcome in result.outcomes:
        row = given.get((_files.harmless(result.student), outcome.question))
        if row is not None and row["points"].strip():
            try:
                earned = float(row["points"].replace(",", "."))
            except ValueError:
                earned = -1.0
            if not 0 <= earned <= outcome.possible:
                where = f"{result.student}, {outcome.question}"
                raise ValueError(
                    f"points in {REVIEW} must lie between 0 and {outcome.possible:g}, "
                    f"got {row['points']!r} ({where})"
                )
            # What a question waited for is no remark once it has its points.
            waited = outcome.status == MANUAL
            message = row["comment"] or ("" if waited else outcome.message)
            outcome = replace(outcome, earned=earned, message=message, by_hand=True)
        outcomes.append(outcome)
    return replace(result, outcomes=tuple(outcomes))
