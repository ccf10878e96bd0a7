"""A whole class: again only what changed, and nothing lost whatever happens."""

import csv
import fcntl
import os
import signal
import time
from dataclasses import replace

import pytest

from rankbook.grading import Limits, Submission, _files, batch, grade_all
from rankbook.grading.grade import ChecksError
from rankbook.grading.sandbox import SandboxUnavailable
from tests.grading.attacks import HONEST
from tests.grading.conftest import AMPLE, notebook, results

WAITING = HONEST + "\nimport time\ntime.sleep(10**6)"


def stamps(output):
    return {p.name: p.stat().st_mtime_ns for p in (output / "results").glob("*.json")}


def test_root_and_machines_without_a_sandbox_are_refused(grader, tmp_path):
    folder = grader.folder("refused", {"ada.ipynb": notebook(HONEST)})
    output = grader.folder("refused-graded", {})
    before = dict(grader.environment)
    try:
        if grader.is_root:
            code, _, err = grader.run(grader.checks, folder, "--output", output, as_root=True)
            assert code == 2 and "This is root" in err
        fake = grader.folder("fake", {"bwrap": "#!/bin/sh\necho No permissions >&2\nexit 1\n"})
        (fake / "bwrap").chmod(0o755)
        grader.environment["PATH"] = f"{fake}:{before['PATH']}"
        code, _, err = grader.run(grader.checks, folder, "--output", output)
        assert code == 2 and "user namespaces" in err and "No permissions" in err
    finally:
        grader.environment = before
    assert not results(output)


def test_without_a_sandbox_the_first_line_says_so(grader):
    folder = grader.folder("unsafe", {"ada.ipynb": notebook(HONEST)})
    output = grader.folder("unsafe-graded", {})
    code, out, err = grader.run(grader.checks, folder, "--output", output, "--unsafe-no-sandbox")
    assert code == 0, err
    assert out.splitlines()[0].startswith("UNSAFE")
    assert "UNSAFE" in (output / "report.html").read_text().splitlines()[0]
    (ada,) = results(output).values()
    assert ada["sandboxed"] is False and ada["outcomes"][0]["earned"] == 4


def test_only_what_changed_is_graded_again(grader):
    names = ("ada", "emmy", "eve")
    found, output = grader.grade("changed", {f"{n}.ipynb": notebook(HONEST) for n in names})
    before = stamps(output)
    (grader.stage / "changed" / "eve.ipynb").write_text(notebook("x = 1"))
    whole = output / "results"
    (half,) = [p for p in whole.iterdir() if p.name.startswith("emmy")]
    half.write_text(half.read_text()[:50])
    rows = list(csv.reader((output / "review.csv").open()))
    for row in rows[1:]:
        row[4:6] = ("4.5", "good") if row[0] == "ada" else ("", "")
    (output / "review.csv").write_text("\n".join(",".join(row) for row in rows))
    places = (grader.checks, grader.stage / "changed", "--output", output)
    code, out, err = grader.run(*places, *AMPLE)
    assert code == 0, err
    changed = {name for name, stamp in stamps(output).items() if before[name] != stamp}
    assert {name.split("-")[0] for name in changed} == {"emmy", "eve"}
    book = {r["student"]: r for r in csv.DictReader((output / "gradebook.csv").open())}
    assert (book["ada"]["P9.4"], book["ada"]["earned"]) == ("4.5", "14.5")
    assert (book["emmy"]["earned"], book["eve"]["earned"]) == ("10", "0")
    assert book["ada"]["status"] == "complete" and book["eve"]["status"] != "complete"
    kept = [r for r in csv.DictReader((output / "review.csv").open()) if r["student"] == "ada"]
    assert [(r["points"], r["comment"]) for r in kept] == [("4.5", "good")]


@pytest.mark.thorough
def test_nothing_is_lost_when_it_is_killed(grader):
    """The grader dies while a notebook runs: what was graded stays, and no process is left."""
    files = {f"a{i}.ipynb": notebook(HONEST) for i in range(4)} | {"z.ipynb": notebook(WAITING)}
    folder, output = grader.folder("killed", files), grader.folder("killed-graded", {})
    arguments = (grader.checks, folder, "--output", output, "--jobs", 1)
    process = grader.start(*arguments, "--cells-seconds", 600)
    while len(stamps(output)) < 4:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    children = _descendants(process.pid)
    second = grader.run(*arguments)
    assert second[0] == 2 and "another grader is at work" in second[2]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    while any(os.path.exists(f"/proc/{child}") for child in children):
        time.sleep(0.05)
    before = stamps(output)
    assert len(before) == 4 and len(results(output)) == 4
    (folder / "z.ipynb").write_text(notebook(HONEST))
    code, _, err = grader.run(*arguments, "--cells-seconds", 600)
    assert code == 0, err
    after = stamps(output)
    assert len(after) == 5 and {name: after[name] for name in before} == before
    assert all(r["outcomes"][0]["earned"] == 4 for r in results(output).values())


