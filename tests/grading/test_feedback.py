"""A student's page: everything in it, nothing that runs, nothing that is not the student's."""

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


def test_a_long_output_is_cut(checks):
    text = feedback(result("1", 0.0, 0.0, 0.0, 0.0, output="y" * 100_000), checks)
    assert "y" * 4000 in text and "y" * 4001 not in text


def test_a_page_made_without_a_sandbox_says_so_first(checks):
    text = feedback(result("1", 0.0, 0.0, 0.0, 0.0, sandboxed=False), checks)
    assert "UNSAFE" in text.splitlines()[0]
    assert "UNSAFE" not in feedback(CLASS[0], checks)
