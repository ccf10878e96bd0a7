"""One submission: verdicts, points, what is killed, and what a result depends on."""

import json
from dataclasses import replace

import pytest

from rankbook.grading import Limits, Submission, grade, grade_submission
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


def test_one_case_is_told_as_one(checks):
    one = replace(checks.questions[0], id="P9.1")
    object.__setattr__(one, "instances", lambda rng: [(rng.normal(size=3),)])
    single = replace(checks, questions=[one], manual=[])
    assert graded(single, HONEST)[1]["P9.1"].message == "The answer is right."
    wrong = graded(single, "def spread(x): return -1.0")[1]["P9.1"]
    assert (wrong.status, wrong.message) == ("failed", "Not right: a wrong value.")


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

    broken = replace(checks, questions=(replace(checks.questions[0], reference=fails),))
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


def test_what_ends_its_process_waits_for_a_human(checks):
    """In an answer it costs that answer alone, in a cell all of them."""
    leave = "import os\ndef squares(x): os._exit(7)"
    result, found = graded(checks, HONEST, "print('once')", leave)
    assert [found[f"P9.{i}"].status for i in (1, 2, 3)] == ["passed", "killed", "passed"]
    assert found["P9.2"].earned is None and "with status 7" in found["P9.2"].message
    assert result.output == "once\n"
    _, found = graded(checks, HONEST, "import os\nos._exit(7)")
    assert {o.earned for o in found.values()} == {None}
    assert all("The notebook was stopped" in found[f"P9.{i}"].message for i in (1, 2, 3))


def test_the_rule_is_read_off_the_cells_and_watched_at_the_call(checks):
    for code in (
        "import numpy as np\ndef total(x): return np.sum(x)",
        "import numpy as np\nplus = getattr(np, 'su' + 'm')\ndef total(x): return plus(x)",
    ):
        result, found = graded(checks, code)
        assert (found["P9.3"].status, found["P9.3"].earned) == ("forbidden", 0)
        assert any("P9.3" in flag for flag in result.flags)
    result, found = graded(checks, "def total(x): return eval('sum(x)')")
    assert (found["P9.3"].status, found["P9.3"].earned) == ("unsure", None)
    assert "eval" in found["P9.3"].message


class Scripted:
    """A session that replies what a notebook that took over its runner could."""

    def __init__(self, *replies):
        self.replies, self.output, self.is_listening = list(replies), b"", True

    def __call__(self, limits, sandboxed):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self, message, seconds, limit=None):
        return self.replies.pop(0)


READY, SOME = b'{"ready": []}', b'{"value": 0.5, "intact": true}'


@pytest.mark.parametrize(
    ("replies", "status", "message"),
    [
        ([b"points: all"], "killed", "agreed form (not JSON"),
        ([b"[1]"], "killed", "agreed form"),
        ([b'{"points": 100}'], "killed", "agreed form"),
        ([READY, b"true"], "killed", "agreed form"),
        ([READY, b'{"passed": true, "points": 4}'], "killed", "agreed form"),
        ([READY, b'{"value": {"pickle": "x"}}', SOME, SOME], "failed", "kind 'pickle'"),
        ([READY, b'{"refused": "a thing"}', SOME, SOME], "failed", "returned a thing"),
        ([READY, b'{"refused": 3}', SOME, SOME], "failed", "something unreadable"),
        ([READY, b'{"forbidden": true}'], "forbidden", "what this question does not allow"),
        ([READY, b'{"error": []}'], "error", "In case 1 of 3: something unreadable"),
        ([READY, b'{"value": {"array": ["<f8", [0], ""]}}'] + [SOME] * 2, "failed", "a number"),
    ],
)
def test_a_reply_of_another_form_earns_nothing(checks, monkeypatch, replies, status, message):
    monkeypatch.setattr(grade, "Session", Scripted(*replies))
    single = replace(checks, questions=checks.questions[:1], manual=())
    (outcome,) = grade_submission(ADA, single).outcomes
    assert outcome.status == status and message in outcome.message
    assert not outcome.earned


