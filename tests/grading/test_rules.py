"""The import rule: what an answer, and all it calls, refers to."""

import sys

import pytest

from rankbook.grading._rules import read_source, uses

HEAD = "import numpy as np\nfrom scipy import stats\n"


def used(*cells):
    return uses(read_source([HEAD, *cells]), "answer", ["scipy.stats"])


# Type parameters are syntax from Python 3.12 on; before it there is nothing that could hold them.
NEW_OWN = ["def answer[row](x: row) -> row: return x"]
NEW_USED = ["type plus = stats.rankdata\ndef answer(x): return plus.__value__(x)"]
if sys.version_info < (3, 12):
    NEW_OWN, NEW_USED = [], []
OTHER = "def other(x, k):\n    row = stats.rankdata(x)\n    return row[k]"


@pytest.mark.parametrize(
    "answer",
    [
        "def answer(x):\n    for k in range(3):\n        row = x[k]\n    return row",
        "def answer(x): return [row for row in x]",
        "def answer(x): return (lambda row: row)(x)",
        "def answer(x, stats=0): return stats",
        "def answer(x):\n    def row(k): return k\n    return row(x)",
        "def answer(x):\n    k = 0\n    def inner():\n        nonlocal k\n        k += 1\n"
        "    return k",
        "def answer(x):\n    with open(x) as row: pass\n    return row",
        "def answer(x):\n    row = x\n    class A:\n        k = row\n    return A.k",
        "def answer(x):\n    class row: pass\n    return row",
        "def answer(x):\n    row = x\n    del row\n    return x",
        "def answer(x): return [row for k in x if (row := k)]",
        "def answer(x):\n    try: return 1 / x\n    except ZeroDivisionError as row: return row",
        "def answer(x):\n    match x:\n        case [row, *k]: return row, k\n"
        "        case {'a': 1, **row}: return row",
        *NEW_OWN,
    ],
)
def test_a_variable_of_its_own_is_nobody_elses(answer):
    # Neither those of another answer, nor those of a cell that calls one.
    assert used(OTHER, answer, "row = other(np.ones(3), 1)\nfor k in row: print(other(k, 1))") == []


@pytest.mark.parametrize(
    "answer",
    [
        "def answer(x): return other(x, 1)",
        "def answer(x): return [other(row, 0) for row in x]",
        "def answer(x):\n    k = other\n    return k(x, 0)",
        "def answer(x):\n    def inner(x): return stats.rankdata(x)\n    return inner(x)",
        "def answer(x, plus=stats.rankdata): return plus(x)",
        "@stats.rankdata\ndef answer(x): return x",
        "plus = stats.rankdata\ndef answer(x): return plus(x)",
        "plus = stats.rankdata\ndef answer(x): return [plus for plus in ()] or plus(x)",
        "def set_it():\n    global plus\n    plus = stats.rankdata\ndef answer(x): return plus(x)",
        "class A:\n    def go(self): return __plus(1)\n__plus = other\n"
        "def answer(x): return A().go()",
        "class A:\n    plus = stats.rankdata\n    def __call__(self, x): return self.plus(x)\n"
        "def answer(x): return A()(x)",
        "def answer(x):\n    import scipy\n    return scipy.stats.rankdata(x)",
        "def answer(x):\n    from scipy.stats import rankdata\n    return rankdata(x)",
        "if True:\n    def answer(x): return stats.rankdata(x)",
        "answer = lambda x: stats.rankdata(x)",
        "(answer := stats.rankdata)",
        "[plus := stats.rankdata for _ in [0]]\ndef answer(x): return plus(x)",
        "def set_it():\n    global plus\n    [plus := stats.rankdata for _ in [0]]\n"
        "def answer(x): return plus(x)",
        "for plus in [stats.rankdata]: pass\ndef answer(x): return plus(x)",
        "match [stats.rankdata]:\n    case [*plus]: pass\ndef answer(x): return plus[0](x)",
        "class A:\n    global plus\n    plus = stats.rankdata\ndef answer(x): return plus(x)",
        "class A:\n    f = [stats.rankdata for _ in [0]]\ndef answer(x): return A.f[0](x)",
        "plus = stats.rankdata\nclass A:\n    k = [plus for plus in ()] or plus\n"
        "def answer(x): return A.k(x)",
        "def answer(x):\n    class A:\n        stats = stats\n    return A.stats.rankdata(x)",
        "plus = [stats.rankdata]\nclass A:\n    plus += []\ndef answer(x): return A.plus[0](x)",
        "async def plus(x): return stats.rankdata(x)\ndef answer(x): return plus(x).send(None)",
        *NEW_USED,
    ],
)
def test_what_is_used_is_found(answer):
    assert used(OTHER, answer) == ["scipy.stats"]


