"""The checks of a problem set: a Python file of the instructor's, which never enters a sandbox."""

from __future__ import annotations

import hashlib
import importlib
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Checks", "load_checks"]


@dataclass(frozen=True)
class Checks:
    """The questions of a problem set.

    Parameters
    ----------
    set_id : str
        Such as "P1".
    title : str
        The title of the set.
    questions : tuple
        `rankbook.exercises.Question` objects, or what has their attributes.
    manual : tuple
        `rankbook.exercises.ManualQuestion` objects: ids, titles, points and rubrics.
    digest : str
        The hash of the file.
    student_rng : callable
        From a question's id, a student and ``secret=`` to a generator.
    """

    set_id: str
    title: str
    questions: tuple[Any, ...]
    manual: tuple[Any, ...]
    digest: str
    student_rng: Callable[..., np.random.Generator]

    @property
    def heading(self) -> str:
        """What pages call the set."""
        return f"Problem set {self.set_id}, {self.title}"

    @property
    def possible(self) -> float:
        """The points of all questions."""
        return float(sum(question.points for question in [*self.questions, *self.manual]))


def load_checks(path: str | Path) -> Checks:
    """Read the checks of a problem set.

    The file is run: it is the instructor's own. It defines ``SET``, ``TITLE``, ``QUESTIONS`` and
    ``MANUAL``, and may define a ``student_rng`` of its own.

    Parameters
    ----------
    path : str or Path
        The ``checks.py`` that ``make coursework`` wrote.

    Returns
    -------
    Checks
        The questions.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankbook.grading import load_checks
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "checks.py"
    >>> _ = path.write_text("SET, TITLE, QUESTIONS, MANUAL = 'P0', 'Nothing yet', [], []")
    >>> load_checks(path).title
    'Nothing yet'
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"path must be a file of checks, and {path} is none")
    defined = runpy.run_path(str(path))
    lacking = [name for name in ("SET", "TITLE", "QUESTIONS", "MANUAL") if name not in defined]
    if lacking:
        raise ValueError(f"path must define {', '.join(lacking)}, and {path} does not")
    questions, manual = tuple(defined["QUESTIONS"]), tuple(defined["MANUAL"])
    ids = [question.id for question in [*questions, *manual]]
    doubles = sorted({name for name in ids if ids.count(name) > 1})
    if doubles:
        raise ValueError(f"path must give each question one id, and {path} repeats {doubles}")
    return Checks(
        set_id=str(defined["SET"]),
        title=str(defined["TITLE"]),
        questions=questions,
        manual=manual,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        student_rng=defined.get("student_rng", _student_rng),
    )


def _student_rng(*args: Any, **options: Any) -> np.random.Generator:
    return importlib.import_module("rankbook.exercises").student_rng(*args, **options)
