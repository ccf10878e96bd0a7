"""A student's page: everything in it, nothing that runs, nothing that is not the student's."""

from rankbook.grading._records import Outcome, Result
from rankbook.grading.feedback import feedback
from tests.grading.records import CLASS, EVIL, Tags, result


def test_the_page_holds_everything_and_runs_nothing(checks):
    cells = ({"cell": 2, "line": 1, "error": EVIL},)
    text = feedback(result("102", 4.0, 0.0, None, 2.5, name=EVIL, cells=cells, output=EVIL), checks)
    Tags(text).assert_closed()
    # The name, the error of a cell and what was printed are the student's own words.
    assert EVIL not in text and text.count("&lt;script&gt;") == 3


def test_points_are_provisional_until_all_is_decided(checks):
    ada, emmy, _ = CLASS
    assert "15 of 15 points</strong>." in feedback(ada, checks)
    text = feedback(emmy, checks)
    assert "6.5 of 15 points</strong> so far" in text
    assert "? of 3" in text and "stopped; a human looks" in text


def test_questions_stand_in_the_order_of_the_set(checks):
    names = ("P9.10", "P9.2b", "P9.1", "P9.2a")
    outcomes = tuple(Outcome(n, n, 1.0, "passed", 1.0, "") for n in names)
    text = feedback(Result("1", "Ada", outcomes), checks)
    order = ("P9.1", "P9.2a", "P9.2b", "P9.10")
    assert sorted(names, key=lambda n: text.index(f">{n}<")) == list(order)
    assert "<h1>Problem set P9, A tiny set: feedback</h1>" in text


def test_a_long_output_is_cut(checks):
    text = feedback(result("1", 0.0, 0.0, 0.0, 0.0, output="y" * 100_000), checks)
    assert "y" * 4000 in text and "y" * 4001 not in text


def test_a_page_made_without_a_sandbox_says_so_first(checks):
    text = feedback(result("1", 0.0, 0.0, 0.0, 0.0, sandboxed=False), checks)
    assert "UNSAFE" in text.splitlines()[0]
    assert "UNSAFE" not in feedback(CLASS[0], checks)