PUT = "def put(f):\n    global plus\n    plus = f\n    return f\n"
BOX = "class Box:\n    def put(self, f): self.f = f\nb = Box()\n"


@pytest.mark.parametrize(
    "answer",
    [
        "np.plus = stats.rankdata\ndef answer(x): return np.plus(x)",
        "def answer(x): return answer.go(x)\nanswer.go = stats.rankdata",
        "k = {'a': {}}\nk['a']['f'], row = stats.rankdata, 1\ndef answer(x): return k['a']['f'](x)",
        "k = {}\nfor k['f'] in [stats.rankdata]: pass\ndef answer(x): return k['f'](x)",
        "k = {}\n[0 for k['f'] in [stats.rankdata]]\ndef answer(x): return k['f'](x)",
        "k = {}\nwith wrap(stats.rankdata) as k['f']: pass\ndef answer(x): return k['f'](x)",
        "k = {}\ndef fill(): k['f'] = stats.rankdata\ndef answer(x): return k['f'](x)",
        "k = []\n_ = k.append(stats.rankdata)\ndef answer(x): return k[0](x)",
        "k = []\n@k.append\ndef plus(x): return stats.rankdata(x)\ndef answer(x): return k[0](x)",
        "k = []\nput = lambda f: k.append(f)\nput(stats.rankdata)\ndef answer(x): return k[0](x)",
        PUT + "put(stats.rankdata)\ndef answer(x): return plus(x)",
        PUT + "@put\ndef row(x): return stats.rankdata(x)\ndef answer(x): return plus(x)",
        BOX + "b.put(stats.rankdata)\ndef answer(x): return b.f(x)",
        BOX.replace("self.f = f", "k.append(f)")
        + "k = []\nb.put(stats.rankdata)\ndef answer(x): return k[0](x)",
        "def make():\n    f = None\n    def put(g):\n        nonlocal f\n        f = g\n"
        "    return put, lambda: f\nput, get = make()\nput(stats.rankdata)\n"
        "def answer(x): return get()(x)",
    ],
)
def test_what_is_put_somewhere_is_found(answer):
    assert used(answer) == ["scipy.stats"]


@pytest.mark.parametrize(
    "answer",
    [
        "import scipy\ns = scipy\ndef answer(x): return s.stats.rankdata(x)",
        "def answer(x):\n    import scipy as q\n    s = q\n    return s.stats.rankdata(x)",
        "import scipy\ndef answer(x, s=scipy): return s.stats.rankdata(x)",
        "import scipy\ndef answer(x): return getattr(scipy, 'sta' + 'ts').rankdata(x)",
        "import scipy\ndef answer(x):\n    for s in [scipy]: return s.stats.rankdata(x)",
    ],
)
def test_a_package_that_is_passed_on_is_found(answer):
    assert used(answer) == ["scipy.stats"]


