"""The class report: numbers against a class made by hand, and a page that runs nothing."""

import re

import numpy as np
import pytest

from rankbook.grading import _html
from rankbook.grading.report import discrimination, report, similar_answers
from tests.grading.records import CLASS, EVIL, Tags, result


def test_the_page_holds_everything_and_runs_nothing(checks):
    text = report(CLASS, checks, [(EVIL, EVIL)])
    Tags(text).assert_closed()
    assert EVIL not in text and text.count("&lt;script&gt;") >= 2


def test_the_report_draws_the_class(checks):
    text = report(CLASS, checks)
    assert text.count("<svg") == 2 and "90-100: 1" in text and "P9.3: stopped" in text
    assert "(102)</th>" in text


def test_labels_that_would_touch_stand_in_two_lines():
    few, many = (_html.bars("t", "d", ["P6.1a"] * n, [1] * n) for n in (14, 16))
    heights = [re.findall(r'y="(\d+)">P6', drawn) for drawn in (few, many)]
    assert heights == [["238"] * 14, ["238", "258"] * 8]
    assert "640 260" in few and "640 280" in many
    assert _html.bars("t", "d", [], [])


def test_the_hardest_question_comes_first(checks):
    table = report(CLASS, checks).partition("Difficulty and discrimination</caption>")[2]
    order = sorted(("P9.1", "P9.2", "P9.3", "P9.4"), key=table.index)
    # Mean shares: P9.2 1/3, P9.3 1/2 of the two that are decided, P9.4 1/2, P9.1 2/3.
    assert (order[0], order[-1]) == ("P9.2", "P9.1")


def test_discrimination_is_the_correlation_with_the_rest():
    questions = [
        result(str(i), e, 0.0, 0.0, r) for i, (e, r) in enumerate([(0, 1), (4, 5), (2, 3)])
    ]
    assert discrimination(questions, "P9.1") == pytest.approx(1.0)
    assert np.isnan(discrimination(questions, "P9.2"))  # nobody has a point


def test_discrimination_leaves_out_the_undecided():
    earned = [(4, 0), (0, 5), (2, 1), (None, 5)]
    group = [result(str(i), a, 0.0, 0.0, b) for i, (a, b) in enumerate(earned)]
    # Of (1, 0), (0, 5), (1/2, 1): covariance -5/4, variances 1/4 and 7.
    assert discrimination(group, "P9.1") == pytest.approx(-1.25 / np.sqrt(0.25 * 7))
    assert np.isnan(discrimination(group[:2], "P9.1"))


def test_renamed_copies_are_found_and_common_code_is_not():
    first = "def spread(x):\n" + "".join(
        f"    a{i} = x[{i}] ** {i} - {i} * x[-{i}]\n" for i in range(9)
    )
    copy = first.replace("a", "b").replace("x", "values")
    own = "def spread(x):\n" + "".join(f"    v = ({i} + x[{i}]) // 7\n" for i in range(9))
    texts = {"ada": first, "eve": copy} | {f"s{i}": own for i in range(8)}
    group = [result(s, 0.0, 0.0, 0.0, 0.0, answers={"spread": t}) for s, t in texts.items()]
    assert [pair[:2] for pair in similar_answers(group)] == [("ada", "eve")]


def test_copies_that_are_no_python_are_found_and_told(checks):
    """An answer that breaks off is compared up to there."""
    lines = "".join(f"    a{i} = x[{i}] ** {i} - {i} * x[-{i}]\n" for i in range(9))
    texts = {"101": f"def spread(x):\n{lines}    return (", "103": f"def spread(y):\n{lines}"}
    group = [result(s, 0.0, 0.0, 0.0, 0.0, answers={"spread": t}) for s, t in texts.items()]
    group += [result(f"s{i}", 0.0, 0.0, 0.0, 0.0) for i in range(8)]
    ((one, other, share),) = similar_answers(group)
    assert (one, other) == ("101", "103") and share > 0.9
    text = report(group, checks)
    assert "Pairs of students" in text and f"{100 * share:.0f}" in text
    assert "None." in report(CLASS, checks)
