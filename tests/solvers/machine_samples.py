"""A machine with thresholds, as a program and a kernel matrix."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from rankbook.models.svor import svor_program
from rankbook.solvers.kernels import Kernel, KernelMatrix


def problem(n=30, n_classes=4, constraints="implicit", C=2.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    codes = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    program = svor_program(codes, n_classes, np.full(n, C), constraints)
    matrix = KernelMatrix(Kernel.build("rbf", X, gamma=0.5), X)
    return program, matrix, rbf_kernel(X, gamma=0.5)
