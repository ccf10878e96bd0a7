"""Questions: what is asked for, on which inputs, and how an answer is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankbook.exercises._compare import complaint


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and what is wrong with it.

    Parameters
    ----------
    passed : bool
        Whether the answer is right.
    message : str
        What a student reads. It never holds the right value.
    """

    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return f"{'Right' if self.passed else 'Not yet'}: {self.message}"


@dataclass(frozen=True)
class Question:
    """A question whose answer a program can judge.

    Parameters
    ----------
    id : str
        "6.2" is exercise 2 of chapter 6, "P1.3" question 3 of problem set 1, "P1.3a" a part of it.
    title : str
        A few words on what is asked.
    points : int
        What a right answer earns; an exercise of a chapter has 0.
    function : str
        The name of the function that a student defines; "" where the answer is a value.
    instances : callable
        From a generator to a list of tuples of arguments: random instances and edge cases. For a
        value it is the list of one empty tuple.
    reference : callable
        From the arguments to the right answer or, with `accepts`, to what `accepts` needs to know.
    tolerance : float, default=1e-8
        How far numbers may be off, relative and absolute.
    forbidden : tuple of str, default=()
        Modules and dotted names that an answer may neither import nor call.
    hints : mapping, default={}
        What to add to a message, by the kind of error: "type", "shape", "nan", "value".
    accepts : callable, optional
        For questions with many right answers: from the answer and what `reference` returned to
        an empty string, or to what is wrong.
    together : callable, optional
        What answers have to do with each other, as where a seed decides: from all answers, each of
        them right by itself, and all that `reference` returned to an empty string, or to what is
        wrong.
    answer : str, default=""
        What is handed to `check`, for the table of exercises.
    """

    id: str
    title: str
    points: int
    function: str
    instances: Callable[[np.random.Generator], list[tuple]]
    reference: Callable[..., object]
    tolerance: float = 1e-8
    forbidden: tuple[str, ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    accepts: Callable[[Any, Any], str] | None = None
    together: Callable[[Sequence[Any], Sequence[Any]], str] | None = None
    answer: str = ""

    def compare(self, answer: object, expected: object) -> Verdict:
        """Judge one value.

        Parameters
        ----------
        answer : object
            What the student's function returned, or the student's value.
        expected : object
            What `reference` returned for the same arguments.

        Returns
        -------
        Verdict
            With a message that names the kind of error.
        """
        if self.accepts is None:
            kind, text = complaint(answer, expected, self.tolerance)
        else:
            try:
                text = self.accepts(answer, expected)
            except Exception as error:  # noqa: BLE001 - any answer may come, of any form
                text = (
                    f"the value does not have the form that is asked for ({type(error).__name__})"
                )
            kind = "value" if text else ""
        if not kind:
            return Verdict(True, "the value is right.")
        hint = self.hints.get(kind, "")
        return Verdict(False, f"{text}.{' ' if hint else ''}{hint}")

    def compare_all(self, answers: Sequence[object], expected: Sequence[object]) -> Verdict:
        """Judge whether answers that are right one by one are so together.

        Parameters
        ----------
        answers : sequence
            What the student's function returned, an entry for each instance.
        expected : sequence
            What `reference` returned for the same instances.

        Returns
        -------
        Verdict
            With a message that says what does not fit.
        """
        text = self.together(answers, expected) if self.together else ""
        return Verdict(not text, f"{text}." if text else "the values fit together.")

    def grade(self, values: Sequence[object], rng: np.random.Generator) -> Verdict:
        """Judge the values of all instances.

        Parameters
        ----------
        values : sequence
            What the student's function returned, an entry for each of ``instances(rng)``.
        rng : numpy.random.Generator
            In the state from which the instances were drawn.

        Returns
        -------
        Verdict
            Passed if every value is; otherwise the first message, and how many cases are right.
        """
        instances = self.instances(rng)
        if len(values) != len(instances):
            return Verdict(False, f"{len(values)} values came back for {len(instances)} cases.")
        expected = [self.reference(*arguments) for arguments in instances]
        verdicts = [self.compare(*pair) for pair in zip(values, expected, strict=True)]
        wrong = [verdict for verdict in verdicts if not verdict.passed]
        if not wrong:
            fit = self.compare_all(values, expected)
            return Verdict(True, f"all {len(verdicts)} cases are right.") if fit else fit
        right = len(verdicts) - len(wrong)
        return Verdict(
            False, f"{right} of {len(verdicts)} cases are right; in one, {wrong[0].message}"
        )


@dataclass(frozen=True)
class ManualQuestion:
    """A question that a human marks.

    Parameters
    ----------
    id : str
        Such as "P1.2".
    title : str
        A few words on what is asked.
    points : int
        What a complete answer earns.
    rubric : str
        What earns how many points, for the marker.
    """

    id: str
    title: str
    points: int
    rubric: str
