"""TeX without the book's macros, for programs that do not know them."""

from __future__ import annotations

import re

Macros = dict[str, str | list]


def read_argument(tex: str, start: int) -> tuple[str, int]:
    """The argument that begins at `start`, without its braces, and the place after it."""
    while start < len(tex) and tex[start].isspace():
        start += 1
    if start == len(tex):
        raise ValueError(f"an argument is missing at the end of {tex!r}")
    if tex[start] == "\\":
        control = re.compile(r"\\(?:[A-Za-z]+|.)").match(tex, start)
        return control[0], control.end()
    if tex[start] != "{":
        return tex[start], start + 1
    depth, place = 0, start
    while place < len(tex):
        if tex[place] == "\\":
            place += 2
            continue
        depth += {"{": 1, "}": -1}.get(tex[place], 0)
        place += 1
        if depth == 0:
            return tex[start + 1 : place - 1], place
    raise ValueError(f"a brace is not closed in {tex!r}")


def expand(tex: str, macros: Macros) -> str:
    r"""`tex` with all `macros` replaced, those inside arguments and definitions too.

    Examples
    --------
    >>> expand(r"\P(A) = \E \ind{A}", {"P": "p", "E": "e", "ind": [r"1_{#1}", 1]})
    'p(A) = e 1_{A}'
    """
    if not macros:
        return tex
    names = re.compile(r"\\(" + "|".join(sorted(macros, key=len, reverse=True)) + r")(?![A-Za-z])")
    parts, place = [], 0
    while found := names.search(tex, place):
        if found.start() and tex[found.start() - 1] == "\\":  # the end of a line, then a letter
            parts.append(tex[place : found.start() + 1])
            place = found.start() + 1
            continue
        definition = macros[found[1]]
        body, count = (definition, 0) if isinstance(definition, str) else definition
        end = found.end()
        for number in range(1, count + 1):
            argument, end = read_argument(tex, end)
            body = body.replace(f"#{number}", argument)
        body = expand(body, macros)
        before = tex[place : found.start()]
        if before.rstrip().endswith(("_", "^")):
            body = f"{{{body}}}"
        parts += [before, body]
        place = end
    return "".join(parts) + tex[place:]
