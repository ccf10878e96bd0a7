"""Submitted notebooks graded: strangers' code runs in a sandbox, and only values come out.

The grader stays outside. Inside, a runner executes the cells of a notebook and calls the student's
functions on inputs that it is sent; what they return crosses as JSON and is compared outside, with
references that never enter. ``python -m rankbook.grading CHECKS SUBMISSIONS`` grades a folder, or
the archive of Moodle or Canvas.
"""

from __future__ import annotations

import importlib

# The runner imports this package in every sandbox: it stays light.
_HOME = {
    "Checks": "_checks",
    "Limits": "sandbox",
    "Outcome": "_records",
    "Result": "_records",
    "Submission": "unpack",
    "Submissions": "unpack",
    "grade_all": "batch",
    "grade_submission": "grade",
    "load_checks": "_checks",
    "probe": "sandbox",
    "read_submissions": "unpack",
}

__all__ = [
    "Checks",
    "Limits",
    "Outcome",
    "Result",
    "Submission",
    "Submissions",
    "grade_all",
    "grade_submission",
    "load_checks",
    "probe",
    "read_submissions",
]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(f"rankbook.grading.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rankbook.grading' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
