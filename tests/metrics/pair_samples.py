"""Small samples with ties and weights, for tests of pair metrics."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def samples(draw, max_classes=4, max_size=14, all_classes=True):
    n_classes = draw(st.integers(2, max_classes))
    n = draw(st.integers(n_classes, max_size))
    y = list(range(n_classes)) if all_classes else [0, 1]
    y += draw(st.lists(st.integers(0, n_classes - 1), min_size=n - len(y), max_size=n - len(y)))
    scores = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.25, 0.5, 1.0, 3.0]), min_size=n, max_size=n))
    return np.array(y), np.array(scores, dtype=float), np.array(weights)
