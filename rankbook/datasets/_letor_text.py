"""Lines ``grade qid:query index:value ...`` as arrays, a block of lines at a time.

The bytes of a block are cut into words at once, and the decimal numbers among them are read digit
by digit, all words together. A number of up to 15 digits is the quotient of two whole numbers that
floats hold exactly, and so is correctly rounded; the others go to `float`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

__all__ = ["LetorLines", "MalformedLine", "parse_lines"]

_COMMENT = re.compile(rb"#[^\n]*")
_NEWLINE, _COLON, _POINT, _MINUS, _PLUS, _ZERO = b"\n:.-+0"
_IS_WORD = np.ones(256, dtype=bool)
_IS_WORD[np.frombuffer(b" \t\r\n\f\v:", dtype=np.uint8)] = False
_EXACT_DIGITS = 15
_LONGEST = _EXACT_DIGITS + 2  # with a sign and a point
_POWERS = 10.0 ** np.arange(_LONGEST)
_LARGEST_INDEX = 2**31 - 1
_LARGEST_QUERY = 2**63 - 1


class MalformedLine(ValueError):
    """What is wrong with a line, counted from 0 within its block."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


@dataclass
class LetorLines:
    """The rows of a block: a grade, perhaps a query, and features in compressed rows."""

    line: np.ndarray  # (n,) of each row, counted from 0 within the block
    grade: np.ndarray  # (n,)
    query: np.ndarray | None  # (n,)
    n_entries: np.ndarray  # (n,) features named in each row
    index: np.ndarray  # as the file has them
    value: np.ndarray


@dataclass
class _Words:
    """Where the words of a block begin and end, and in which line."""

    text: np.ndarray  # the bytes
    start: np.ndarray
    end: np.ndarray
    line: np.ndarray

    def __getitem__(self, chosen: np.ndarray) -> _Words:
        return _Words(self.text, self.start[chosen], self.end[chosen], self.line[chosen])

    def word(self, i: int) -> str:
        return self.text[self.start[i] : self.end[i]].tobytes().decode(errors="replace")


def parse_lines(block: bytes) -> LetorLines | None:
    """Read whole lines; None if none holds a row. Raises `MalformedLine`."""
    words = _split(_COMMENT.sub(b"", block))
    _check_colons(words)
    if not words.start.size:
        return None
    first = np.flatnonzero(np.diff(words.line, prepend=-1))
    length = np.diff(first, append=words.start.size)
    place = np.arange(words.start.size) - np.repeat(first, length)
    _check_form(words, place)
    has_query = _has_queries(words, first, length)
    key = place % 2 == 1
    if has_query:
        key &= place > 1
    value = np.zeros_like(key)
    value[1:] = key[:-1]
    count = length // 2 - has_query
    return LetorLines(
        words.line[first],
        _numbers(words[first], "grade"),
        _integers(words[first + 2], "qid", _LARGEST_QUERY) if has_query else None,
        count,
        _checked_order(words[key], count),
        _numbers(words[value], "value"),
    )


def _split(block: bytes) -> _Words:
    text = np.frombuffer(block + b"\n", dtype=np.uint8)
    edges = np.flatnonzero(np.diff(_IS_WORD[text], prepend=False))
    start, end = edges[::2], edges[1::2]
    upto = np.searchsorted(start, np.flatnonzero(text == _NEWLINE))
    line = np.repeat(np.arange(upto.size), np.diff(upto, prepend=0))
    return _Words(text, start, end, line)


def _check_colons(words: _Words) -> None:
    """Two colons, or a colon before the first word, leave no word between them."""
    colons = np.flatnonzero(words.text == _COLON)
    named = words.end[words.text[words.end] == _COLON]
    if colons.size != named.size:
        lone = np.setdiff1d(colons, named)
        lines = np.count_nonzero(words.text[: lone[0]] == _NEWLINE)
        raise MalformedLine(int(lines), "a colon has no name before it")


def _check_form(words: _Words, place: np.ndarray) -> None:
    """A grade, then keys and values in turn, each key joined to its value by a colon."""
    is_key = words.text[words.end] == _COLON
    wrong = is_key != (place % 2 == 1)
    joined = words.text[words.start - 1] == _COLON  # of the first word: the last byte, a newline
    wrong |= joined != ((place > 0) & (place % 2 == 0))
    # A key whose value is missing ends its line.
    last = np.append(np.flatnonzero(np.diff(words.line)), words.line.size - 1)
    wrong[last] |= place[last] % 2 == 1
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise MalformedLine(
            int(words.line[i]),
            f"expected 'grade qid:query index:value ...', got {words.word(i)!r} where "
            + ("a grade" if place[i] == 0 else "index:value")
            + " belongs",
        )


