"""The pictures of the page *For instructors*: an invented class, graded, and photographed.

``python book/coursework/pictures.py FOLDER`` makes the zip file that Moodle would offer, grades it
twice (points for the proofs are entered between the two runs), and writes ``feedback.png`` and
``report.png`` beside this file. It needs what grading needs, an ordinary user among it, and
Chromium (``CHROMIUM`` names another one than the first that is found).
"""

from __future__ import annotations

import copy
import csv
import os
import random
import runpy
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from PIL import Image

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CONVERT = runpy.run_path(str(HERE / "convert.py"))["convert"]
WRONG = runpy.run_path(str(ROOT / "tests" / "coursework" / "wrong_1.py"))["WRONG"]

NAMES = """Mira Okafor, Jonas Lindqvist, Aylin Demir, Tomasz Zielinski, Priya Raman, Luca Ferri,
Hana Sato, Diego Ramos, Noor Haddad, Freya Olsen, Kwame Mensah, Ines Duarte, Petr Novak, Mei Tan,
Sami Virtanen, Clara Vogt, Omar Farouk, Lena Brandt, Ravi Iyer, Elif Kaya, Hugo Martin, Zofia Maj,
Yara Costa, Finn Jansen""".replace("\n", " ").split(", ")
SHOWN = "Aylin Demir"

ENDLESS = """
def rank_regret(eta, marginal, scores):
    best = np.array(scores, dtype=float)
    while rank_risk(eta, marginal, best) > rank_risk(eta, marginal, eta) or len(eta) > 2:
        i, j = np.random.default_rng().integers(len(best), size=2)
        best[[i, j]] = best[[j, i]]
    return rank_risk(eta, marginal, scores) - rank_risk(eta, marginal, best)
"""
LIBRARY = "from sklearn.metrics import roc_auc_score\ndef weighted_auc(y, scores, weights):\n"
LIBRARY += "    return roc_auc_score(y, scores, sample_weight=weights)"
BY_HAND = """
def placements(y, scores):
    up, down = [], []
    for i in range(len(y)):
        below = above = 0.0
        for j in range(len(y)):
            if y[i] == 1 and y[j] == 0:
                below += 1.0 if scores[j] < scores[i] else 0.5 if scores[j] == scores[i] else 0.0
            if y[i] == 0 and y[j] == 1:
                above += 1.0 if scores[j] > scores[i] else 0.5 if scores[j] == scores[i] else 0.0
        if y[i] == 1:
            up.append(below / sum(1 for label in y if label == 0))
        else:
            down.append(above / sum(1 for label in y if label == 1))
    return np.array(up), np.array(down)
"""
SPECIAL = {
    SHOWN: [("P1.5", ENDLESS), ("P1.1", WRONG["P1.1"][0][0]), ("P1.6", "1 / 0")],
    "Luca Ferri": [("P1.1", LIBRARY)],
    "Petr Novak": [("P1.3", BY_HAND)],
    "Elif Kaya": [
        ("P1.3", BY_HAND.replace("below", "b").replace("scores", "s").replace("up", "u"))
    ],
}


def answered(solution: NotebookNode, changes: list[tuple[str, str]]) -> str:
    """A notebook in which some answers are others."""
    notebook = copy.deepcopy(solution)
    cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in notebook.cells}
    for question, code in changes:
        name = question.replace(".", "-")
        cell = cells.get(f"{name}-answer") or cells[f"{name}a-answer"]
        cell.source += "\n\n" + code
    return nbformat.writes(notebook)


def write_class(folder: Path) -> list[str]:
    """Write checks.py and moodle.zip; return the students, the best first."""
    CONVERT(HERE / "set_1.ipynb", folder)
    solution = nbformat.read(folder / "solution.ipynb", as_version=4)
    rng = random.Random(5)
    order = rng.sample(NAMES, len(NAMES))
    with zipfile.ZipFile(folder / "moodle.zip", "w") as archive:
        for place, name in enumerate(order):
            # The further down, the more is wrong, and the hard questions first.
            wrong = [q for i, q in enumerate(WRONG) if rng.random() < place / 30 + i / 12 - 0.2]
            changes = [(question, rng.choice(WRONG[question])[0]) for question in wrong]
            text = answered(solution, SPECIAL.get(name, changes))
            number = 4100 + NAMES.index(name)
            archive.writestr(f"{name}_{number}_assignsubmission_file_/set_1.ipynb", text)
        archive.writestr("Kim Abel_4130_assignsubmission_file_/proofs.pdf", b"%PDF-1.4")
    return order


def enter_points(folder: Path, order: list[str]) -> None:
    """What a marker does in review.csv; what was stopped, and one set of proofs, stay open."""
    rng = random.Random(8)
    path = folder / "graded" / "review.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if row["reason"] == "A human grades this question." and row["name"] in order[:-1]:
            share = 1.1 - order.index(row["name"]) / 25 + rng.uniform(-0.25, 0.2)
            points = round(float(row["possible"]) * min(max(share, 0), 1))
            row["points"] = str(points)
            if row["name"] == SHOWN and row["question"] == "P1.2":
                row["comment"] = "The sum over pairs of positives needs distinct scores."
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def grade(folder: Path) -> None:
    """Grade the class by the command that instructors use."""
    places = [folder / "checks.py", folder / "moodle.zip", "--output", folder / "graded"]
    command = [sys.executable, "-m", "rankbook.grading", *map(str, places)]
    subprocess.run(command, check=True)


def photograph(page: Path, target: Path, size: tuple[int, int]) -> None:
    """Write a small picture of the top of a page."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)))
    with tempfile.TemporaryDirectory() as profile:
        shot = Path(profile) / "shot.png"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
        options += [f"--user-data-dir={profile}", f"--screenshot={shot}"]
        options += ["--force-device-scale-factor=1.5", f"--window-size={size[0]},{size[1]}"]
        subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True)
        with Image.open(shot) as picture:
            picture.convert("RGB").quantize(32).save(target, optimize=True)


def main(folder: str) -> None:
    """Make the class in an empty folder, and the pictures from it."""
    where = Path(folder).absolute()
    where.mkdir(parents=True, exist_ok=True)
    order = write_class(where)
    grade(where)
    enter_points(where, order)
    grade(where)
    (page,) = (where / "graded" / "feedback").glob(f"{4100 + NAMES.index(SHOWN)}-*.html")
    photograph(page, HERE / "feedback.png", (900, 1010))
    photograph(where / "graded" / "report.html", HERE / "report.png", (900, 1278))


if __name__ == "__main__":
    main(*sys.argv[1:])
