"""Parts of docstrings that several classes share, written once."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent, indent
from typing import TypeVar

__all__ = ["documented"]

T = TypeVar("T")


def documented(**parts: str) -> Callable[[T], T]:
    """Decorate a class or function: a line ``%(name)s`` of its docstring becomes the part.

    The docstring is whole once the module is imported, so that ``help``, doctest, numpydoc and
    the pages all see it.

    Parameters
    ----------
    **parts : str
        Texts by name, which take the indentation of the line that names them.

    Returns
    -------
    callable
        The decorator.

    Raises
    ------
    ValueError
        If a part is not named once, or a name has no part.
    """

    def fill(thing: T) -> T:
        doc = thing.__doc__
        if doc is None:  # python -OO
            return thing
        named = re.findall(r"^ *%\((\w+)\)s$", doc, re.MULTILINE)
        if sorted(named) != sorted(parts):
            raise ValueError(f"the docstring names {sorted(named)}, the parts are {sorted(parts)}")
        thing.__doc__ = re.sub(
            r"^( *)%\((\w+)\)s$",
            lambda found: indent(dedent(parts[found[2]]).strip("\n"), found[1]),
            doc,
            flags=re.MULTILINE,
        )
        return thing

    return fill
