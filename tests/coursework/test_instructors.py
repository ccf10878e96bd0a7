"""The page for instructors: its course respects the prerequisites, its sets are as they are."""

import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "coursework"
PAGE = (FOLDER / "instructors.md").read_text(encoding="utf-8")
SETS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def markdown(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def chapters():
    """From the label of a chapter to the labels that its box names as prerequisites."""
    found = {}
    for path in (ROOT / "book").rglob("*.ipynb"):
        if not {".ipynb_checkpoints", "coursework"} & set(path.relative_to(ROOT).parts):
            text = markdown(path)
            label = re.search(r"^\((ch-[\w-]+)\)=", text, re.M)[1]
            needs = re.search(r"\*\*Prerequisites:\*\*(.*?)\*\*reading", text, re.S)[1]
            found[label] = set(re.findall(r"ch-[\w-]+", needs))
    return found


def test_the_course_has_every_chapter_after_what_it_needs():
    weeks = re.findall(r"^\| (\d+) \| (\{ref\}.*)$", PAGE, re.M)
    assert [int(week) for week, _ in weeks] == list(range(1, 13))
    order = [label for _, row in weeks for label in re.findall(r"\{ref\}`(ch-[\w-]+)`", row)]
    needs = chapters()
    assert sorted(set(order) - {"ch-notation"}) == sorted(needs) and len(set(order)) == len(order)
    for place, label in enumerate(order):
        late = needs.get(label, set()) - {"ch-notation"} - set(order[:place])
        assert not late, f"{label} comes before {late}"


@pytest.mark.parametrize("name", SETS)
def test_points_and_hours_of_a_set(name):
    source = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    text = "\n".join(cell.source for cell in source.cells if cell.cell_type == "markdown")
    heads = re.findall(r"^## \d+\. .* \((\d+) points, (\d+) minutes\)$", text, re.M)
    minutes = sum(int(minutes) for _, minutes in heads)
    graded = [c.metadata.get("nbgrader", {}) for c in source.cells]
    by_hand = sum(c["points"] for c in graded if c.get("grade") and c["solution"])
    cells = r"([^|{]*) \| [^|]* \| (\d+), (\d+) \| (\d):(\d\d)"
    row = re.search(rf"^\| {name[4:]} \| {cells} \|$", PAGE, re.M)
    assert row, f"the page has no row for {name}"
    assert row[1] == source.metadata.rankbook.title
    assert (int(row[2]), int(row[3])) == (100 - by_hand, by_hand)
    assert 60 * int(row[4]) + int(row[5]) == minutes
    assert len(heads) == 9
