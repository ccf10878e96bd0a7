"""The runner, without a sandbox around it: cells, calls, and what a question forbids."""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from rankbook.grading import _wire
from rankbook.grading.runner import Forbidden, Guard, call, run_cells, strip_magics


def ask(source, *arguments, forbidden=()):
    """What comes of calling `answer`, which the source defines."""
    namespace = {}
    assert run_cells([source], namespace) == []
    request = {"call": "answer", "arguments": _wire.encode(list(arguments))}
    return call(namespace, request | {"forbidden": list(forbidden)})


@pytest.mark.parametrize(
    ("cell", "stripped"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("if True:\n    !ls\n    x = 1", "if True:\n    pass\n    x = 1"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%bash\nrm -r /", ""),
        ("files = !ls\nx = 1", "files = None\nx = 1"),
        ("len?\nx = 1", "pass\nx = 1"),
        ("x = 5 % 3\ny = '''\n%time\n'''", "x = 5 % 3\ny = '''\n%time\n'''"),
    ],
)
def test_magics_are_stripped_and_python_is_left_alone(cell, stripped):
    assert strip_magics(cell) == stripped


def test_an_error_is_recorded_and_the_next_cells_run():
    namespace = {}
    cells = ["x = 1", "y = 2\n1 / 0", "def broken(:", "raise SystemExit(3)", "z = x + y"]
    failures = run_cells(cells, namespace)
    assert [(f["cell"], f["line"]) for f in failures] == [(2, 2), (3, 1), (4, 1)]
    assert failures[0]["error"].startswith("ZeroDivisionError")
    assert namespace["z"] == 3


def test_an_error_that_cannot_be_told_is_recorded():
    cell = "class E(Exception):\n    def __str__(self): raise E\nraise E"
    assert run_cells([cell], {})[0]["error"] == "E: "


def test_values_come_back_and_names_of_errors_do_not_carry_inputs():
    assert ask("def answer(x): return x + 1", 2) == {"value": 3, "intact": True}
    assert ask("answer = 3") == {"missing": True}
    assert ask("def answer(x): return {x}", 2)["refused"]
    assert ask("def answer(x): return x[9]", [2])["error"] == "IndexError"
    told = ask("def answer(x): raise type(f'Input{x}', (Exception,), {})", 2)
    assert told["error"] == "an error of its own"


TEXT = "import math, timeit\nimport numpy as np\n"
PARTIAL = "from functools import partial\n"
THREAD = """
import math, threading
def go(f):
    found = []
    def work():
        try: f([1.0])
        except BaseException as error: found.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise found[0]
"""
LOADED = "import numpy as np\nplus = getattr(np, 'su' + 'm')\n"


@pytest.mark.parametrize(
    ("source", "forbidden"),
    [
        ("def answer(x):\n    import statistics\n    return 0", "statistics"),
        ("def answer(x):\n    return __import__('colo' + 'rsys') and 0", "colorsys"),
        (LOADED + "def answer(x): return plus(x)", "numpy.sum"),
        (LOADED + "def answer(x): return np.linalg.norm(x)", "numpy.linalg"),
        ("import math\ndef answer(x): return math.fsum(x)", "math.fsum"),
        ("def answer(x): return sum(x)", "sum"),
        # code that is made of text
        (TEXT + "def answer(x): return timeit.timeit('math.fsum([])', 'import math')", "math.fsum"),
        (TEXT + "def answer(x): return eval('math.fsum([])')", "math.fsum"),
        # a library that calls what it is handed
        (LOADED + "def answer(x): return np.apply_along_axis(plus, 0, x)", "numpy.sum"),
        (LOADED + "def answer(x): return np.vectorize(plus)(x)", "numpy.sum"),
        (TEXT + "def answer(x): return np.apply_along_axis(math.fsum, 0, x)", "math.fsum"),
        (LOADED + PARTIAL + "def answer(x): return np.vectorize(partial(plus))(x)", "numpy.sum"),
        (LOADED + "def answer(x): return np.piecewise(x, [x > 0], [plus])", "numpy.sum"),
        (THREAD + "def answer(x): return go(math.fsum)", "math.fsum"),
    ],
)
def test_what_a_question_forbids_is_stopped(monkeypatch, source, forbidden):
    for name in ("statistics", "colorsys"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert list(ask(source, np.ones(3), forbidden=[forbidden])) == ["forbidden"]
    assert ask(source, np.ones(3), forbidden=["decimal"])["intact"] is True


def test_a_module_that_the_notebook_wrote_is_the_students(monkeypatch, tmp_path):
    (tmp_path / "written.py").write_text("import math\ndef go(x): return math.fsum(x)")
    monkeypatch.syspath_prepend(tmp_path)
    source = "import written\ndef answer(x): return written.go(x)"
    assert list(ask(source, [1.0], forbidden=["math.fsum"])) == ["forbidden"]
    monkeypatch.delitem(sys.modules, "written")


def test_what_numpy_uses_inside_is_not_the_students():
    told = ask(
        "import numpy as np\ndef answer(x): return np.mean(x)", np.ones(3), forbidden=["sum"]
    )
    assert told["intact"] and "value" in told


def test_a_guard_that_was_taken_off_is_noticed():
    told = ask("import sys\ndef answer(): sys.setprofile(None)", forbidden=["statistics"])
    assert told["intact"] is False


def test_forbidding_a_module_does_not_load_it():
    """scipy loads scipy.stats when it is asked for it, which takes a second."""
    code = (
        "import sys, scipy\nfrom rankbook.grading.runner import Guard\n"
        "with Guard(['scipy.stats']): pass\nprint('scipy.stats' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    with Guard(["numpy.sum"]) as guard:
        assert guard.codes


FRAMES = """
import sys

def plain():
    return sys._getframe()

def wrapper(function):
    return function()
"""


def frames():
    """Frames as a profiler gets them: of a call by the student, and of one through a wrapper."""
    namespace = {"__name__": "helpers"}
    exec(compile(FRAMES, "<helpers>", "exec"), namespace)
    student = {"plain": namespace["plain"], "wrapped": namespace["wrapper"]}
    exec(compile("a, b = plain(), wrapped(plain)", "<cell 1>", "exec"), student)
    return student["a"], student["b"], namespace


class TestWatch:
    """What a guard decides for one call; a profiler asks it, which coverage cannot see."""

    def test_functions_and_modules_that_the_student_calls(self):
        direct, through, namespace = frames()
        for frame in (direct, through):
            with pytest.raises(Forbidden, match="helpers"):
                Guard(["helpers"]).watch(frame, "call", None)
            guard = Guard(["elsewhere.plain"])
            guard.codes.add(namespace["plain"].__code__)
            with pytest.raises(Forbidden, match="plain"):
                guard.watch(frame, "call", None)
            Guard(["helper", "helpers.plain"]).watch(frame, "call", None)

    def test_calls_that_others_make(self):
        guard = Guard(["helpers", "math"])
        library = {"plain": frames()[2]["plain"]}
        file = str(Path(np.__file__).with_name("made.py"))
        exec(compile("def use(): return plain()\nframe = use()", file, "exec"), library)
        guard.watch(library["frame"], "call", None)
        guard.watch(library["frame"].f_back, "c_call", math.fsum)
        guard.watch(library["frame"].f_back, "return", None)

    def test_functions_in_c(self):
        frame = frames()[0].f_back
        for name, function in (("math.fsum", math.fsum), ("math", math.sin), ("sum", sum)):
            with pytest.raises(Forbidden, match=name):
                Guard([name]).watch(frame, "c_call", function)
        Guard(["math.fsum", "su"]).watch(frame, "c_call", sum)


def test_the_runner_answers_line_by_line_and_hides_its_requests():
    """Cells, then calls; the student's code finds an empty input and a notebook of its own."""
    requests = [
        {"cells": ["import sys\nseen = sys.stdin.read(), sys.argv", "get_ipython().run('x')",
                   "display(1)\nprint('told')", "sys.stdout = None", "1 / 0"]},
        {"call": "answer", "arguments": [], "forbidden": []},
        {"cells": ["def answer(): return [seen[0], seen[1][0], __name__]"]},
        {"call": "answer", "arguments": [], "forbidden": []},
    ]  # fmt: skip
    text = "".join(json.dumps(request) + "\n" for request in requests)
    with tempfile.TemporaryFile() as replies:
        run = subprocess.run(
            [sys.executable, "-m", "rankbook.grading.runner", str(replies.fileno())],
            input=text.encode(), capture_output=True, pass_fds=(replies.fileno(),), check=True,
        )  # fmt: skip
        os.lseek(replies.fileno(), 0, os.SEEK_SET)
        first, missing, ready, value = map(json.loads, replies.read().splitlines())
    assert run.stdout == b"told\n"
    (failure,) = first["ready"]
    assert (failure["cell"], failure["line"]) == (5, 1)
    assert (missing, ready) == ({"missing": True}, {"ready": []})
    assert _wire.decode(value["value"]) == ["", "notebook", "__main__"]


def test_a_value_whose_own_class_fails_is_refused():
    source = (
        "class Bad(list):\n    def __iter__(self): raise SystemExit\n"
        "    def __len__(self): raise SystemExit\ndef answer(): return Bad()"
    )
    assert "refused" in ask(source)
