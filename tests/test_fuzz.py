"""Hostile input to every public name: a right answer or an error that names an argument.

One argument of a good call is replaced by something bad. Then, within five seconds, there is a
result, or a `ValueError`, a `TypeError` or an exception of the package whose message names an
argument; no warning but the package's own and scikit-learn's on convergence; and no argument is
changed. Metrics return finite numbers. `RANKBOOK_FUZZ=random` draws new cases, for a schedule.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import signal
import tempfile
import warnings
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import matplotlib.figure
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.linear_model import LinearRegression

import rankbook
from rankbook import exceptions, losses, population, surrogates
from rankbook.datasets import _files, make_latent_utility, make_linear_model
from rankbook.models import blockwise
from rankbook.solvers import design, equal_items, weak_learners
from tests.test_docstrings import OBJECTS, is_record

matplotlib.use("Agg")

IS_RANDOM = os.environ.get("RANKBOOK_FUZZ") == "random"
EXAMPLES = 400 if IS_RANDOM else 15
SECONDS = 5.0
ALLOWED_WARNINGS = (ConvergenceWarning, DataConversionWarning) + tuple(
    value
    for value in vars(exceptions).values()
    if inspect.isclass(value) and issubclass(value, Warning)
)
ALLOWED_ERRORS = (ValueError, TypeError) + tuple(
    value
    for value in vars(exceptions).values()
    if inspect.isclass(value) and issubclass(value, Exception) and not issubclass(value, Warning)
)

Y = np.array([0, 1, 2, 0, 1, 2, 1, 0])
SCORES = np.array([0.1, 0.7, 0.9, 0.4, 0.2, 0.8, 0.5, 0.4])
X = np.column_stack([SCORES + [0, 0, 1, 0, 2, 0, 0, 1], np.arange(8.0) % 3])
A = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 4.0], [1.0, 0.0, 0.0]])
POSTERIOR = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.6, 0.3]])

# A good value for every parameter, by its name; what is not here stays at its default.
VALUES = {
    "y": Y,
    "scores": SCORES,
    "sample_weight": np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 2.0, 1.0]),
    "qid": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
    "labels": [0, 1, 2],
    "costs": np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]),
    "group": [3, 5],
    "X": X,
    "K": 3,
    "kind": "absolute",
    "counts": [3, 2, 4],
    "scale": [0.0, 1.0, 3.0],
    "weights": [1.0, 2.0, 1.0],
    "thresholds": [-0.5, 0.5],
    "posterior": POSTERIOR,
    "marginal": [0.2, 0.3, 0.5],
    "gain": np.array([0.0, 1.0, 3.0]),
    "a": A,
    "loss": "logistic",
    "probabilities": [0.5, 0.5],
    "means": [0.0, 1.0, 2.0],
    "sds": [1.0, 1.0, 2.0],
    "priors": [0.3, 0.3, 0.4],
    "p": 0.4,
    "n": 5,
    "epsilon": 0.3,
    "risk": 0.2,
    "regret": 0.1,
    "false_negative": 0.1,
    "false_positive": 0.2,
    "prior": 0.4,
    "bayes_risk": 0.1,
    "nu": 1.0,
    "s": np.linspace(-2, 2, 5),
    "u": np.linspace(-1, 0, 5),
    "width": 0.5,
    "n_iter": 5,
    "n_features": 2,
    "n_rules": 5,
    "name": "hinge",
    "levels": [0.0, 0.5],
    "pair": (0, 1),
    "rows": [[-1.0, -1.0], [-2.0, -1.0], [3.0, 1.0]],
    "residuals": SCORES - 0.5,
    "x": SCORES,
    "n_bins": 2,
    "k": 3,
    "predicted": np.array([0.0, 1.5, 2.0, 1.0, 0.0, 2.0, 1.0, 0.5]),
    "boundary_errors": [0.1, -0.2],
    "weak": "stump",
    "n_queries": 4,
    "n_items": 3,
}
LETOR = Path(tempfile.mkdtemp()) / "letor.txt"
LETOR.write_text("1 qid:1 1:2\n0 qid:1 2:0.5\n")
DEFAULT = object()  # stands for the default of a parameter
OVERRIDES = {
    "rankbook.exercises.check": {"id": "1.1", "answer": 0.5},
    "rankbook.exercises.dataset": {"id": "5.5", "student": "ada"},
    "rankbook.exercises.student_rng": {"question_id": "P1.3", "student": "ada"},
    "rankbook.graphs.edge_loss": {"scores": [0.1, 0.7, 0.9]},
    "rankbook.graphs.is_optimal": {"scores": [0.1, 0.7, 0.9]},
    "rankbook.graphs.expected_weights": {"graphs": [np.triu(A), np.triu(A, 1)]},
    "rankbook.graphs.PreferenceGraph": {"weights": np.triu(A, 1)},
    "rankbook.metrics.auc": {"y": Y % 2, "labels": [0, 1]},
    "rankbook.metrics.linear_rank_statistic": {"gain": np.sqrt, "discount": lambda i, n: 1.0 / i},
    "rankbook.metrics.dcg": {"gain": "linear"},
    "rankbook.metrics.ndcg": {"gain": "exponential"},
    "rankbook.metrics.p_norm_push": {"p": 2.0},
    "rankbook.metrics.scorer": {"name": "ndcg"},
    "rankbook.models.CumulativeLink": {"scale": DEFAULT},
    "rankbook.models.blockwise.check_label_costs": {"label_costs": np.abs(np.eye(3) - 1.0)},
    "rankbook.models.blockwise.is_least_squares": {"base": LinearRegression()},
    "rankbook.models.UnivariateRanker": {"y": Y % 2, "labels": None},
    "rankbook.plots.draw_graph": {"weights": A, "labels": ["a", "b", "c"]},
    "rankbook.plots.simplex_axes": {"labels": ("1", "2", "3")},
    "rankbook.plots.simplex_contour": {"function": lambda posterior: posterior[..., 0], "n": 9},
    "rankbook.solvers.PairSums": {"loss": "logistic"},
    "rankbook.studies.load": {"name": "feedback_arc"},
    "rankbook.studies.run": {"name": None},  # refused: a study takes minutes
    "rankbook.surrogates.find_counterexample": {"nodes": 3, "max_total": 4},
    "rankbook.datasets.load_letor": {"path": LETOR},
    "rankbook.datasets.load_movielens": {"progress": False},
    "rankbook.datasets.load_uci": {"name": "vote", "progress": False},
    "rankbook.datasets.make_latent_utility": {"coef": [1.0, -2.0], "scale_coef": [0.0, 0.5]},
    "rankbook.datasets.make_tripartite_normal": {"n_samples": [3, 2, 4], "priors": None},
    "rankbook.datasets.LatentUtilityModel.posterior": {"offset": SCORES},
}
# These have no arguments to spoil one by one.
LEFT_OUT = {
    "rankbook.exercises.table": "takes nothing",
    "rankbook.plots.use_style": "takes nothing",
    "rankbook.studies.names": "takes nothing",
    # Their hostile input is blocks: tests/distributed has its own.
    "rankbook.distributed.fit": "takes Dask arrays",
    "rankbook.distributed.mean_by_query": "takes Dask arrays",
    "rankbook.distributed.rechunk_by_query": "takes Dask arrays",
    # Their hostile input is files and notebooks: tests/grading has its own.
    "rankbook.grading.grade_all": "takes submissions",
    "rankbook.grading.grade_submission": "takes submissions",
    "rankbook.grading.load_checks": "takes a file of the instructor's",
    "rankbook.grading.probe": "takes nothing",
    "rankbook.grading.read_submissions": "takes files",
}
# Names that stand in modules of their own alone: parts of what the names above do. Nothing hostile
# reaches them, for the reason given; the arrays they are handed may still be anyone's.
_CHECKED = "called by the estimators alone, with arrays and objects that these have checked"
_STUDY = "a step of a study, which takes minutes and sets its arguments itself"
_GRADED = "takes what grade_all returns; hostile submissions are met before, in tests/grading"
INSIDE = {
    "rankbook.grading.batch": _GRADED,
    "rankbook.grading.feedback": _GRADED,
    "rankbook.grading.grade": _GRADED,
    "rankbook.grading.gradebook": _GRADED,
    "rankbook.grading.report": _GRADED,
    "rankbook.grading.sandbox": "starts a process for a submission: tests/grading has its own",
    "rankbook.models.blockwise": _CHECKED,
    "rankbook.solvers.blocks": _CHECKED,
    "rankbook.solvers.boosting": _CHECKED,
    "rankbook.solvers.box_program": _CHECKED,
    "rankbook.solvers.design": _CHECKED,
    "rankbook.solvers.equal_items": _CHECKED,
    "rankbook.solvers.interior_point": _CHECKED,
    "rankbook.solvers.kernels": _CHECKED,
    "rankbook.solvers.low_rank": _CHECKED,
    "rankbook.solvers.quasi_newton": _CHECKED,
    "rankbook.solvers.weak_learners": _CHECKED,
    "rankbook.studies.feedback_arc": _STUDY,
    "rankbook.studies.learning_curves": _STUDY,
    "rankbook.studies.learning_to_rank": _STUDY,
    "rankbook.studies.movielens": _STUDY,
    "rankbook.studies.pair_scaling": _STUDY,
    "rankbook.studies.past_one_machine": _STUDY,
    "rankbook.studies.tripartite": _STUDY,
}


def inner_objects() -> dict:
    """Public callables of public modules that no module above them names."""
    above = {id(value) for value in OBJECTS.values()}
    found = {}
    for info in pkgutil.walk_packages(rankbook.__path__, "rankbook."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not callable(value) or id(value) in above or is_record(value):
                continue
            if not (inspect.isclass(value) and issubclass(value, BaseException)):
                above.add(id(value))
                found[f"{info.name}.{name}"] = value
    return found


def targets() -> dict:
    """What is fuzzed: every public callable that is not a record, and some of their methods."""
    found = {name: value for name, value in OBJECTS.items() if not is_record(value)}
    found = {
        name: value
        for name, value in found.items()
        if not (inspect.isclass(value) and issubclass(value, BaseException))
    }
    found["rankbook.datasets.NoisyThresholdModel.posterior"] = make_linear_model(
        n_features=2, rng=0
    ).posterior
    latent = make_latent_utility(8, 2, scale_coef=[0.0, 0.5], rng=0).model
    for method in ("posterior", "sample"):
        found[f"rankbook.datasets.LatentUtilityModel.{method}"] = getattr(latent, method)
    finite = population.FinitePopulation(POSTERIOR)
    for method in ("risk", "bayes_risk", "bayes_scores", "surrogate_risk", "sample"):
        found[f"rankbook.population.FinitePopulation.{method}"] = getattr(finite, method)
    normal = population.NormalMixture([0.0, 1.0, 2.0])
    for method in ("posterior", "density", "bayes_risk", "sample"):
        found[f"rankbook.population.NormalMixture.{method}"] = getattr(normal, method)
    for name, value in list(found.items()):
        if name.startswith("rankbook.losses.") and inspect.isclass(value):
            del found[name]
            if not inspect.isabstract(value):
                loss = value(0.5) if value is losses.SmoothedHinge else value()
                for method in ("__call__", "derivative", "second_derivative", "conjugate"):
                    found[f"{name}.{method}"] = getattr(loss, method)
    found["rankbook.models.blockwise.is_least_squares"] = blockwise.is_least_squares
    found["rankbook.models.blockwise.check_label_costs"] = lambda label_costs: (
        blockwise.check_label_costs(label_costs, 3)
    )
    found["rankbook.solvers.weak_learners.family"] = lambda weak: weak_learners.family(weak)
    found["rankbook.models.anova"] = lambda models, others: rankbook.models.anova(models, others)
    for name in () if FRAME is not None else ("design_matrix", "fit_formula"):
        del found[f"rankbook.models.{name}"]
    return {name: value for name, value in found.items() if name not in LEFT_OUT}


def frame():
    """Data for formulas; None without the packages that they need."""
    if find_spec("formulaic") is None:
        return None
    import pandas as pd

    return pd.DataFrame({"label": np.tile(Y, 3), "x": np.sin(np.arange(24.0))})


FRAME = frame()
TARGETS = targets()
METHOD_VALUES = {
    "rankbook.population.FinitePopulation.": {"scores": [0.1, 0.7, 0.9]},
    "rankbook.population.NormalMixture.": {"x": [0.0, 1.0], "scores": [0.1, 0.7, 0.9]},
    "rankbook.surrogates.": {
        "population": population.FinitePopulation(POSTERIOR),
        "loss": "hinge",
    },
}


def good_arguments(name: str) -> dict:
    """Keyword arguments of a call that works."""
    target = TARGETS[name]
    known = dict(VALUES)
    for prefix, values in METHOD_VALUES.items():
        if name.startswith(prefix):
            known |= values
    if name == "rankbook.surrogates.verify":
        known["result"] = surrogates.minimize_edgewise(A, "hinge")
    if name.startswith("rankbook.plots.simplex"):
        known["ax"] = matplotlib.figure.Figure().subplots()
    if name == "rankbook.models.anova":
        x, y = np.sin(np.arange(24.0))[:, None], np.tile(Y, 3)
        known["models"] = rankbook.models.CumulativeLink().fit(None, y)
        known["others"] = rankbook.models.CumulativeLink().fit(x, y)
    if name.endswith(("design_matrix", "fit_formula")):
        known |= {"data": FRAME, "formula": "label ~ x", "scale": DEFAULT, "sample_weight": DEFAULT}
    if name.endswith("design_matrix"):
        known["model"] = rankbook.models.fit_formula("label ~ x", FRAME)
    if name.endswith("draw_residuals"):
        known["axes"] = matplotlib.figure.Figure().subplots(1, 2)
    if name.startswith("rankbook.solvers.") and name.endswith("minimize"):
        known |= {"objective": Parabola(), "x0": np.zeros(2)}
    known |= OVERRIDES.get(name, {})
    wanted = dict(inspect.signature(target).parameters)
    if hasattr(target, "fit"):
        wanted |= dict(inspect.signature(target.fit).parameters)
    arguments = {}
    for key, parameter in wanted.items():
        if key == "self" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        arguments[key] = known.get(key, DEFAULT)
        if key == "group" and "qid" in wanted:  # the same in another way
            arguments[key] = DEFAULT
        if arguments[key] is DEFAULT:
            arguments[key] = parameter.default
        if arguments[key] is parameter.empty:
            raise LookupError(f"give a good value of {key} for {name} in VALUES or OVERRIDES")
    return arguments


class Parabola:
    """A smooth objective for the Newton solver."""

    def value(self, x):
        return float(((x - 1) ** 2).sum())

    def value_gradient_hessian(self, x):
        return self.value(x), 2 * (x - 1), 2 * np.eye(x.size)


def call(name: str, arguments: dict):
    target = TARGETS[name]
    if not hasattr(target, "fit"):
        return target(**arguments)
    own = inspect.signature(target).parameters
    fitting = inspect.signature(target.fit).parameters
    estimator = target(**{k: v for k, v in arguments.items() if k in own})
    estimator.fit(**{k: v for k, v in arguments.items() if k in fitting})
    score = getattr(estimator, "decision_function", None) or estimator.predict
    return score(arguments["X"])


MANY = 1500
BAD = [
    None,
    "",
    "nonsense",
    b"bytes",
    True,
    0,
    -1,
    2.5,
    2**70,
    MANY,
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    5e-324,
    1j,
    Fraction(1, 3),
    Decimal("NaN"),
    object(),
    {},
    {"a": 1},
    set(),
    [],
    [[]],
    [None, 1],
    ["a", "b", "c"],
    [1, "a", None],
    [[1, 2], [3]],
    [1j, 2j],
    [2**70, 1, 0],
    np.zeros(0),
    np.zeros((0, 0)),
    np.zeros((2, 2, 2)),
    np.zeros(8),
    np.ones(3),
    np.full((3, 3), np.nan),
    np.array([np.nan, 1.0, 2.0]),
    np.array(3.0),
    np.array([None] * 8),
    np.array(["2020", "NaT"], "M8[Y]"),
    np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
    -np.ones((3, 3)),
    np.eye(3) * 1e300,
    np.eye(3) * 1e-300,
    lambda *args: None,
]
CHANGES = {
    "nan": lambda v: _with(v, np.nan),
    "inf": lambda v: _with(v, np.inf),
    "negative": lambda v: _with(v, -1.0),
    "huge": lambda v: np.asarray(v, float) * 1e300,
    "tiny": lambda v: np.asarray(v, float) * 1e-300,
    "complex": lambda v: np.asarray(v) * 1j,
    "object": lambda v: np.asarray(v, dtype=object),
    "none inside": lambda v: _with(np.asarray(v, dtype=object), None),
    "text": lambda v: np.asarray(v).astype(str),
    "masked": lambda v: np.ma.masked_array(v, mask=np.arange(np.size(v)).reshape(np.shape(v)) == 0),
    "shorter": lambda v: np.asarray(v)[:-1],
    "one": lambda v: np.asarray(v)[:1],
    "column": lambda v: np.asarray(v)[..., None],
    "row": lambda v: np.asarray(v)[None],
    "transposed": lambda v: np.asarray(v).T,
    "constant": lambda v: np.zeros_like(np.asarray(v, float)),
    "read-only": lambda v: _read_only(v),
    "single": lambda v: np.asarray(v, dtype=np.float32),
    "list": lambda v: np.asarray(v).tolist(),
}


def _with(values, entry):
    array = np.array(values, dtype=object if entry is None else float)
    array[(0,) * array.ndim] = entry
    return array


def _read_only(values):
    array = np.array(values)
    array.flags.writeable = False
    return array


@st.composite
def bad_calls(draw, name):
    """A good call with one argument spoilt."""
    arguments = good_arguments(name)
    key = draw(st.sampled_from(sorted(arguments)))
    good = arguments[key]
    if np.ndim(good) and draw(st.booleans()):
        change = draw(st.sampled_from(sorted(CHANGES)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arguments[key] = CHANGES[change](good)
        except (TypeError, ValueError, IndexError):
            arguments[key] = None
    else:
        arguments[key] = draw(st.sampled_from(range(len(BAD))).map(BAD.__getitem__))
        if key == "n_iter" and arguments[key] is MANY:  # honest work
            arguments[key] = None
    return arguments, key


def fingerprint(arguments: dict) -> dict:
    """The bytes of everything that can be written down."""
    prints = {}
    for key, value in arguments.items():
        if key in ("ax", "axes"):  # there to be drawn on
            continue
        if isinstance(value, np.ma.MaskedArray):  # its repr alone sets a fill value
            value = (value.data, value.mask)
        try:
            prints[key] = pickle.dumps(value)
        except Exception:  # noqa: BLE001 - functions and the like cannot be changed
            continue
    return prints


def names_an_argument(name: str, arguments: dict, error: Exception) -> bool:
    """Whether a message speaks of an argument, or is scikit-learn's on an array."""
    words = set(re.findall(r"\w+", str(error)))
    if words & (set(arguments) - {"a"}):
        return True
    if "a" in arguments and re.search(r"(^|[ (])a( must|\[| has| and|$)", str(error)):
        return True  # "a" is an argument here, not the article
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and "sklearn" in trace.tb_frame.f_code.co_filename


