"""What is written for learning management systems."""

import csv
import io
import os
import sys
from pathlib import Path

import pytest

from rankbook.grading._records import Outcome, Result
from rankbook.grading.gradebook import (
    canvas_sheet,
    gradebook,
    moodle_sheet,
    read_sheet,
    to_nbgrader,
)
from tests.grading.records import CLASS, POINTS


def rows(text):
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_the_gradebook_leaves_open_what_is_undecided(checks):
    ada, emmy, _ = rows(gradebook(CLASS, checks))
    assert (ada["earned"], ada["possible"], ada["status"]) == ("15", "15", "complete")
    assert emmy["P9.3"] == "" and emmy["status"] == "a human has to look"
    assert emmy["name"].startswith("'=")


def test_moodles_worksheet_keeps_all_but_the_grades():
    sheet = (
        "\ufeffIdentifier,Full name,Status,Grade,Maximum grade,Last modified (grade)\n"
        'Participant 101,"Lovelace, Ada",Submitted,,15.00,-\n'
        "Participant 102,Emmy,Submitted,1.00,15.00,-\nParticipant 104,Kurt,No submission,,15.00,-\n"
    )
    text = moodle_sheet(CLASS, sheet)
    assert text.startswith("\ufeff")
    assert [r["Grade"] for r in rows(text)] == ["15", "1.00", ""]
    assert rows(text)[0]["Full name"] == "Lovelace, Ada"
    german = sheet.replace("Grade", "Bewertung", 1).replace("Participant", "Teilnehmer/in")
    assert rows(moodle_sheet(CLASS, german))[0]["Bewertung"] == "15"
    other = sheet.replace("Grade", "Puntos", 1)
    with pytest.raises(ValueError, match="--grade-column"):
        moodle_sheet(CLASS, other)
    assert rows(moodle_sheet(CLASS, other, "Puntos"))[0]["Puntos"] == "15"


def test_moodle_without_a_worksheet():
    ada, emmy, zero = rows(moodle_sheet(CLASS))
    assert (ada["Identifier"], ada["Grade"]) == ("Participant 101", "15")
    assert emmy["Grade"] == "" and zero["Grade"] == "0"
    assert "Last modified (grade)" in ada


def test_canvas_keeps_ids_and_the_row_of_points(checks):
    sheet = (
        "Student,ID,SIS User ID,SIS Login ID,Section,A tiny set (77),Other (78)\n"
        "    Points Possible,,,,,15,10\n"
        '"Lovelace, Ada",101,s1,ada,One,,3\n"Noether, Emmy",102,s2,emmy,One,,\n'
    )
    found = list(csv.reader(io.StringIO(canvas_sheet(CLASS, checks, sheet))))
    assert found == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "A tiny set (77)"],
        ["    Points Possible", "", "", "", "", "15"],
        ["Lovelace, Ada", "101", "s1", "ada", "One", "15"],
        ["Noether, Emmy", "102", "s2", "emmy", "One", ""],
    ]
    plain = rows(canvas_sheet(CLASS, checks, column="A tiny set (77)"))
    assert plain[0]["Student"] == "    Points Possible"
    assert [r["A tiny set (77)"] for r in plain] == ["15", "15", "", "0"]
    with pytest.raises(ValueError, match="--grade-column"):
        canvas_sheet(CLASS, checks, sheet.replace("A tiny set", "Another set"))
    # A note that Canvas puts under its rows is no student.
    assert canvas_sheet(CLASS, checks, sheet + "A note\n") == canvas_sheet(CLASS, checks, sheet)
    named = canvas_sheet(CLASS, checks, sheet.replace("A tiny set", "Homework 9: a tiny set"))
    assert rows(named)[1]["Homework 9: a tiny set (77)"] == "15"
    for title in ("Problem set 9", "P9: due in May"):
        assert (
            rows(canvas_sheet(CLASS, checks, sheet.replace("A tiny set", title)))[1]["ID"] == "101"
        )
    for title in ("Problem set 19", "Problem set 90", "P91"):
        with pytest.raises(ValueError, match="--grade-column"):
            canvas_sheet(CLASS, checks, sheet.replace("A tiny set", title))


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_no_name_is_a_formula(first):
    name = first + "HYPERLINK(1)"
    sheet = moodle_sheet([Result("1", name, ())])
    _, row = csv.reader(io.StringIO(sheet, newline=""))
    assert row[1] == "'" + name
    assert moodle_sheet([Result("1", "Ada = Bo", ())]).count("'") == 0


def test_a_sheet_is_read_without_the_mark_of_its_encoding(tmp_path):
    (tmp_path / "sheet.csv").write_text("Name,Grade\n", encoding="utf-8-sig")
    assert read_sheet(tmp_path / "sheet.csv") == "Name,Grade\n"


# The warning is nbgrader's own, on a submission that it makes.
@pytest.mark.filterwarnings("ignore:Object of type <")
@pytest.mark.thorough
def test_parts_of_a_question_share_the_cell_of_nbgrader(tmp_path):
    from nbgrader.api import Gradebook

    url = f"sqlite:///{tmp_path}/gradebook.db"
    parts = (("P9.1a", 2.0), ("P9.1b", 3.0), ("P9.2", 1.0))
    outcomes = tuple(Outcome(q, q, e, "passed", e, "") for q, e in parts)
    with pytest.raises(ValueError, match="let nbgrader generate it first"):
        to_nbgrader([Result("1", "Ada", outcomes)], url, "P9", "P9")
    with Gradebook(url) as book:
        book.add_assignment("P9")
        book.add_notebook("P9", "P9")
        for name in ("P9-1", "P9-2"):
            book.add_grade_cell(name, "P9", "P9", max_score=5, cell_type="code")
    assert to_nbgrader([Result("1", "Ada", outcomes)], url, "P9", "P9") == []
    with Gradebook(url) as book:
        found = [book.find_grade(n, "P9", "P9", "1").auto_score for n in ("P9-1", "P9-2")]
    assert found == [5.0, 1.0]


# The warning is nbgrader's own, on a submission that it makes.
@pytest.mark.filterwarnings("ignore:Object of type <")
@pytest.mark.thorough
def test_points_reach_the_gradebook_of_nbgrader(tmp_path, monkeypatch):
    from nbgrader.api import Gradebook

    folder = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    url = f"sqlite:///{tmp_path}/gradebook.db"
    with Gradebook(url) as book:
        book.add_assignment("P9")
        book.add_notebook("P9", "P9")
        for name, possible in POINTS.items():
            kind = {"max_score": possible, "cell_type": "code"}
            book.add_grade_cell(name, "P9", "P9", **kind)
    assert to_nbgrader(CLASS, url, "P9", "P9", cells={"P9.2": "absent"}) == ["absent"]
    with Gradebook(url) as book:
        ada, emmy = (book.find_grade("P9.1", "P9", "P9", s) for s in ("101", "102"))
        assert (ada.auto_score, emmy.auto_score) == (4.0, 4.0)
        killed = book.find_grade("P9.3", "P9", "P9", "102")
        assert killed.auto_score is None and killed.needs_manual_grade
