"""One submission: verdicts, points, what is killed, and what a result depends on."""

from dataclasses import replace

import pytest

from rankbook.grading import Limits, Submission, grade_submission
from rankbook.grading.grade import ChecksError, submission_key
from tests.grading.attacks import HONEST, KILLED
from tests.grading.conftest import batch, earned, notebook, some, status

ADA = Submission("ada", "Ada", (HONEST,))


def graded(checks, *cells, **fields):
    """The outcomes of cells of our own, by question; they need no sandbox."""
    limits = Limits(question_seconds=60)
    result = grade_submission(
        replace(ADA, cells=cells, **fields), checks, limits=limits, sandboxed=False
    )
    return result, {outcome.question: outcome for outcome in result.outcomes}


def test_each_answer_is_judged_by_itself(checks):
    """Right, wrong in some cases, an error; then a cell that fails and one that is not Python."""
    cells = [
        HONEST,
        "def squares(x):\n    return 2.0 if len(x) == 2 else 0.0",
        "def total(x):\n    return x[99]",
        "1 / 0",
    ]
    result, found = graded(checks, *cells)
    assert [found[f"P9.{i}"].status for i in (1, 2, 3, 4)] == [
        "passed",
        "failed",
        "error",
        "manual",
    ]
    assert found["P9.2"].message.startswith("1 of 3 cases are right; in one, a wrong value")
    assert "IndexError" in found["P9.3"].message
    assert (result.earned, result.possible, result.is_complete) == (4, 15, False)
    assert [(c["cell"], c["line"]) for c in result.cells] == [(4, 1)]
    assert result.answers["squares"].startswith("def squares") and not result.sandboxed


def test_an_answer_that_is_not_there_or_not_python(checks):
    result, found = graded(checks, "x = 1 / 0", "def squares(x:\n    return 0", ids=("other",))
    assert found["P9.1"].status == "missing" and "Cell 1 raised" in found["P9.1"].message
    assert found["P9.2"].status == "unsure" and found["P9.2"].earned is None
    assert "the cell of P9.4 is missing" in result.flags


def test_no_notebook_waits_for_a_human(checks):
    result = grade_submission(replace(ADA, cells=None), checks)
    assert {o.status for o in result.outcomes} == {"unsure", "manual"} and result.flags


def test_an_error_in_the_checks_is_no_students_fault(checks):
    def fails(*arguments):
        raise ZeroDivisionError

    broken = replace(checks, questions=[replace(checks.questions[0], reference=fails)])
    with pytest.raises(ChecksError, match="P9.1"):
        graded(broken, HONEST)


def test_a_result_depends_on_all_that_went_into_it(checks):
    plain = (ADA, checks, Limits(), "secret", True)
    changes = [
        (0, replace(ADA, cells=(HONEST, ""))),
        (0, replace(ADA, seed="Ada")),
        (1, replace(checks, digest="another")),
        (2, Limits(question_seconds=21)),
        (3, "another"),
        (3, None),
        (4, False),
    ]
    keys = {submission_key(*plain)}
    for place, value in changes:
        keys.add(submission_key(*plain[:place], value, *plain[place + 1 :]))
    assert len(keys) == len(changes) + 1
    assert submission_key(*plain) in keys


@pytest.fixture(scope="module")
def stopped(grader):
    """The results of notebooks that end their runner; the clock has no part in it."""
    files = {}
    for name, code in KILLED.items():
        files[f"{name} in a cell.ipynb"] = notebook(HONEST, code)
        body = "\n".join("    " + line for line in code.splitlines())
        files[f"{name} in an answer.ipynb"] = notebook(HONEST, f"def squares(x):\n{body}")
    return grader.grade("stopped", files)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", KILLED)
def test_what_ends_in_a_cell_waits_for_a_human(stopped, name):
    result = stopped[f"{name} in a cell"]
    assert set(earned(result).values()) == {None}
    assert set(status(result).values()) == {"killed", "manual"}
    assert result["flags"]
    assert len(result["output"]) <= 20_000


@pytest.mark.thorough
@pytest.mark.parametrize("name", KILLED)
def test_what_ends_in_an_answer_costs_that_answer_alone(stopped, name):
    result = stopped[f"{name} in an answer"]
    assert earned(result)["P9.2"] is None and status(result)["P9.2"] == "killed"
    assert earned(result)["P9.1"] == 4 and result["flags"]
    # The crash needs ctypes, a way around what the third question forbids: a human looks.
    assert status(result)["P9.3"] == ("unsure" if name == "crash" else "passed")


@pytest.mark.thorough
def test_what_never_returns_is_stopped_by_the_clock(grader):
    """No other answer is looked at: so little time may be too little for them on a busy machine."""
    files = {
        "endless.ipynb": notebook(HONEST, "def squares(x):\n    while True: pass"),
        "asleep.ipynb": notebook(HONEST, "import time\ndef squares(x): time.sleep(10**6)"),
    }
    found, _ = grader.grade("timed", files, "--question-seconds", 2)
    for result in found.values():
        assert earned(result)["P9.2"] is None and status(result)["P9.2"] == "killed"
        assert any("longer than" in flag for flag in result["flags"])


# Answers to the question that forbids numpy.sum and statistics, and what comes of them.
WAYS = {
    "attribute": "import numpy as np\ndef total(x): return np.sum(x)",
    "alias": "from numpy import sum as plus\ndef total(x): return plus(x)",
    "star": "from numpy import *\ndef total(x): return sum(x)",
    "helper": "import numpy as np\ndef helper(x): return np.sum(x)\ndef total(x): return helper(x)",
    "lambda": "import numpy\ntotal = lambda x: numpy.sum(x)",
    "inside": "def total(x):\n    import statistics as s\n    return s.fsum(x)",
    "getattr": "import numpy as np\nplus = getattr(np, 'su' + 'm')\ndef total(x): return plus(x)",
    "dynamic": "def total(x):\n    m = __import__('statis' + 'tics')\n"
    "    return m.fmean(x) * len(x)",
    "hook off": "import sys\ndef total(x):\n    sys.setprofile(None)\n    return sum(x.tolist())",
    "allowed": "import numpy as np, statistics\ndef other(x): return np.sum(x)\n"
    "def total(x): return np.cumsum(x)[-1]",
}
QUICK_WAYS = ("attribute", "getattr", "allowed")


@pytest.fixture(scope="module")
def ruled(grader, request):
    names = batch(request, QUICK_WAYS, WAYS)
    return grader.grade("ruled", {f"{n}.ipynb": notebook(WAYS[n]) for n in names})[0]


@pytest.mark.parametrize("name", some(WAYS, QUICK_WAYS))
def test_the_import_rule(ruled, name):
    result, wanted = ruled[name], {"hook off": "unsure", "allowed": "passed"}.get(name, "forbidden")
    assert status(result)["P9.3"] == wanted, result
    assert earned(result)["P9.3"] == {"forbidden": 0, "unsure": None, "passed": 3}[wanted]
    assert bool(result["flags"]) == (wanted != "passed")
