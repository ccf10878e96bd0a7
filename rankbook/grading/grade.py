"""One submission graded: verdicts, points, and what a human should look at."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from typing import Any

import rankbook
from rankbook.grading import _rules, _wire
from rankbook.grading._checks import Checks
from rankbook.grading._records import (
    ERROR,
    FAILED,
    FORBIDDEN,
    KILLED,
    MANUAL,
    MISSING,
    PASSED,
    UNDECIDED,
    UNSURE,
    Outcome,
    Result,
)
from rankbook.grading.sandbox import Killed, Limits, Session
from rankbook.grading.unpack import Submission

__all__ = ["ChecksError", "grade_submission", "submission_key"]


class ChecksError(RuntimeError):
    """The instructor's own checks failed: no submission is to blame."""


def submission_key(
    submission: Submission, checks: Checks, limits: Limits, secret: str | None, sandboxed: bool
) -> str:
    """Return a hash of all that a result depends on."""
    parts = [
        asdict(submission),
        checks.digest,
        asdict(limits),
        hashlib.sha256((secret or "").encode()).hexdigest(),
        sandboxed,
        rankbook.__version__,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def grade_submission(
    submission: Submission,
    checks: Checks,
    *,
    limits: Limits | None = None,
    secret: str | None = None,
    sandboxed: bool = True,
) -> Result:
    """Grade one submission.

    The notebook's cells run in a sandbox, then each question's function is called there on inputs
    drawn for this student; what comes back is compared here. What was killed, or cannot be
    judged, has no points until a human gives some.

    Parameters
    ----------
    submission : Submission
        What a student handed in.
    checks : Checks
        The questions.
    limits : Limits, optional
        What the submission may use.
    secret : str, optional
        The instructor's, from which the students' inputs are drawn.
    sandboxed : bool, default=True
        False runs a stranger's code with all rights of the user.

    Returns
    -------
    Result
        The points and messages.

    Examples
    --------
    >>> from rankbook.grading import Checks, Submission, grade_submission
    >>> nothing = Checks("P0", "Nothing yet", [], [], "", lambda *args, **options: None)
    >>> grade_submission(Submission("ada", "Ada", cells=()), nothing).possible
    0
    """
    limits = limits or Limits()
    grading = _Grading(submission, checks, limits, secret, sandboxed)
    if submission.cells is None:
        for question in checks.questions:
            grading.end(question, UNSURE, "There was no notebook that could be graded.")
    else:
        grading.run(submission.cells)
    return grading.result()


class _Grading:
    def __init__(
        self,
        submission: Submission,
        checks: Checks,
        limits: Limits,
        secret: str | None,
        sandboxed: bool,
    ):
        self.submission, self.checks, self.limits = submission, checks, limits
        self.secret, self.sandboxed = secret, sandboxed
        self.outcomes: dict[str, Outcome] = {}
        self.flags = list(submission.flags)
        self.failures: list[dict] = []
        self.output = b""
        self.source = _rules.read_source(submission.cells or ())

    def end(self, question: Any, status: str, message: str) -> None:
        earned: float | None = float(question.points) if status == PASSED else 0.0
        if status in UNDECIDED:
            earned = None
            self.flags.append(f"{question.id}: {message}")
        self.outcomes[question.id] = Outcome(
            question.id, question.title, float(question.points), status, earned, message
        )

    def run(self, cells: tuple[str, ...]) -> None:
        """Start a runner, and another one whenever a question has killed it."""
        deadline = time.monotonic() + self.limits.seconds
        is_first = True
        todo = [q for q in self.checks.questions if not self._breaks_rule(q)]
        while todo and time.monotonic() < deadline:
            with Session(self.limits, sandboxed=self.sandboxed) as session:
                try:
                    self._start(session, cells, is_first)
                except Killed as error:
                    for question in todo:
                        self.end(question, KILLED, f"The notebook was stopped: {error}.")
                    return
                is_first = False
                while todo and time.monotonic() < deadline:
                    question = todo.pop(0)
                    try:
                        self._question(session, question)
                    except Killed as error:
                        self.end(question, KILLED, f"The answer was stopped: {error}.")
                        break
        for question in todo:
            self.end(question, KILLED, "The time for this submission was used up.")

    def _breaks_rule(self, question: Any) -> bool:
        used = _rules.uses(self.source, question.function, question.forbidden)
        if used:
            message = f"The answer uses {', '.join(used)}, which this question does not allow."
            self.end(question, FORBIDDEN, message)
            self.flags.append(f"{question.id}: {message}")
        return bool(used)

    def _start(self, session: Session, cells: tuple[str, ...], is_first: bool) -> None:
        request = json.dumps({"cells": cells}).encode() + b"\n"
        try:
            reply = self._reply(session.ask(request, self.limits.cells_seconds))
        finally:
            # What is printed from here on could hold inputs that the student should not see.
            session.is_listening = False
            if is_first:
                self.output = session.output
        failures = reply.get("ready")
        if not isinstance(failures, list):
            raise Killed("its reply does not have the agreed form")
        if is_first:
            self.failures = [_failure(entry) for entry in failures[:200]]

    @staticmethod
    def _reply(line: bytes) -> dict:
        try:
            reply = _wire.parse(line)
        except _wire.WireError as error:
            raise Killed(f"its reply does not have the agreed form ({error})") from None
        if not isinstance(reply, dict):
            raise Killed("its reply does not have the agreed form")
        return reply

    def _question(self, session: Session, question: Any) -> None:
        """Call a question's function on all its instances, and judge what comes back."""
        name = self.submission.seed or self.submission.student
        rng = self.checks.student_rng(question.id, name, secret=self.secret)
        instances = _trusted(question, question.instances, rng)
        deadline = time.monotonic() + self.limits.question_seconds
        n_right, complaint, is_intact = 0, "", True
        answers: list[Any] = []
        wanted: list[Any] = []
        for number, arguments in enumerate(instances, start=1):
            request = {
                "call": question.function,
                "arguments": _wire.encode(list(arguments)),
                "forbidden": list(question.forbidden),
            }
            left = max(deadline - time.monotonic(), 0.001)
            line = json.dumps(request).encode() + b"\n"
            reply = self._reply(session.ask(line, left, self.limits.question_seconds))
            if "missing" in reply:
                return self._missing(question)
            if "forbidden" in reply:
                message = "The answer uses what this question does not allow."
                self.flags.append(f"{question.id}: {message}")
                return self.end(question, FORBIDDEN, message)
            if "error" in reply:
                name = _word(reply["error"])
                return self.end(
                    question, ERROR, f"In case {number} of {len(instances)}: {name} was raised."
                )
            wanted.append(_trusted(question, question.reference, *arguments))
            passed, message = self._judge(question, wanted[-1], reply, answers)
            is_intact &= reply.get("intact") is True
            n_right += passed
            complaint = complaint or ("" if passed else message)
        if n_right == len(instances) and hasattr(question, "compare_all"):
            fit = _compared(question.compare_all, answers, wanted)
            if not fit.passed:
                return self.end(question, FAILED, f"Not right: {fit.message}")
        self._verdict(question, n_right, len(instances), complaint, is_intact)

    @staticmethod
    def _judge(question: Any, expected: Any, reply: dict, answers: list) -> tuple[bool, str]:
        """Compare one value, which is added to the answers."""
        if "refused" in reply:
            return False, f"the function returned {_word(reply['refused'])}"
        if "value" not in reply:
            raise Killed("its reply does not have the agreed form")
        try:
            value = _wire.decode(reply["value"])
        except _wire.WireError as error:
            return False, f"the function returned {error}"
        answers.append(value)
        verdict = _compared(question.compare, value, expected)
        return bool(verdict.passed), str(verdict.message)

    def _verdict(
        self, question: Any, n_right: int, n: int, complaint: str, is_intact: bool
    ) -> None:
        if n_right < n or not n:
            told = f"Not right: {complaint}"
            if n > 1:
                told = f"{n_right} of {n} cases are right; in one, {complaint}"
            return self.end(question, FAILED, told)
        tricks = sorted(self.source.tricks) if question.forbidden else []
        if tricks or not is_intact:
            what = ", ".join(tricks) or "a change of the runner"
            message = f"All cases are right. A human has to look, because the notebook has {what}."
            return self.end(question, UNSURE, message)
        self.end(question, PASSED, f"All {n} cases are right." if n > 1 else "The answer is right.")

    def _missing(self, question: Any) -> None:
        name = question.function
        if any(f"def {name}" in cell for cell in self.source.broken):
            message = f"The cell that defines {name} is not Python."
            return self.end(question, UNSURE, message)
        message = f"There is no function {name} after the cells have run."
        if self.failures:
            message += f" Cell {self.failures[0]['cell']} raised an error."
        self.end(question, MISSING, message)

    def result(self) -> Result:
        outcomes = [self.outcomes[question.id] for question in self.checks.questions]
        for question in self.checks.manual:
            message = "A human grades this question."
            outcomes.append(
                Outcome(question.id, question.title, float(question.points), MANUAL, None, message)
            )
        if self.submission.ids:
            lost = [q.id for q in self.checks.manual if not _has_cell(q.id, self.submission.ids)]
            self.flags += [f"the cell of {name} is missing" for name in lost]
        names = {question.function for question in self.checks.questions}
        return Result(
            student=self.submission.student,
            name=self.submission.name,
            outcomes=tuple(outcomes),
            flags=tuple(dict.fromkeys(self.flags)),
            cells=tuple(self.failures),
            output=self.output.decode("utf-8", "replace")[:20_000],
            answers={name: text for name, text in self.source.texts.items() if name in names},
            sandboxed=self.sandboxed,
            key=submission_key(
                self.submission, self.checks, self.limits, self.secret, self.sandboxed
            ),
        )


def _compared(compare: Any, *values: Any) -> Any:
    try:
        return compare(*values)
    except Exception as error:  # noqa: BLE001 - a strange value is not to stop the grader
        raise Killed(f"the value could not be compared ({type(error).__name__})") from None


def _trusted(question: Any, function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise ChecksError(f"the checks of question {question.id} failed: {error!r}") from error


def _failure(entry: Any) -> dict:
    entry = entry if isinstance(entry, dict) else {}
    numbers = {
        key: value if type(value := entry.get(key)) is int and 0 <= value < 10**6 else None
        for key in ("cell", "line")
    }
    return numbers | {"error": _word(entry.get("error"))}


def _word(value: Any) -> str:
    return value[:500] if isinstance(value, str) else "something unreadable"


def _has_cell(question: str, ids: tuple[str, ...]) -> bool:
    """Whether a question's cell is there; an id of nbgrader's may write its dot otherwise."""
    plain = {"".join(c for c in name if c.isalnum()) for name in ids}
    return "".join(c for c in question if c.isalnum()) in plain