def _descendants(pid):
    children = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as stream:
            children += map(int, stream.read().split())
    return children + [inner for child in children for inner in _descendants(child)]


ADA = Submission("ada", "Ada", (HONEST,))


def graded(checks, output, *submissions, **options):
    """Cells of our own, which need no sandbox."""
    options = {"sandboxed": False, "progress": False} | options
    return grade_all(submissions, checks, output, limits=Limits(question_seconds=60), **options)


def test_a_sandbox_is_asked_for_before_anything_is_written(checks, tmp_path, monkeypatch):
    def none():
        raise SandboxUnavailable("none here")

    monkeypatch.setattr(batch, "probe", none)
    with pytest.raises(SandboxUnavailable, match="none here"):
        graded(checks, tmp_path / "out", ADA, sandboxed=True)
    assert not (tmp_path / "out").exists()


def test_an_error_ends_the_run_and_keeps_what_was_graded(checks, tmp_path, monkeypatch):
    real, begun = batch.grade_submission, []

    def grade(submission, *args, **options):
        begun.append(submission.student)
        if submission.student == "eve":
            raise ChecksError("the checks of question P9.1 failed")
        return real(submission, *args, **options)

    monkeypatch.setattr(batch, "grade_submission", grade)
    many = [ADA, replace(ADA, student="eve"), *(replace(ADA, student=f"s{i}") for i in range(40))]
    with pytest.raises(ChecksError, match=r"P9\.1"):
        graded(checks, tmp_path, *many, jobs=1)
    assert set(results(tmp_path)) >= {"ada"} and len(begun) < len(many)
    assert not (tmp_path / "review.csv").exists()


def test_a_second_grader_is_kept_out(checks, tmp_path):
    tmp_path.joinpath(".lock").touch()
    with tmp_path.joinpath(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match="another grader is at work"):
            graded(checks, tmp_path, ADA)
    assert graded(checks, tmp_path, ADA)[0].earned == 10


def enter(output, **changes):
    """Change the row of the question that a human grades; what stood in the file."""
    path = output / batch.REVIEW
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    (row,) = (row for row in rows if row["question"] == "P9.4")
    row.update(changes)
    path.write_text(_files.to_csv([batch.HEADINGS, *([r[h] for h in r] for r in rows)]))


def test_what_a_human_decides_is_entered_and_kept(checks, tmp_path):
    (ada,) = graded(checks, tmp_path, ADA)
    assert not ada.is_complete and ada.outcomes[3].message
    for points, comment, earned in (("4,5", "", 4.5), ("2", "a gap", 2.0)):
        enter(tmp_path, points=points, comment=comment)
        (ada,) = graded(checks, tmp_path, ADA)
        outcome = ada.outcomes[3]
        assert (outcome.earned, outcome.message, outcome.by_hand) == (earned, comment, True)
        assert ada.is_complete and ada.earned == 10 + earned
    assert graded(checks, tmp_path, replace(ADA, student="emmy"))[0].earned == 10
    (ada,) = graded(checks, tmp_path, ADA)
    assert ada.earned == 12
    before = (tmp_path / batch.REVIEW).stat().st_mtime_ns
    graded(checks, tmp_path, ADA)
    rows = list(csv.DictReader((tmp_path / batch.REVIEW).open()))
    assert [r["comment"] for r in rows] == ["a gap"]
    assert (tmp_path / batch.REVIEW).stat().st_mtime_ns == before


@pytest.mark.parametrize("points", ["6", "-1", "five", "nan"])
def test_points_that_a_question_does_not_have_are_refused(checks, tmp_path, points):
    graded(checks, tmp_path, ADA)
    enter(tmp_path, points=points)
    with pytest.raises(ValueError, match=r"between 0 and 5, got .*\(ada, P9\.4\)"):
        graded(checks, tmp_path, ADA)


def test_a_review_without_its_columns_is_not_overwritten(checks, tmp_path):
    (tmp_path / batch.REVIEW).write_text("student,points\nada,5\n")
    with pytest.raises(ValueError, match="must have the columns student, name"):
        graded(checks, tmp_path, ADA)
    assert (tmp_path / batch.REVIEW).read_text() == "student,points\nada,5\n"