def _has_queries(words: _Words, first: np.ndarray, length: np.ndarray) -> bool:
    """Whether rows name their query, all or none of them."""
    named = length > 1
    second = first[named] + 1
    begin = words.start[second]
    letters = words.text[begin[:, None] + np.arange(3)]  # a key of the file has two bytes after it
    named[named] = (words.end[second] - begin == 3) & (letters == list(b"qid")).all(axis=1)
    if named.any() and not named.all():
        i = int(np.flatnonzero(~named)[0])
        raise MalformedLine(
            int(words.line[first[i]]), "qid: is missing, though other lines have it"
        )
    return bool(named.any())


def _digits(words: _Words) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed mantissa, digits after the point, and which words are plain decimal numbers."""
    size = words.end - words.start
    mantissa, after = np.zeros(size.size), np.zeros(size.size, dtype=np.int64)
    plain = np.zeros(size.size, dtype=bool)
    order = np.argsort(size.astype(np.uint16), kind="stable")  # words of one length together
    ends = np.cumsum(np.bincount(size, minlength=_LONGEST + 1)[: _LONGEST + 1])
    for length in range(1, _LONGEST + 1):
        group = order[ends[length - 1] : ends[length]]
        if group.size:
            mantissa[group], after[group], plain[group] = _equally_long(
                words.text, words.start[group], length
            )
    return mantissa, after, plain


def _equally_long(
    text: np.ndarray, start: np.ndarray, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for words of one length, a column of their letters at a time."""
    mantissa = np.zeros(start.size)
    n_digits, after = np.zeros((2, start.size), dtype=np.int8)
    pointed = np.zeros(start.size, dtype=bool)
    head = text[start]
    signed = (head == _MINUS) | (head == _PLUS)
    plain = np.ones(start.size, dtype=bool)
    for column in range(length):
        byte = text[start + column]
        digit = byte - np.uint8(_ZERO)  # wraps around for what is below "0"
        is_digit = digit < 10
        is_point = byte == _POINT
        allowed = is_digit | (is_point & ~pointed)
        plain &= allowed | signed if column == 0 else allowed
        mantissa = np.where(is_digit, 10.0 * mantissa + digit, mantissa)
        pointed |= is_point
        n_digits += is_digit
        after += is_digit & pointed
    plain &= (n_digits > 0) & (n_digits <= _EXACT_DIGITS)
    return np.where(head == _MINUS, -mantissa, mantissa), after, plain


def _numbers(words: _Words, what: str) -> np.ndarray:
    mantissa, after, plain = _digits(words)
    values = mantissa / _POWERS[after]
    for i in np.flatnonzero(~plain).tolist():
        word = words.word(i)
        try:
            # Python reads 1_0 as ten, and the digits of every script.
            values[i] = float(word.replace("_", "?") if word.isascii() else "?")
        except ValueError:
            raise MalformedLine(
                int(words.line[i]), f"the {what} {word!r} is not a number"
            ) from None
    if not np.isfinite(values).all():
        i = int(np.flatnonzero(~np.isfinite(values))[0])
        raise MalformedLine(int(words.line[i]), f"the {what} {words.word(i)!r} is not finite")
    return values


def _integers(words: _Words, what: str, limit: int) -> np.ndarray:
    mantissa, after, plain = _digits(words)
    plain &= (after == 0) & ~np.signbit(mantissa) & (mantissa <= limit)
    values = np.where(plain, mantissa, 0.0).astype(np.int64)
    for i in np.flatnonzero(~plain).tolist():
        word = words.word(i)
        if not (word.isascii() and word.isdigit() and int(word) <= limit):
            raise MalformedLine(
                int(words.line[i]), f"the {what} {word!r} is not a whole number up to {limit}"
            )
        values[i] = int(word)
    return values


def _checked_order(words: _Words, count: np.ndarray) -> np.ndarray:
    """The indices of the features, which rise along a row."""
    index = _integers(words, "index", _LARGEST_INDEX)
    falls = np.diff(index) <= 0
    ends = np.cumsum(count)[:-1] - 1
    falls[ends[(ends >= 0) & (ends < falls.size)]] = False
    if falls.any():
        i = int(np.flatnonzero(falls)[0]) + 1
        raise MalformedLine(
            int(words.line[i]), f"index {index[i]} comes after {index[i - 1]}: they must rise"
        )
    return index
