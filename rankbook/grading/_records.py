"""What grading a submission yields, and its form in a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

# How a question may end. Those in UNDECIDED have no points until a human gave them.
PASSED, FAILED, ERROR, MISSING, FORBIDDEN = "passed", "failed", "error", "missing", "forbidden"
KILLED, UNSURE, MANUAL = "killed", "unsure", "manual"
UNDECIDED = (KILLED, UNSURE, MANUAL)


@dataclass(frozen=True)
class Outcome:
    """How one question ended.

    Parameters
    ----------
    question : str
        Its id.
    title : str
        Its title.
    possible : float
        The points of a right answer.
    status : str
        "passed", "failed", "error", "missing", "forbidden"; or, for a human to decide, "killed",
        "unsure", "manual".
    earned : float or None
        The points; None until a human has decided.
    message : str
        What the student reads.
    by_hand : bool, default=False
        Whether a human gave the points.
    """

    question: str
    title: str
    possible: float
    status: str
    earned: float | None
    message: str
    by_hand: bool = False


@dataclass(frozen=True)
class Result:
    """What a submission earned, and what a human should know of it.

    Parameters
    ----------
    student : str
        The student's id.
    name : str
        The student's name, as the learning management system gives it.
    outcomes : tuple of Outcome
        One a question.
    flags : tuple of str
        What a human should look at.
    cells : tuple of dict
        The cells that raised an error: "cell", "line", "error".
    output : str
        The first of what the cells printed.
    answers : dict
        The source of each answer, by the name of its function.
    sandboxed : bool
        Whether the code ran in the sandbox.
    key : str
        The hash of all that the result depends on.
    """

    student: str
    name: str
    outcomes: tuple[Outcome, ...]
    flags: tuple[str, ...] = ()
    cells: tuple[dict, ...] = ()
    output: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    sandboxed: bool = True
    key: str = ""

    @property
    def who(self) -> str:
        """The student, for people: name and id where there are both."""
        return f"{self.name} ({self.student})" if self.name != self.student else self.name

    @property
    def is_complete(self) -> bool:
        """Whether every question has its points."""
        return all(outcome.earned is not None for outcome in self.outcomes)

    @property
    def earned(self) -> float:
        """The points so far."""
        return sum(outcome.earned or 0.0 for outcome in self.outcomes)

    @property
    def possible(self) -> float:
        """The points of all questions."""
        return sum(outcome.possible for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Result:
        """Return the result that `to_json` wrote; a ValueError or TypeError if it is another."""
        fields = dict(record)
        fields["outcomes"] = tuple(Outcome(**outcome) for outcome in fields["outcomes"])
        for name in ("flags", "cells"):
            fields[name] = tuple(fields[name])
        return cls(**fields)
