"""ModelTree against m5py: time and test error.

m5py does not run with today's scikit-learn, so it has an environment of its own, whose Python is
named by the variable RANKBOOK_M5PY; without it its rows are left out. It ran with

    m5py==0.3.3 scikit-learn==1.1.3 numpy==1.24.4 scipy==1.10.1 packaging   (Python 3.11)

Measured, in CPU seconds of one thread on a busy machine of two cores, with the mean squared error
on 20,000 other items (136 columns; the noise has variance 0.25):

    items      rankbook        m5py
      5,000     0.5  0.626      3.4  0.878
     10,000     0.9  0.515      7.0  0.742
     20,000     2.2  0.462     14.3  0.508
    100,000    14.1  0.368    100.8  0.405

That is six to eight times as fast. m5py draws at random, so that its errors differ a little from
run to run.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import measure, table
from rankbook.models import ModelTree

_TEST = 20_000
_SIZES = (5_000, 10_000, 20_000, 100_000)
# Wall seconds after which the peer is stopped.
_LIMIT = 3600.0
_PEER = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from m5py import M5Prime
data = np.load(sys.argv[1])
start = time.process_time()
model = M5Prime().fit(data["X"], data["y"])
seconds = time.process_time() - start
error = np.mean((np.ravel(model.predict(data["X_test"])) - data["y_test"]) ** 2)
print(seconds, error)
"""


def _sample(n: int, p: int = 136, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two planes, a curve and noise, in a few of the columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    planes = np.where(X[:, 0] > 0, 2 * X[:, 1] + X[:, 2], X[:, 3] - X[:, 1])
    return X, planes + np.sin(2 * X[:, 4]) + 0.5 * rng.normal(size=n)


def _peer(X: np.ndarray, y: np.ndarray, test: tuple[np.ndarray, np.ndarray]):
    """CPU seconds and test error of m5py, or None."""
    python = os.environ.get("RANKBOOK_M5PY")
    if python is None:
        print("  (RANKBOOK_M5PY is not set: m5py's row is left out)")
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=X, y=y, X_test=test[0], y_test=test[1])
        call = [python, "-c", _PEER, str(path)]
        try:
            done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            print(f"  (m5py was stopped after {_LIMIT:.0f} s)")
            return None
    return [float(word) for word in done.stdout.split()]


def _against_peer(n: int) -> None:
    """Print CPU seconds and test errors of both at n items."""
    X, y = _sample(n)
    test = _sample(_TEST, seed=1)
    model = ModelTree()
    rows = [("rankbook", measure(lambda: model.fit(X, y), 1))]
    error = np.mean((model.predict(test[0]) - test[1]) ** 2)
    notes = [f"  rankbook: {model.get_n_leaves()} leaves, test error {error:.4f}"]
    peer = _peer(X, y, test)
    if peer is not None:
        rows.append(("m5py", peer[0]))
        notes.append(f"  m5py: test error {peer[1]:.4f}")
    table(f"ModelTree, {n:,} x {X.shape[1]}", rows)
    print(*notes, sep="\n", flush=True)


def run() -> None:
    """Print times and errors for growing samples."""
    for n in _SIZES:
        _against_peer(n)
