"""Five list measures over many queries, against one argsort of the scores and against peers.

Bar: averages under heavy ties take at most 6 argsorts of the rows. Measured last, on a processor
whose argsort takes 6.5 ms for all rows: 4.3 to 4.5 with tenths, 3.8 with halves, 3.5 with integers,
2.9 with three values, 2.6 with two, 3.5 with mostly zeros, and 3.3 without ties (hundredths, which
leave most items alone, 5.8 to 6.1). Not measured since sums over groups were looked up: on one
whose argsort takes 3.4 ms, 6.6 to 6.9 with tenths, 5.5 with halves, 5.1 with integers, 4.2 with
three values, 3.8 with two, 4.8 with mostly zeros, and 4.7 without ties.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import measure, peer, table
from rankbook import metrics

N_QUERIES, N_ITEMS = 10_000, 120
# Many: now and then the allocator gives memory back, and a call pays for having it again.
REPEAT = 30


def five_measures(y: np.ndarray, scores: np.ndarray, qid: np.ndarray, ties: str) -> dict:
    """NDCG@10, AP, MRR, P@10 and ERR from one sort."""
    lists = metrics.rank_lists(y, scores, qid=qid, ties=ties)
    return {
        "ndcg@10": metrics.ndcg(lists, k=10),
        "map": metrics.average_precision(lists),
        "mrr": metrics.reciprocal_rank(lists),
        "precision@10": metrics.precision_at(lists, k=10),
        "err": metrics.err(lists),
    }


def _pytrec_eval_row(y: np.ndarray, scores: np.ndarray) -> tuple[str, float] | None:
    pytrec_eval = peer("pytrec_eval")
    if pytrec_eval is None:
        return None
    names = [f"d{i:03d}" for i in range(N_ITEMS)]
    truth = {f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(y.tolist())}
    run = {f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(scores.tolist())}
    wanted = {"ndcg_cut.10", "map", "recip_rank", "P.10"}
    evaluator = pytrec_eval.RelevanceEvaluator(truth, wanted)
    return "pytrec_eval (no ERR)", measure(lambda: evaluator.evaluate(run), repeat=2)


def _ranx_row(y: np.ndarray, scores: np.ndarray) -> tuple[str, float] | None:
    ranx = peer("ranx")
    if ranx is None:
        return None
    names = [f"d{i:03d}" for i in range(N_ITEMS)]
    # ranx wants at least one judged document a query, and judged ones only.
    truth = {
        f"q{q}": {d: g for d, g in zip(names, row, strict=True) if g}
        for q, row in enumerate(y.tolist())
    }
    run = {f"q{q}": dict(zip(names, row, strict=True)) for q, row in enumerate(scores.tolist())}
    truth, run = ranx.Qrels(truth), ranx.Run(run)
    wanted = ["ndcg_burges@10", "map", "mrr", "precision@10"]

    def evaluate() -> dict:
        return ranx.evaluate(truth, run, wanted, make_comparable=False, threads=1)

    evaluate()  # the first call compiles
    return "ranx, second call (no ERR)", measure(evaluate, repeat=2)


def heavy_ties(scores: np.ndarray) -> dict[str, np.ndarray]:
    """Coarser and coarser scores."""
    rare = np.random.default_rng(1).random(scores.shape) < 0.1
    return {
        "scores rounded to tenths": np.round(scores, 1),
        "to halves": np.round(2 * scores) / 2,
        "to integers": np.round(scores),
        "of three values": np.clip(np.round(scores), -1, 1),
        "of two values": (scores > 0).astype(float),
        "zero but for a tenth": np.where(rare, scores, 0),
    }


def err_of_one_group() -> list[tuple[str, float]]:
    """Seconds by the highest grade of the scale: the lower the chance to stop, the more places."""
    y = np.zeros(1_000_000, dtype=int)
    y[:10_000] = 1
    constant = np.zeros(y.size)
    return [
        (f"highest grade {g}", measure(lambda g=g: metrics.err(y, constant, max_grade=g)))
        for g in (1, 4, 10, 20)
    ]


def run() -> None:
    """Print the times of both tie rules, without and with ties, and of the peers."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, size=(N_QUERIES, N_ITEMS), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    scores = rng.normal(size=y.shape) + y / 2
    coarse = np.round(scores, 1)
    qid = np.repeat(np.arange(N_QUERIES), N_ITEMS)
    rows = [("one row-wise argsort", measure(lambda: np.argsort(scores, axis=1), repeat=REPEAT))]
    for label, values in (("distinct scores", scores), ("many ties", coarse)):
        for ties in ("order", "average"):
            seconds = measure(
                lambda v=values, t=ties: five_measures(y.ravel(), v.ravel(), qid, t), repeat=REPEAT
            )
            rows.append((f"rankbook, {label}, ties={ties!r}", seconds))
    title = f"NDCG@10, AP, MRR, P@10, ERR: {N_QUERIES:,} queries of {N_ITEMS} items"
    table(title, rows)
    for label, values in heavy_ties(scores).items():
        seconds = [
            (
                "one row-wise argsort of the same",
                measure(lambda v=values: np.argsort(v, 1), REPEAT),
            ),
            (
                "rankbook, ties='average'",
                measure(
                    lambda v=values: five_measures(y.ravel(), v.ravel(), qid, "average"),
                    repeat=REPEAT,
                ),
            ),
        ]
        table(f"The same, {label}", seconds)
    table("ERR of one group of 1,000,000 ties, 1 % relevant", err_of_one_group())
    peers = [row for row in (_pytrec_eval_row(y, scores), _ranx_row(y, scores)) if row]
    table("The same, peers", [rows[1], *peers])
