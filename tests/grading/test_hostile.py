"""Hostile submissions in a real sandbox: no points, no harm, and nobody else pays."""

import csv

import pytest

from tests.grading.attacks import HONEST, ON_MACHINE, ON_SCORES
from tests.grading.conftest import batch, earned, notebook, some, status

QUICK_SCORES = ("empty", "hidden tests from files", "equal to everything", "forged print")
QUICK_MACHINE = ("50 GB", "writes outside", "forks")


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
