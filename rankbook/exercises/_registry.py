"""Which exercises have a checker, and the functions that readers call."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rankbook._validation import check_choice, check_rng
from rankbook.exercises import _part_1, _part_2, _part_3, _part_4
from rankbook.exercises._coursework import DATASETS
from rankbook.exercises._question import Question, Verdict
from rankbook.exercises._seeds import student_rng

PARTS = (_part_1, _part_2, _part_3, _part_4)


@cache
def questions() -> dict[str, Question]:
    """Every exercise of a chapter that has a checker, in the order of the book."""
    found = [question for part in PARTS for question in part.QUESTIONS]
    return {question.id: question for question in found}


def _find(id: Any, known: Any) -> str:
    if isinstance(id, str) and id not in known and (near := difflib.get_close_matches(id, known)):
        raise ValueError(
            f"id must be that of an exercise with a checker, such as "
            f"{', '.join(near)}; got {id!r}. exercises.table() lists all"
        )
    return check_choice(id, known, "id")


def check(id: str, answer: object, *, rng: Any = 0) -> Verdict:
    """Check an answer to an exercise of a chapter.

    A function is called on random instances and on edge cases; a value is compared. Numbers may
    be off by a relative or absolute 1e-8, unless the exercise says otherwise.

    Parameters
    ----------
    id : str
        The exercise's number, such as "5.5". `table` lists those that have a checker.
    answer : object
        Your function or your value, as the exercise asks for it.
    rng : int or numpy.random.Generator, default=0
        Another seed, other random instances.

    Returns
    -------
    Verdict
        True if the answer is right; its message helps where it is not.

    Examples
    --------
    >>> from rankbook import exercises
    >>> exercises.check("1.1", 0.75)
    Not yet: the value is not right. How much does a tied pair count?
    >>> bool(exercises.check("5.5", lambda y, scores: 0.5))
    False
    """
    question = questions()[_find(id, questions())]
    generator = check_rng(rng)
    if not question.function:
        if callable(answer):
            return Verdict(False, f"the answer is a value, not a function: {question.answer}.")
        return question.compare(answer, question.reference())
    if not callable(answer):
        return Verdict(False, f"the answer is a function: {question.answer}.")
    return _check_function(question, answer, generator)


def _check_function(
    question: Question, answer: Callable[..., object], rng: np.random.Generator
) -> Verdict:
    instances = question.instances(rng)
    for number, arguments in enumerate(instances, 1):
        shown = f"{question.function}({', '.join(_short(value) for value in arguments)})"
        try:
            value = answer(*copy.deepcopy(arguments))
        except Exception as error:  # noqa: BLE001 - whatever a reader's function raises
            text = f"{shown} raises {type(error).__name__}: {error}"
            return Verdict(False, f"{number - 1} of {len(instances)} cases are right; {text}")
        verdict = question.compare(value, question.reference(*copy.deepcopy(arguments)))
        if not verdict.passed:
            text = f"for {shown}, {verdict.message}"
            return Verdict(False, f"{number - 1} of {len(instances)} cases are right; {text}")
    return Verdict(True, f"all {len(instances)} cases are right.")


def _short(value: object) -> str:
    text = (
        np.array2string(value, precision=4, separator=", ", threshold=20)
        if isinstance(value, np.ndarray)
        else repr(value)
    )
    return " ".join(text.split())


def dataset(id: str, *, student: str, secret: bytes | str | None = None) -> tuple:
    """Return data of a student's own for a question.

    The data are the arguments of the function that the question asks for. Without the secret they
    are for practice: the grader draws others, in the same way, with the instructor's secret.

    Parameters
    ----------
    id : str
        Of a question of a problem set with personal data, or of an exercise that asks for a
        function.
    student : str
        Your name, as the roster has it.
    secret : bytes or str, optional
        The instructor's secret, in a graded run.

    Returns
    -------
    tuple
        The arguments.

    Examples
    --------
    >>> from rankbook import exercises
    >>> y, scores = exercises.dataset("5.5", student="ada")
    >>> len(y) == len(scores)
    True
    """
    asked = {key: q for key, q in questions().items() if q.function}
    key = _find(id, [*asked, *DATASETS])
    rng = student_rng(key, student, secret=secret)
    return DATASETS[key](rng) if key in DATASETS else asked[key].instances(rng)[0]


def table() -> list[dict[str, str]]:
    """Return which exercises of the chapters have a checker, and what it is given.

    Returns
    -------
    list of dict
        With the keys "id", "title" and "answer", in the order of the book.

    Examples
    --------
    >>> from rankbook import exercises
    >>> exercises.table()[0]["id"]
    '1.1'
    """
    return [
        {"id": question.id, "title": question.title, "answer": question.answer}
        for question in questions().values()
    ]
