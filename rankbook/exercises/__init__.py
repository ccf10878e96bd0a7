"""Answers checked: the exercises of the chapters, and the questions of the problem sets.

`check` tells a reader whether an answer to an exercise is right, and what kind of error it has if
it is not, without giving the answer away. A problem set is a list of `Question`, for the grader,
and of `ManualQuestion`, for a human. `student_rng` and `dataset` give every student data of
their own, which the grader draws again.
"""

from __future__ import annotations

from rankbook.exercises._question import ManualQuestion, Question, Verdict
from rankbook.exercises._registry import check, dataset, table
from rankbook.exercises._seeds import student_rng

__all__ = [
    "ManualQuestion",
    "Question",
    "Verdict",
    "check",
    "dataset",
    "student_rng",
    "table",
]
