"""What Weka's M5P, the original program, makes of nine data sets.

    python -m tests.models.make_weka_m5p

writes weka_m5p.json beside this file. It needs Java and Weka 3.6.14 (Debian: weka), and runs

    java -cp /usr/share/java/weka.jar weka.classifiers.trees.M5P -t train.arff -T test.arff -p 0

with no option, -N (unpruned), -U (unsmoothed), both, and -M 20. Weka prints three decimals, hence
the targets are scaled to a deviation of a million.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn import datasets

JAR = "/usr/share/java/weka.jar"
OPTIONS = {
    "default": [],
    "unpruned": ["-N"],
    "unsmoothed": ["-U"],
    "plain": ["-N", "-U"],
    "large": ["-M", "20"],
}


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Columns and targets, as they go into the tests."""
    found = {}
    diabetes = datasets.load_diabetes()
    found["diabetes"] = 10 * diabetes.data, diabetes.target
    exercise = datasets.load_linnerud()
    found["linnerud"] = exercise.data, exercise.target[:, 0]
    found["friedman1"] = datasets.make_friedman1(450, noise=1.0, random_state=0)
    found["friedman2"] = datasets.make_friedman2(450, noise=1.0, random_state=0)
    found["friedman3"] = datasets.make_friedman3(450, noise=0.1, random_state=0)
    wine = datasets.load_wine().data
    found["wine"] = wine[:, 1:], wine[:, 0]
    cancer = datasets.load_breast_cancer().data
    found["cancer"] = cancer[:, 1:11], cancer[:, 0]
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(300, 5))
    pieces = np.where(X[:, 0] > 0.5, 3 * X[:, 1], -2 * X[:, 2])
    found["pieces"] = X, pieces + 0.1 * rng.normal(size=300)
    grades = rng.integers(0, 4, size=(300, 4)).astype(float)
    found["grades"] = grades, grades[:, 0] * grades[:, 1] + rng.normal(size=300)
    return {name: (X, 1e6 * (y - y.mean()) / y.std()) for name, (X, y) in found.items()}


def split(X: np.ndarray, y: np.ndarray):
    """Every third row is for testing."""
    test = np.arange(len(y)) % 3 == 2
    return X[~test], y[~test], X[test]


def _write(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    names = [*(f"x{j}" for j in range(X.shape[1])), "y"]
    head = ["@relation data", *(f"@attribute {name} numeric" for name in names), "@data"]
    rows = [",".join(repr(float(v)) for v in (*row, t)) for row, t in zip(X, y, strict=True)]
    path.write_text("\n".join(head + rows) + "\n")


def _weka(folder: Path, options: list[str]) -> str:
    call = ["java", "-cp", JAR, "weka.classifiers.trees.M5P"]
    files = ["-t", str(folder / "train.arff"), "-T", str(folder / "test.arff")]
    return subprocess.run(call + files + options, check=True, capture_output=True, text=True).stdout


def results(X: np.ndarray, y: np.ndarray) -> dict:
    """Number of leaves and predictions of the test rows, for each set of options."""
    train, target, test = split(X, y)
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "train.arff", train, target)
        _write(folder / "test.arff", test, np.zeros(len(test)))
        for key, options in OPTIONS.items():
            text = _weka(folder, options)
            lines = _weka(folder, [*options, "-p", "0"]).splitlines()
            rows = [line.split() for line in lines]
            values = [float(row[2]) for row in rows if len(row) == 4 and row[0].isdigit()]
            leaves = int(text.split("Number of Rules :")[1].split()[0])
            found[key] = {"leaves": leaves, "predictions": values}
    return found


def main() -> None:
    """Write the file."""
    table = {name: results(*data) for name, data in data_sets().items()}
    path = Path(__file__).with_name("weka_m5p.json")
    path.write_text(json.dumps(table, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
