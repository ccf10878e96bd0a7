"""COCR with least squares against one X'X, and load_letor against scikit-learn's reader.

``python -m benchmarks cocr`` takes about half a minute and 1.5 GB. The first part has 1e6 items of
136 features and five grades; a regression for each of the four boundaries is to cost at most three
times the one product X'X that least squares cannot do without. The second part writes 30,000 lines
like those of MSLR-WEB, all 136 features named, to a temporary file and reads it with both readers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.harness import measure, peak_memory, table  # first: fixes the threads

# isort: split
import numpy as np
from sklearn.datasets import load_svmlight_file

from rankbook.datasets import load_letor
from rankbook.models import COCR

SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)


def sample(n: int, p: int = 136) -> tuple[np.ndarray, np.ndarray]:
    """Items in blocks, so that no second array of their size is made, and grades 0..4."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p))
    for begin in range(0, n, 50_000):
        rows = X[begin : begin + 50_000]
        rng.standard_normal(rows.shape, out=rows)
    return X, rng.choice(5, size=n, p=SHARES)


def least_squares(n: int = 1_000_000) -> None:
    """Print the seconds of X'X and of COCR with each cost."""
    X, y = sample(n)
    rows = [("one X'X", measure(lambda: X.T @ X, repeat=2))]
    for kind in ("absolute", "oerr"):
        rows.append((f"COCR, {kind}", measure(lambda k=kind: COCR(None, k).fit(X, y), repeat=2)))
    table(f"COCR with least squares, {n:,} x {X.shape[1]}, five grades (bar: 3.00)", rows)
    print(f"  peak memory {peak_memory():.1f} GB, of which X {X.nbytes / 1e9:.1f}")


def write_lines(file: Path, n: int) -> None:
    """Lines as in MSLR-WEB: counts, sums and ratios of several lengths, one after the other."""
    rng = np.random.default_rng(1)
    X = np.round(np.exp(2 * rng.standard_normal((n, 136))), 6)
    X[:, ::3] = np.floor(X[:, ::3])
    y = rng.choice(5, size=n, p=SHARES)
    with file.open("w") as stream:
        for i in range(n):
            values = " ".join(f"{j}:{v:g}" for j, v in enumerate(X[i].tolist(), start=1))
            stream.write(f"{y[i]} qid:{i // 120} {values}\n")


def readers(n: int = 30_000) -> None:
    """Print the seconds of both readers, and rows a minute."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines.txt"
        write_lines(file, n)
        size = file.stat().st_size / 1e6
        theirs = measure(lambda: load_svmlight_file(str(file), query_id=True), repeat=2)
        ours = measure(lambda: load_letor(file), repeat=2)
        sparse = measure(lambda: load_letor(file, sparse=True), repeat=2)
    rows = [
        ("scikit-learn's load_svmlight_file", theirs),
        ("load_letor", ours),
        ("load_letor, sparse", sparse),
    ]
    table(f"Reading {n:,} lines of 136 features, {size:.0f} MB", rows)
    print(f"  load_letor: {60 * n / ours / 1e6:.2f} million rows a minute (bar: 1.00)")


def run() -> None:
    """Print both tables."""
    readers()
    least_squares()


if __name__ == "__main__":
    run()
