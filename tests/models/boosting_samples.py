"""Samples of the tests of boosted rankers."""

import numpy as np


def sample(n=60, n_classes=3, seed=0, p=2):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return rng.normal(size=(n, p)) + y[:, None], y, rng.uniform(0.5, 2.0, n)
