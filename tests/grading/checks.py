"""The checks of a tiny problem set; SECRET-MARKER stands for all that a student must not see."""

import hashlib
from dataclasses import dataclass

import numpy as np

SET, TITLE = "P9", "A tiny set"


@dataclass(frozen=True)
class Verdict:
    passed: bool
    message: str


@dataclass(frozen=True)
class Question:
    id: str
    title: str
    points: int
    function: str
    reference: object
    forbidden: tuple = ()

    @staticmethod
    def instances(rng):
        return [(rng.normal(size=n),) for n in (3, 7)] + [(np.array([1.0, 1.0]),)]

    @staticmethod
    def compare(answer, expected):
        if isinstance(answer, (bool, np.bool_)) or not isinstance(answer, (int, float, np.number)):
            return Verdict(False, "a number is wanted.")
        if np.isnan(answer):
            return Verdict(False, "the value is not a number.")
        return Verdict(bool(abs(answer - expected) <= 1e-8 * (1 + abs(expected))), "a wrong value.")


@dataclass(frozen=True)
class ManualQuestion:
    id: str
    title: str
    points: int
    rubric: str


def student_rng(question, student, *, secret=None):
    digest = hashlib.sha256(f"{secret}:{question}:{student}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def spread(x):
    return float(np.max(x) - np.min(x))


def total(x):
    return float(np.sum(x))


def squares(x):
    return float(np.dot(x, x))


QUESTIONS = [
    Question("P9.1", "Spread", 4, "spread", spread),
    Question("P9.2", "Sum of squares", 3, "squares", squares),
    Question("P9.3", "Sum without numpy.sum", 3, "total", total, ("numpy.sum", "statistics")),
]
MANUAL = [ManualQuestion("P9.4", "A proof", 5, "five points for a proof")]
