"""Every public object says what it does, takes and returns, and shows it."""

import dataclasses
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import rankbook

# https://numpydoc.readthedocs.io/en/latest/validation.html
RULES = {
    "GL01": "the summary starts on a line of its own or right after the quotes",
    "GL03": "double blank lines",
    "GL06": "an unknown section",
    "GL07": "sections in the wrong order",
    "GL08": "no docstring",
    "SS01": "no summary",
    "SS03": "the summary does not end with a full stop",
    "PR01": "parameters not documented",
    "PR02": "parameters documented that do not exist",
    "PR03": "parameters in the wrong order",
    "PR07": "a parameter without description",
    "PR10": "no space before the colon",
    "RT03": "a return value without description",
}
IGNORED = {"GL01"}


def public_objects():
    seen = {}
    for info in pkgutil.iter_modules(rankbook.__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"rankbook.{info.name}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value):
                for inner in getattr(value, "__all__", ()):
                    seen[f"{value.__name__}.{inner}"] = getattr(value, inner)
            elif callable(value):
                seen[f"{module.__name__}.{name}"] = value
    return seen


OBJECTS = public_objects()


def own_methods(cls):
    for name, value in vars(cls).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            yield name, value


def is_record(value):
    """What a function hands back, or wants, rather than what a reader calls."""
    return inspect.isclass(value) and (
        dataclasses.is_dataclass(value)
        or issubclass(value, tuple)
        or inspect.isabstract(value)
        or getattr(value, "_is_protocol", False)
    )


CALLED = [name for name, value in OBJECTS.items() if not is_record(value)]
RECORDS = [name for name, value in OBJECTS.items() if is_record(value)]


@pytest.mark.parametrize("name", CALLED)
def test_docstring(name):
    found = validate(name)["errors"]
    wrong = [(code, text) for code, text in found if code in RULES and code not in IGNORED]
    assert not wrong, wrong


@pytest.mark.parametrize("name", RECORDS)
def test_records_explain_their_fields(name):
    value = OBJECTS[name]
    text = NumpyDocString(inspect.getdoc(value))
    assert text["Summary"]
    told = {p.name for p in text["Parameters"]} | {p.name for p in text["Attributes"]}
    told = {part.strip() for names in told for part in names.split(",")}
    fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    fields = fields or list(getattr(value, "_fields", ()))
    assert set(fields) <= told, f"not explained: {sorted(set(fields) - told)}"


@pytest.mark.parametrize("name", CALLED)
def test_sections(name):
    value = OBJECTS[name]
    text = NumpyDocString(inspect.getdoc(value))
    if inspect.isclass(value) and issubclass(value, Exception):
        return
    assert text["Examples"], "no Examples section"
    assert ">>>" in "\n".join(text["Examples"])
    if inspect.isclass(value):
        wanted = [p for p in inspect.signature(value).parameters if p not in ("args", "kwargs")]
        assert not wanted or text["Parameters"], "no Parameters section"
    else:
        if inspect.signature(value).parameters:
            assert text["Parameters"], "no Parameters section"
        if inspect.signature(value).return_annotation not in (None, "None"):
            assert text["Returns"] or text["Yields"], "no Returns section"


@pytest.mark.parametrize("name", [n for n, v in OBJECTS.items() if inspect.isclass(v)])
def test_methods_have_a_docstring(name):
    for method, function in own_methods(OBJECTS[name]):
        assert inspect.getdoc(function), f"{name}.{method} has no docstring"


@pytest.mark.parametrize("name", OBJECTS)
def test_type_hints(name):
    value = OBJECTS[name]
    functions = [value] if not inspect.isclass(value) else [f for _, f in own_methods(value)]
    for function in functions:
        signature = inspect.signature(function)
        bare = [
            p.name
            for p in signature.parameters.values()
            if p.name not in ("self", "cls") and p.annotation is inspect.Parameter.empty
        ]
        assert not bare, f"{function.__qualname__}: no type hint on {bare}"
        assert signature.return_annotation is not inspect.Signature.empty, function.__qualname__
