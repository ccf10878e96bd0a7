"""What all tests share: repeatable random examples, and no silent skip on a machine that checks."""

import os

import pytest
from hypothesis import settings

# The same examples on every run; RANKBOOK_FUZZ=random, on a schedule, looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, max_examples=500)
settings.load_profile("random" if os.environ.get("RANKBOOK_FUZZ") == "random" else "repeatable")

# The only reasons for which a test may be skipped where CI is set: what a reason must hold, and
# why that is no hole.
ALLOWED_SKIPS = {
    "RANKBOOK_DATA": "data whose terms forbid shipping it; the tests run where it lies",
    "SCIPY_ARRAY_API": "scikit-learn's checks of array libraries that this package does not claim",
}

_unexpected: list[str] = []


def _note_skip(report) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(allowed.lower() in reason.lower() for allowed in ALLOWED_SKIPS):
        _unexpected.append(f"{report.nodeid}: {reason}")


def pytest_runtest_logreport(report):
    """Note a test that was skipped for a reason that is not allowed."""
    _note_skip(report)


def pytest_collectreport(report):
    """Note a whole file that was skipped for a reason that is not allowed."""
    _note_skip(report)


def pytest_sessionfinish(session, exitstatus):
    """Where CI is set, a skip that is not allowed fails the run."""
    if os.environ.get("CI") and _unexpected and not hasattr(session.config, "workerinput"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Say which skips failed the run."""
    if os.environ.get("CI") and _unexpected:
        terminalreporter.section("skipped, and CI is set: not allowed", red=True)
        for line in _unexpected:
            terminalreporter.line(line)
