"""The class at a glance: how many points, which questions are hard, who wrote the same."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rankbook.grading import _files, _html
from rankbook.grading._checks import Checks
from rankbook.grading._records import Result

__all__ = ["discrimination", "report", "similar_answers"]

GRAM = 6
COMMON = 0.25
LEAST = 25


def report(
    results: Sequence[Result], checks: Checks, refused: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the class report, a page that holds everything."""
    sandboxed = all(result.sandboxed for result in results)
    n_open = sum(not result.is_complete for result in results)
    body = [
        f"<p>{len(results)} submissions, {_files.points(checks.possible)} points; "
        f"for {n_open} of them a human has to decide something.</p>",
        *_distribution(results, checks.possible),
        *_questions(results, checks),
        *_similar(results),
        *_flags(results),
    ]
    if refused:
        rows = [list(entry) for entry in refused]
        body.append(_html.table("Files that were refused", ["File", "Why"], rows, []))
    return _html.page(f"{checks.heading}: class report", body, sandboxed=sandboxed)


def _distribution(results: Sequence[Result], possible: float) -> list[str]:
    shares = [100 * result.earned / possible for result in results] if possible else []
    counts, edges = np.histogram(shares, bins=10, range=(0, 100))
    labels = [f"{low:.0f}-{high:.0f}" for low, high in zip(edges[:-1], edges[1:], strict=True)]
    told = ", ".join(f"{label}: {n}" for label, n in zip(labels, counts, strict=True))
    middle = f" The median is {np.median(shares):.0f} %." if shares else ""
    title = "Students by the share of all points they have so far, in per cent."
    return ["<h2>Distribution</h2>", _html.bars(title + middle, told, labels, counts.tolist())]


def _questions(results: Sequence[Result], checks: Checks) -> list[str]:
    """The share of points that each question gave, hardest first, and its discrimination."""
    rows = []
    for question in [*checks.questions, *checks.manual]:
        scores = _scores(results, question.id)
        known = scores[~np.isnan(scores)]
        share = 100 * known.mean() if known.size else np.nan
        rows.append((share, question, discrimination(results, question.id), known.size))
    rows.sort(key=lambda row: (np.isnan(row[0]), row[0]))
    lines = [
        [question.id, question.title, _number(share, 0), _number(value, 2), str(size)]
        for share, question, value, size in rows
    ]
    drawn = [(q.id, float(share)) for share, q, _, _ in rows if not np.isnan(share)]
    return [
        "<h2>Questions, the hardest first</h2>",
        _html.bars(
            "Mean share of the points of a question, in per cent.",
            ", ".join(f"{name}: {share:.0f}" for name, share in drawn),
            [name for name, _ in drawn],
            [round(share) for _, share in drawn],
        ),
        _html.table(
            "Difficulty and discrimination",
            ["Question", "Title", "Mean share, %", "Discrimination", "Decided"],
            lines,
            numbers=[2, 3, 4],
        ),
        "<p>Discrimination is the correlation of a question's points with those of all other "
        "questions. Near zero or below, the question does not tell who knows more: look at it.</p>",
    ]


def _scores(results: Sequence[Result], question: str) -> np.ndarray:
    found = []
    for result in results:
        outcome = next(o for o in result.outcomes if o.question == question)
        is_known = outcome.earned is not None and outcome.possible > 0
        found.append(outcome.earned / outcome.possible if is_known else np.nan)  # type: ignore[operator]
    return np.array(found, dtype=float)


def _number(value: float, digits: int) -> str:
    return "unknown" if np.isnan(value) else f"{value:.{digits}f}"


def discrimination(results: Sequence[Result], question: str) -> float:
    """Return the correlation of a question's points with those of all others; NaN if undefined.

    Students for whom the question is undecided are left out, and so are undecided questions in the
    sum of the others.
    """
    scores = _scores(results, question)
    rest = np.array(
        [sum(o.earned or 0.0 for o in r.outcomes if o.question != question) for r in results]
    )
    known = ~np.isnan(scores)
    if known.sum() < 3 or np.ptp(scores[known]) == 0 or np.ptp(rest[known]) == 0:
        return float("nan")
    return float(np.corrcoef(scores[known], rest[known])[0, 1])


def similar_answers(
    results: Sequence[Result], threshold: float = 0.6
) -> list[tuple[str, str, float]]:
    """Return pairs of students whose answers are nearly the same, the closest first.

    Answers are compared as sequences of tokens in which all names of the student's choice are one,
    so that renaming changes nothing. Sequences that a quarter of the class has (the code that was
    given, the obvious way) do not count.
    """
    prints = {r.student: _fingerprint("\n".join(r.answers.values())) for r in results}
    spread = Counter(gram for grams in prints.values() for gram in grams)
    limit = max(COMMON * len(results), 2)
    rare = {s: {g for g in grams if spread[g] <= limit} for s, grams in prints.items()}
    pairs = []
    for one, other in combinations(sorted(rare), 2):
        both = len(rare[one] & rare[other])
        if both >= LEAST and (share := both / len(rare[one] | rare[other])) >= threshold:
            pairs.append((one, other, share))
    return sorted(pairs, key=lambda pair: -pair[2])


def _fingerprint(source: str) -> set[tuple[str, ...]]:
    words = []
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
                words.append("name")
            elif token.type == tokenize.STRING:
                words.append("text")
            elif token.type not in skipped:
                words.append(token.string)
    except (tokenize.TokenError, SyntaxError):
        pass  # what came before it is compared
    return {tuple(words[i : i + GRAM]) for i in range(len(words) - GRAM + 1)}


def _similar(results: Sequence[Result]) -> list[str]:
    pairs = similar_answers(results)
    head = "<h2>Answers that are nearly the same</h2>"
    if not pairs:
        return [head, "<p>None.</p>"]
    who = {result.student: result.who for result in results}
    rows = [[who[one], who[other], f"{100 * share:.0f}"] for one, other, share in pairs[:100]]
    return [
        head,
        "<p>A reason to read both, and no more: people who work well alone also agree.</p>",
        _html.table("Pairs of students", ["One", "Other", "In common, %"], rows, numbers=[2]),
    ]


def _flags(results: Sequence[Result]) -> list[str]:
    rows = [[r.who, flag] for r in results for flag in r.flags]
    if not rows:
        return []
    return ["<h2>For a human to look at</h2>", _html.table("Flags", ["Student", "What"], rows, [])]