def test_right_values_from_a_changed_runner_wait_for_a_human(checks, monkeypatch):
    question = checks.questions[0]
    rng = checks.student_rng(question.id, "ada", secret=None)
    right = [question.reference(*arguments) for arguments in question.instances(rng)]
    for intact, wanted in ((True, "passed"), (False, "unsure")):
        replies = [json.dumps({"value": v, "intact": intact}).encode() for v in right]
        monkeypatch.setattr(grade, "Session", Scripted(READY, *replies))
        single = replace(checks, questions=[question], manual=[])
        (outcome,) = grade_submission(ADA, single).outcomes
        assert outcome.status == wanted


def test_failures_that_a_notebook_forges_are_cut_to_their_form(checks, monkeypatch):
    forged = [3, {"cell": True, "line": -1, "error": "x" * 999}, {"cell": 2, "line": 5, "a": 1}]
    replies = [json.dumps({"ready": forged}).encode(), b'{"missing": 1}']
    monkeypatch.setattr(grade, "Session", Scripted(*replies))
    single = replace(checks, questions=checks.questions[:1], manual=())
    result = grade_submission(ADA, single)
    nothing = {"cell": None, "line": None}
    assert result.cells == (
        nothing | {"error": "something unreadable"},
        nothing | {"error": "x" * 500},
        {"cell": 2, "line": 5, "error": "something unreadable"},
    )


def test_a_value_that_cannot_be_compared_stops_nothing_but_its_answer(checks):
    def fails(value, expected):
        raise FloatingPointError

    one = replace(checks.questions[0])
    object.__setattr__(one, "compare", fails)
    _, found = graded(replace(checks, questions=(one, checks.questions[1])), HONEST)
    assert found["P9.1"].status == "killed" and "FloatingPointError" in found["P9.1"].message
    assert found["P9.2"].status == "passed"


def test_answers_that_are_right_one_by_one_may_not_fit_together(checks):
    def differ(answers, expected):
        assert answers == pytest.approx(expected)
        passed = answers[-1] == 0 and len(answers) == 3
        return type(checks.questions[0].compare(0.0, 0.0))(passed, "they do not fit.")

    one, other = replace(checks.questions[0]), replace(checks.questions[1])
    for question in (one, other):
        object.__setattr__(question, "compare_all", differ)
    _, found = graded(replace(checks, questions=[one, other]), HONEST)
    assert found["P9.1"].status == "passed"  # the spread of two equal numbers is 0
    assert found["P9.2"].status == "failed" and "they do not fit" in found["P9.2"].message


def test_time_that_is_used_up_leaves_the_rest_to_a_human(checks):
    result = grade_submission(ADA, checks, limits=Limits(seconds=0), sandboxed=False)
    assert {o.status for o in result.outcomes} == {"killed", "manual"}
    assert all("used up" in o.message for o in result.outcomes[:3])


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
        assert any("longer than 2 s" in flag for flag in result["flags"])


@pytest.mark.thorough
def test_a_cell_that_never_ends_is_stopped_by_the_clock(grader):
    files = {"endless.ipynb": notebook(HONEST, "while True: pass")}
    found, _ = grader.grade("endless", files, "--cells-seconds", 3)
    result = found["endless"]
    assert set(status(result).values()) == {"killed", "manual"}
    assert set(earned(result).values()) == {None}
    assert any("longer than 3 s" in flag for flag in result["flags"])


def test_nothing_that_an_answer_prints_comes_back(checks):
    """It could print the inputs."""
    cells = ("print('cells may')", "def spread(x):\n    print('inputs', x)\n    return 0.0")
    result, found = graded(checks, *cells)
    assert found["P9.1"].status == "failed"
    assert "cells may" in result.output and "inputs" not in result.output


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