def test_a_star_brings_names():
    def used(answer, *forbidden):
        cells = ["from scipy.stats import *\nfrom numpy import *", answer]
        return uses(read_source(cells), "answer", forbidden or ["scipy.stats"])

    assert used("def answer(x): return rankdata(x)")
    # A name of the student's own is the star's until it is bound.
    assert used("rankdata = rankdata\ndef answer(x): return rankdata(x)")
    assert used("k = rankdata\ndef rankdata(x): return x\ndef answer(x): return k(x)")
    assert used("def rankdata(x, f=rankdata): return f(x)\ndef answer(x): return rankdata(x)")
    assert not used("def rankdata(x): return x\ndef answer(x): return rankdata(x)")
    assert not used("def answer(x): return answer(x[1:]) if len(x) else 0")
    assert used("def answer(x): return sum(x)", "numpy.sum", "numpy.sort") == ["numpy.sum"]


@pytest.mark.parametrize(
    "answer",
    [
        "def answer(x): return x\nanswer(stats.norm.rvs(3))",
        "def row(x): return x\ndef answer(x): return row(x)\nrow(stats.norm.rvs(3))",
        "def answer(x): return np.sort(x)\nnp.testing.assert_allclose(answer(1), other(1, 0))",
        "answer = np.vectorize(abs)\nanswer(stats.norm.rvs(3))",
        "rng = np.random.default_rng(0)\nk = rng.choice(stats.rankdata([1]))\n"
        "def answer(x): return rng.permutation(x)\nanswer(stats.norm.rvs(3))",
        "k = []\ndef answer(x): return x\nfor _ in range(3): k.append((answer(1), other(1, 0)))",
        "X = np.ones(3)\nprint(X.mean(), X.dot(other(X, 0)))\ndef answer(x): return X.mean()",
        "import scipy.special\ndef answer(x): return scipy.special.expit(x)",
        "class A:\n    def row(self, x): return stats.rankdata(x)\n"
        "def row(x): return x\ndef answer(x): return row(x)",
        "k = 0\ndef count():\n    global k\n    k += 1\ndef answer(x): return count() or x",
    ],
)
def test_what_tests_and_others_use_is_not_the_answers(answer):
    assert used(OTHER, answer) == []


def test_a_statement_that_cannot_be_analysed_is_not_trusted():
    number = "0x" + "f" * 5000  # too long to be written in decimal digits
    assert used(f"def answer(x):\n    row = {number}\n    return stats.rankdata(x)")
    assert used(OTHER, f"def answer(x):\n    other = {number}\n    return other")
    for head in ("async def plus(x):\n    k =", "match stats.rankdata:\n    case plus: k ="):
        code = f"{head} {number}\n    return stats.rankdata(x)"
        code = code if head.startswith("async") else f"{head} {number}"
        assert used(f"{code}\ndef answer(x): return plus(x)") == ["scipy.stats"]


@pytest.mark.parametrize(
    "code",
    [
        "g = locals()",
        "g = vars()",
        "setattr(np, 'f', 1)",
        "g = np.__dict__",
        "np.__getattr__('f')",
        "def f(): pass\nf.__code__ = np.f.__code__",
        "import os\nos.spawnv(0, 'python', [])",
        "import pickle",
        "import logging.config\nlogging.config.dictConfig({})",
        "g = getattr(np, 'f' + 'g')",
        "import sys\ng = getattr(sys, 'modules')",
        "import operator\ng = operator.attrgetter('sys.modules')(np)",
        "import sys\nmatch sys:\n    case object(modules=g): pass",
        "from sklearn.metrics import _ranking",
        "g = np._core",
    ],
)
def test_ways_around_it_are_noted(code):
    assert read_source([HEAD, code]).tricks


@pytest.mark.parametrize("line", ["from sys import settrace", "import threading as t"])
def test_an_import_of_a_trick_is_one(line):
    assert read_source([line]).tricks
    assert not read_source(["import math as t"]).tricks


@pytest.mark.parametrize(
    "code",
    [
        "from __future__ import annotations",
        "class A:\n    def __init__(self): self._x = 1\n    def go(self): return self._x",
        "k = getattr(np, 'pi', 3)",
        "import operator\nk = operator.itemgetter(0)",
        "k = np.__version__",
        "_, k = 1, 2",
    ],
)
def test_what_honest_notebooks_have_is_no_way_around_it(code):
    assert not read_source([HEAD, code]).tricks
