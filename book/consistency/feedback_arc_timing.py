"""Time three exact methods for the best order of a random graph: enumeration, subsets, MILP.

Run from the root of the repository: ``python book/consistency/feedback_arc_timing.py``. It writes
``feedback_arc_timing.json`` beside itself: CPU seconds of one thread, by method and size.
"""

import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from itertools import permutations
from pathlib import Path

import numpy as np

from rankbook import graphs

SEEDS = range(5)
SIZES = {
    "enumeration": range(3, 10),
    "subsets": range(3, 19, 3),
    "milp": (6, 10, 14, 18, 20, 22, 24, 26, 28),
    "milp, planted order": (6, 10, 14, 18, 22, 26, 30, 40, 50),
}


def tournament(m, seed, planted):
    """Return majorities of random votes: of fair coins, or for a planted order (three in four)."""
    rng = np.random.default_rng([seed, m])
    a = np.zeros((m, m), dtype=int)
    rows, columns = np.triu_indices(m, 1)
    votes = rng.binomial(9, 0.75 if planted else 0.5, len(rows))
    a[rows, columns], a[columns, rows] = votes, 9 - votes
    shuffle = rng.permutation(m)
    return a[np.ix_(shuffle, shuffle)]


def enumerate_orders(a):
    """Return the least penalty over all orders, one after the other."""
    table = a.tolist()
    return min(
        sum(table[i][j] for place, j in enumerate(order) for i in order[place + 1 :])
        for order in permutations(range(len(a)))
    )


def main():
    """Measure and write the results."""
    methods = {
        "enumeration": enumerate_orders,
        "subsets": lambda a: graphs.minimum_edge_loss(a, "subsets"),
        "milp": lambda a: graphs.minimum_edge_loss(a, "milp"),
        "milp, planted order": lambda a: graphs.minimum_edge_loss(a, "milp"),
    }
    graphs.minimum_edge_loss(tournament(5, 0, False), "milp")  # imports are not part of it
    results, agree = {}, True
    for name, solve in methods.items():
        results[name] = {}
        for m in SIZES[name]:
            seconds = []
            for seed in SEEDS:
                a = tournament(m, seed, "planted" in name)
                start = time.process_time()
                value = solve(a)
                seconds.append(round(time.process_time() - start, 6))
                if m <= 12:
                    agree &= value == graphs.minimum_edge_loss(a, "subsets")
            results[name][m] = seconds
            print(f"{name:20} {m:3} nodes: median {np.median(seconds):9.5f} s", flush=True)
    report = {"seeds": list(SEEDS), "agree_to_12_nodes": bool(agree), "seconds": results}
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
