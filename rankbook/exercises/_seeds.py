"""Random numbers of a student's own, which only the holder of a secret can foresee."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import numpy as np


def student_rng(
    question_id: str, student: str, *, secret: bytes | str | None = None, course: str = "rankbook"
) -> np.random.Generator:
    """Return a generator that belongs to one student and one question.

    Its seed is HMAC-SHA256(secret, "course:question:student"), with the empty secret for practice.

    Parameters
    ----------
    question_id : str
        Such as "P1.3".
    student : str
        What the roster calls the student.
    secret : bytes or str, optional
        The instructor's secret, in a graded run.
    course : str, default="rankbook"
        Another course, another term: other numbers.

    Returns
    -------
    numpy.random.Generator
        The same for the same arguments, on every machine.

    Examples
    --------
    >>> from rankbook.exercises import student_rng
    >>> int(student_rng("P1.3", "ada").integers(1000))
    490
    >>> a, b = (student_rng("P1.3", "ada", secret=s).random() for s in (None, "s3cret"))
    >>> a == b
    False
    """
    for name, value in (("question_id", question_id), ("student", student), ("course", course)):
        check_text(value, name)
    if secret is not None and not isinstance(secret, bytes | str):
        raise TypeError(f"secret must be None, bytes or a string, got {secret!r}")
    key = secret.encode() if isinstance(secret, str) else secret or b""
    text = f"{course}:{question_id}:{student}"
    digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def check_text(value: Any, name: str) -> str:
    """Return a string that is not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {value!r}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value