class TooLong(BaseException):
    """Not an `Exception`, so that nothing on the way swallows it."""


@contextmanager
def stopped_after(seconds: float):
    """Interrupt a call after so much CPU time, whatever else the machine does."""

    def stop(*_):
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TooLong:
        pytest.fail(f"still running after {seconds} s")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    def refuse(url, timeout):
        raise OSError("no network in tests")

    monkeypatch.setattr(_files.urllib.request, "urlopen", refuse)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_every_public_name_has_a_good_call():
    missing = []
    for name in TARGETS:
        try:
            good_arguments(name)
        except LookupError as error:
            missing.append(str(error))
    assert not missing, "\n".join(missing)
    listed = set()
    for info in pkgutil.iter_modules(rankbook.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"rankbook.{info.name}")
            listed |= {f"{module.__name__}.{n}" for n in module.__all__}
    assert set(LEFT_OUT) <= listed


def test_every_name_of_an_inner_module_is_fuzzed_or_says_why_not():
    inner = [name for name in inner_objects() if name not in TARGETS]
    modules = {name.rsplit(".", 1)[0] for name in inner}
    assert modules == set(INSIDE), "a module without a reason, or a reason for no module"
    assert not set(inner) & set(OBJECTS)


UPPER, LOWER = np.array([1, 2, 2, 5]), np.array([0, 1, 0, 3])
GRAM = np.array([[2.0, 1.0], [1.0, 0.5]])
ENGINES = {
    "design": (lambda X, v: design.Design.build(X, 0.1).scores(v), (X * 1e9 + 1e12, np.ones(2))),
    "laplacian": (lambda *a: design.laplacian(*a, 8).toarray(), (UPPER, LOWER, SCORES[:4])),
    "least_norm_shift": (design.least_norm_shift, (np.ones(2), GRAM[:, :1])),
    "null_space": (design.null_space, (GRAM,)),
    "power_of_two": (design.power_of_two, (SCORES * 1e-300,)),
    "weighted_gram": (design.weighted_gram, (X, SCORES)),
    "weighted_gram of one weight": (design.weighted_gram, (X, np.ones(8))),
    "equal_items": (lambda *a: equal_items.equal_items(*a)[1], (np.repeat(X[:4], 2, 0), Y // 3)),
    "stumps": (
        lambda X, w: weak_learners.Stumps(X, w, 0.5, None, np.random.default_rng(0)).values(0),
        (X, SCORES),
    ),
    "bumps": (
        lambda X, w: weak_learners.JointBumps(X, w, 0.5, None, np.random.default_rng(0)).values(0),
        (X, SCORES),
    ),
}


@pytest.mark.parametrize("name", ENGINES)
def test_engines_take_arrays_as_they_lie_and_leave_them(name):
    """Read-only, in Fortran's order, every other entry of a larger one: the same, untouched."""
    function, arguments = ENGINES[name]
    expected = function(*(a.copy() for a in arguments))
    wide = [np.repeat(np.repeat(a, 2, 0), 2, -1)[::2, ..., ::2] for a in arguments if a.ndim > 1]
    others = [np.repeat(a, 2)[::2] for a in arguments if a.ndim == 1]
    strided = [(wide if a.ndim > 1 else others).pop(0) for a in arguments]
    for layout in (arguments, [np.asfortranarray(a) for a in arguments], strided):
        views = [a.view() for a in layout]
        for view in views:
            view.flags.writeable = False
        np.testing.assert_allclose(function(*views), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_bad_argument_gives_an_answer_or_a_named_error(name):
    slow = name.startswith(("rankbook.surrogates.", "rankbook.plots.", "rankbook.population.N"))

    @settings(
        max_examples=EXAMPLES // 3 if slow else EXAMPLES,
        derandomize=not IS_RANDOM,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=bad_calls(name))
    def check(case):
        arguments, key = case
        before = fingerprint(arguments)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with stopped_after(SECONDS):
                    result = call(name, arguments)
            except ALLOWED_ERRORS as error:
                assert names_an_argument(name, arguments, error), f"{key}: {error!r}"
                result = None
        strange = [w for w in caught if not issubclass(w.category, ALLOWED_WARNINGS)]
        assert not strange, [str(w.message) for w in strange]
        plt.close("all")
        assert fingerprint(arguments) == before, f"an argument was changed: {key}"
        if name.startswith("rankbook.metrics.") and isinstance(result, float):
            assert np.isfinite(result), f"{key} gave {result}"

    check()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_masked_entries_are_refused(name):
    """Each array in turn: a mask that is dropped would count what its owner has struck out."""
    for key, good in good_arguments(name).items():
        if np.ndim(good) and np.size(good) and np.asarray(good).dtype.kind in "iuf":
            arguments = good_arguments(name) | {key: CHANGES["masked"](good)}
            with pytest.raises(ALLOWED_ERRORS) as caught:
                call(name, arguments)
            assert names_an_argument(name, arguments, caught.value), f"{key}: {caught.value!r}"


def test_the_rule_would_notice():
    """The checker itself: unnamed errors and changed arguments do not pass."""
    assert not names_an_argument("f", {"y": 1}, ValueError("inhomogeneous shape"))
    assert names_an_argument("f", {"y": 1}, ValueError("y must not be empty"))
    arguments = {"y": [1, 2]}
    before = fingerprint(copy.deepcopy(arguments))
    arguments["y"].append(3)
    assert fingerprint(arguments) != before
