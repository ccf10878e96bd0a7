"""Hostile submissions in a real sandbox: no points, no harm, and nobody else pays."""

import csv

import pytest

from tests.grading.attacks import HONEST, KILLED, ON_MACHINE, ON_SCORES
from tests.grading.conftest import notebook

QUICK_SCORES = ("empty", "hidden tests from files", "equal to everything", "forged print")
QUICK_MACHINE = ("50 GB", "writes outside", "forks")


def earned(result):
    return {o["question"]: o["earned"] for o in result["outcomes"]}


def status(result):
    return {o["question"]: o["status"] for o in result["outcomes"]}


def some(names, quick):
    """All names; those that are not quick are left to `make test-grading`."""
    return [n if n in quick else pytest.param(n, marks=pytest.mark.thorough) for n in names]


def batch(request, quick, everything):
    """The attacks of this run, in one batch: the quick ones, or all if a thorough test is run."""
    is_thorough = any(item.get_closest_marker("thorough") for item in request.session.items)
    return list(everything) if is_thorough else list(quick)


@pytest.fixture(scope="module")
def attacked(grader, request):
    """The results of one class: attackers, and an honest student among them."""
    files = {"honest.ipynb": notebook(HONEST, ids=["P9-4"])}
    for name in batch(request, QUICK_SCORES, ON_SCORES):
        files[f"{name}.ipynb"] = notebook(*ON_SCORES[name])
    for name in batch(request, QUICK_MACHINE, ON_MACHINE):
        files[f"{name}.ipynb"] = notebook(*ON_MACHINE[name], HONEST)
    return grader.grade("attacked", files)


def test_an_honest_student_among_attackers_gets_all_points(attacked):
    results, output = attacked
    honest = results["honest"]
    assert earned(honest) == {"P9.1": 4, "P9.2": 3, "P9.3": 3, "P9.4": None}
    assert honest["sandboxed"] and not honest["flags"] and not honest["cells"]
    with (output / "gradebook.csv").open() as stream:
        rows = {row["student"]: row for row in csv.DictReader(stream)}
    assert rows["honest"]["earned"] == "10" and rows["honest"]["P9.4"] == ""


@pytest.mark.parametrize("name", some(ON_SCORES, QUICK_SCORES))
def test_no_attack_on_scores_earns_a_point(attacked, name):
    result = attacked[0][name]
    assert not any(earned(result).values())
    assert "passed" not in status(result).values()
    assert "LEAK" not in result["output"]


@pytest.mark.parametrize("name", some(ON_MACHINE, QUICK_MACHINE))
def test_no_attack_on_the_machine_succeeds(attacked, name):
    result = attacked[0][name]
    assert "LEAK" not in result["output"] and "HELD" in result["output"], result
    assert (earned(result)["P9.1"], earned(result)["P9.2"]) == (4, 3)


@pytest.fixture(scope="module")
def stopped(grader):
    """The results of notebooks that have to be stopped, with little time for a question."""
    files = {}
    for name, code in KILLED.items():
        files[f"{name} in a cell.ipynb"] = notebook(HONEST, code)
        body = "\n".join("    " + line for line in code.splitlines())
        files[f"{name} in an answer.ipynb"] = notebook(HONEST, f"def squares(x):\n{body}")
    files["endless.ipynb"] = notebook(HONEST, "def squares(x):\n    while True: pass")
    files["asleep.ipynb"] = notebook(HONEST, "import time\ndef squares(x): time.sleep(10**6)")
    return grader.grade("stopped", files, "--question-seconds", 4)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", KILLED)
def test_what_ends_in_a_cell_waits_for_a_human(stopped, name):
    result = stopped[f"{name} in a cell"]
    assert set(earned(result).values()) == {None}
    assert set(status(result).values()) == {"killed", "manual"}
    assert result["flags"]
    assert len(result["output"]) <= 20_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [*(f"{name} in an answer" for name in KILLED), "endless", "asleep"]
)
def test_what_ends_in_an_answer_costs_that_answer_alone(stopped, name):
    result = stopped[name]
    assert earned(result)["P9.2"] is None and status(result)["P9.2"] == "killed"
    assert earned(result)["P9.1"] == 4 and result["flags"]


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
