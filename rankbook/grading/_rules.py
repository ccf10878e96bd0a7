"""The import rule, read off the syntax tree: what an answer, and all it calls, refers to."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rankbook.grading.runner import strip_magics

# Ways around the rule. Few honest answers need them: where a question forbids something, a human
# looks at a notebook that has one.
MODULES = {"builtins", "concurrent", "ctypes", "gc", "importlib", "imp", "inspect", "joblib"}
MODULES |= {"multiprocessing", "pkgutil", "runpy", "subprocess", "threading", "_thread"}
MODULES |= {"asyncio", "code", "codeop", "dask", "distributed", "marshal", "pickle", "pty", "pydoc"}
NAMES = {"__import__", "eval", "exec", "compile", "__builtins__", "globals", "locals", "vars"}
NAMES |= {"setattr"}
ATTRIBUTES = {"_getframe", "_current_frames", "setprofile", "settrace", "__subclasses__", "f_back"}
ATTRIBUTES |= {"meta_path", "tb_frame", "modules", "__globals__", "system", "popen", "__dict__"}
ATTRIBUTES |= {"__getattr__", "__getattribute__", "__setattr__", "__code__", "co_filename"}
ATTRIBUTES |= {"BaseConfigurator", "dictConfig", "fileConfig"}  # names in text are looked up
ATTRIBUTES |= {"CodeType", "FunctionType", "fork", "forkpty", "posix_spawn", "posix_spawnp"}
ATTRIBUTES |= {f"{how}{form}" for how in ("exec", "spawn") for form in ("l", "le", "lp", "lpe")}
ATTRIBUTES |= {f"{how}{form}" for how in ("exec", "spawn") for form in ("v", "ve", "vp", "vpe")}
ASKS = {"getattr", "attrgetter", "methodcaller"}  # their text names an attribute
FILLS = {"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault"}
FILLS |= {"__setitem__", "__iadd__", "__ior__"}
BUILTINS = set(dir(builtins))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Statement:
    """A statement at the top of a cell, or a part of one that hands something on.

    `binds` are the names that it binds at the top or fills there, `takes` those that it takes from
    there, `reads` those that it takes when the cell runs. A function's own variables are none of
    them. Where that cannot be decided, all names are all of them. Among `binds` and `follows`, what
    is to be looked at besides, "f()" stands for the arguments of f, "b.()" for those of methods
    that fill b, "b.f()" for those of any method of b.
    """

    tree: ast.AST
    binds: set[str]
    takes: set[str]
    reads: set[str] = field(default_factory=set)
    follows: set[str] = field(default_factory=set)


@dataclass
class Source:
    """What the cells of a notebook define and import."""

    definitions: dict[str, list[Statement]] = field(default_factory=dict)
    aliases: dict[str, set[str]] = field(default_factory=dict)
    stars: set[str] = field(default_factory=set)
    early: set[str] = field(default_factory=set)  # names that were read before they were bound
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
        for node in nodes:
            _note_private(node, source)
        for part in tree.body:
            statement = _statement(part)
            source.early |= statement.reads - set(source.definitions)
            for each in (statement, *_handed_on(statement)):
                for name in each.binds:
                    source.definitions.setdefault(name, []).append(each)
            if isinstance(part, ast.FunctionDef):
                source.texts[part.name] = ast.get_source_segment(text, part) or ""
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
    elif isinstance(node, ast.MatchClass):
        source.tricks |= ATTRIBUTES & set(node.kwd_attrs)
    elif isinstance(node, ast.Call) and _last(node.func) in ASKS:
        names = node.args[1:2] if _last(node.func) == "getattr" else node.args
        for name in names:
            if not isinstance(name, ast.Constant):
                source.tricks.add(f"{_last(node.func)} with a computed name")
            elif ATTRIBUTES & set(str(name.value).split(".")):
                source.tricks.add(str(name.value))
    for _, dotted in _imported(node):
        if dotted.split(".")[0] in MODULES or dotted.split(".")[-1] in ATTRIBUTES:
            source.tricks.add(dotted)


def _last(node: ast.AST) -> str:
    """The last name of a chain of attributes."""
    return getattr(node, "attr", getattr(node, "id", ""))


def _note_private(node: ast.AST, source: Source) -> None:
    """A package's private parts, which are full of what it imports from others."""
    found = [dotted for _, dotted in _imported(node)]
    if isinstance(node, ast.Attribute) and _root(node) in source.aliases:
        found.append(f"{_root(node)}.{node.attr}")
    for dotted in found:
        parts = dotted.split(".")
        if dotted != "os._exit" and any(
            part.startswith("_") and not part.startswith("__") for part in parts
        ):
            source.tricks.add(dotted)


