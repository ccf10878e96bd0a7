"""The import rule, read off the syntax tree: what an answer, and all it calls, refers to."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rankbook.grading.runner import strip_magics

# Ways around the rule. Few honest answers need them: where a question forbids something, a human
# looks at a notebook that has one.
MODULES = {"builtins", "concurrent", "ctypes", "gc", "importlib", "imp", "inspect", "joblib"}
MODULES |= {"multiprocessing", "pkgutil", "runpy", "subprocess", "threading", "_thread"}
NAMES = {"__import__", "eval", "exec", "compile", "__builtins__", "globals"}
ATTRIBUTES = {"_getframe", "_current_frames", "setprofile", "settrace", "__subclasses__", "f_back"}
ATTRIBUTES |= {"meta_path", "tb_frame", "modules", "__globals__", "system", "popen"}


@dataclass
class Source:
    """What the cells of a notebook define and import."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    aliases: dict[str, set[str]] = field(default_factory=dict)
    stars: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)
    tricks: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)


def read_source(cells: Sequence[str]) -> Source:
    """Parse the cells; those that are not Python are kept apart."""
    source = Source()
    for cell in cells:
        text = strip_magics(cell)
        try:
            tree = ast.parse(text)
            nodes = list(ast.walk(tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            source.broken.append(cell)
            continue
        for node in nodes:
            _note_imports(node, source)
            _note_tricks(node, source)
        for statement in tree.body:
            for name in _defined(statement):
                source.definitions.setdefault(name, []).append(statement)
                if isinstance(statement, ast.FunctionDef):
                    source.texts[name] = ast.get_source_segment(text, statement) or ""
    return source


def _note_imports(node: ast.AST, source: Source) -> None:
    for name, dotted in _imported(node):
        if name == "*":
            source.stars.add(dotted)
        else:
            source.aliases.setdefault(name, set()).add(dotted)


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that an import binds, and what to."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
    elif isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            dotted = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
            yield ("*" if alias.name == "*" else alias.asname or alias.name), dotted


def _note_tricks(node: ast.AST, source: Source) -> None:
    if isinstance(node, ast.Name) and node.id in NAMES:
        source.tricks.add(node.id)
    elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
        source.tricks.add(node.attr)
    for _, dotted in _imported(node):
        if dotted.split(".")[0] in MODULES or dotted.split(".")[-1] in ATTRIBUTES:
            source.tricks.add(dotted)


def _defined(statement: ast.stmt) -> list[str]:
    """The names that a statement at the top of a cell may bind."""
    names = []
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
    return names


def uses(source: Source, function: str, forbidden: Sequence[str]) -> list[str]:
    """Return which of the forbidden names a function, or what it calls, refers to."""
    seen: set[str] = set()
    todo, used = [function], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for statement in source.definitions.get(name, ()):
            for node in ast.walk(statement):
                used |= set(_dotted(node, source))
                if isinstance(node, ast.Name):
                    todo.append(node.id)
    return [f for f in forbidden if any(u == f or u.startswith(f + ".") for u in used)]


def _dotted(node: ast.AST, source: Source) -> Iterator[str]:
    """What a node refers to, from the top of a package."""
    for _, dotted in _imported(node):
        yield dotted
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        roots = set(source.aliases.get(node.id, ()))
        if not roots and node.id not in source.definitions:
            roots = {node.id, *(f"{star}.{node.id}" for star in source.stars)}
        for root in roots:
            yield ".".join([root, *attributes])