def _statement(tree: ast.stmt) -> Statement:
    if isinstance(tree, (ast.Import, ast.ImportFrom)):
        return Statement(tree, set(), set())
    try:
        top = symtable.symtable(ast.unparse(tree), "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        names = set(_all_names(tree))
        return Statement(tree, names, names, names)
    found = Statement(tree, set(), set())
    augmented = [node.target for node in ast.walk(tree) if isinstance(node, ast.AugAssign)]
    added = {target.id for target in augmented if isinstance(target, ast.Name)}
    todo = [top]
    while todo:
        scope = todo.pop()
        todo += scope.get_children()
        is_top = scope is top
        runs = is_top or not isinstance(tree, FUNCTIONS)
        for symbol in scope.get_symbols():
            name = symbol.get_name()
            is_taken = symbol.is_global() or is_top
            if scope.get_type() == "class" and not symbol.is_free():
                is_taken |= symbol.is_referenced() or name in added
            if is_taken or symbol.is_imported():
                found.takes.add(name)
            if is_taken and runs and symbol.is_referenced():
                found.reads.add(name)
            # What := binds in a comprehension is declared global from Python 3.12 on, without more.
            if symbol.is_declared_global() or (is_top and symbol.is_assigned()):
                found.binds.add(name)
                if not is_top:
                    found.follows |= {f"{name}()" for name in _functions(tree)}
    return found


def _made(statement: Statement, source: Source) -> set[str]:
    """The calls of what a function or class of the notebook made, which may keep arguments."""
    tree = statement.tree
    if isinstance(tree, ast.Assign) and isinstance(tree.value, ast.Call):
        maker = _root(tree.value.func)
        if maker in source.definitions and maker not in source.aliases:
            return {f"{name}{of}()" for name in statement.binds for of in ("", ".f")}
    return set()


def _all_names(tree: ast.AST) -> Iterator[str]:
    """All that may be a name, whatever binds or takes it."""
    for node in ast.walk(tree):
        for key in ("id", "name", "arg", "asname", "rest"):
            name = getattr(node, key, None)
            if isinstance(name, str):
                yield name


def _functions(tree: ast.AST) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}


def _handed_on(statement: Statement) -> Iterator[Statement]:
    """What a statement puts into items and attributes, and calls functions and methods with."""
    takes = statement.takes
    follows = {f"{name}()" for name in statement.binds | _functions(statement.tree)}
    for node in ast.walk(statement.tree):
        for target, tree in _stores(node):
            for part in ast.walk(target):
                if not isinstance(part, (ast.Attribute, ast.Subscript)):
                    continue
                if isinstance(part.ctx, ast.Store) and _root(part) in takes:
                    yield Statement(tree, {_root(part)}, takes, follows=follows)
        called = node.decorator_list if isinstance(node, FUNCTIONS) else []
        for function in [node.func] if isinstance(node, ast.Call) else called:
            root, keys = _root(function), set()
            if isinstance(function, ast.Name):
                keys.add(f"{root}()")
            elif isinstance(function, ast.Attribute):
                keys |= {f"{function.attr}()", f"{root}.f()"}
                if root in takes and function.attr in FILLS:
                    keys.add(f"{root}.()")
            yield Statement(node, keys, takes, follows=follows)


def _stores(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Where a node stores, and the part of it that says what."""
    if isinstance(node, ast.Assign):
        yield from ((target, node) for target in node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.comprehension)):
        yield node.target, node
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield node.optional_vars, node


def uses(source: Source, function: str, forbidden: Sequence[str]) -> list[str]:
    """Return which of the forbidden names a function, or what it calls, refers to."""
    seen: set[str] = set()
    todo, used, passed, exact = [function], set(), set(), set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.isidentifier() and name not in source.aliases:
            todo.append(f"{name}.()")
        for statement in source.definitions.get(name, ()):
            todo += statement.follows | _made(statement, source)
            nodes = list(ast.walk(statement.tree))
            inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
            for node in nodes:
                root = _root(node)
                # Python writes a name with two underscores otherwise in a class.
                if root and root not in statement.takes and not root.startswith("__"):
                    continue
                found = set(_dotted(node, source))
                used |= found
                if id(node) not in inner and isinstance(getattr(node, "ctx", None), ast.Load):
                    passed |= found
                if isinstance(node, ast.Name):
                    todo.append(node.id)
                    if node.id in BUILTINS:  # few modules have these, and a star may bring them
                        exact |= {f"{star}.{node.id}" for star in source.stars}
    # A package that is passed on, as in f(scipy), may be asked for any of its parts.
    return [
        f
        for f in forbidden
        if f in exact
        or any(u == f or u.startswith(f + ".") for u in used)
        or any(f.startswith(u + ".") for u in passed)
    ]


def _root(node: ast.AST) -> str:
    """The name that a chain of attributes and items starts with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


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
        if not roots and (node.id not in source.definitions or node.id in source.early):
            roots = {node.id}
            if node.id not in BUILTINS:
                roots |= {f"{star}.{node.id}" for star in source.stars}
        for root in roots:
            yield ".".join([root, *attributes])
