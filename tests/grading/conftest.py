"""A grader that runs as an ordinary user, in a real sandbox, whoever runs the tests.

The grader refuses to be root, and a machine that checks is often root's. There the tests start it
through `setpriv` under a user id that nobody has. Such a user cannot enter root's home, where the
interpreter may lie; no permission is changed for that: the files that are needed are linked (or
copied, across devices) into a folder that everybody can read, and removed afterwards.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

import rankbook
from rankbook.grading import load_checks

USER = 54321
HERE = Path(__file__).parent
CHECKS = HERE / "checks.py"
# What the grader and the notebooks of these tests import.
PACKAGES = ("numpy", "numpy.libs", "tqdm", "scipy", "scipy.libs", "sklearn", "scikit_learn.libs")
PACKAGES += ("joblib", "narwhals", "statsmodels")
MODULES = ("threadpoolctl.py",)
# By the clock: a busy machine must not cost an honest answer its points.
AMPLE = ("--cells-seconds", 120, "--question-seconds", 60)


def notebook(*cells, ids=()):
    """A notebook with these code cells."""
    found = [{"cell_type": "code", "source": cell, "metadata": {}} for cell in cells]
    for name in ids:
        metadata = {"nbgrader": {"grade_id": name}}
        found.append({"cell_type": "markdown", "source": "an answer", "metadata": metadata})
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": found})


def is_reachable(path):
    """Whether every user can get there."""
    path = Path(path).resolve()
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in [path, *path.parents])


def link_tree(source, target, leave_out=()):
    """Make files reachable under another path, without changing a permission."""

    def link(one, other):
        try:
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)

    ignored = shutil.ignore_patterns(*leave_out)
    shutil.copytree(source, target, ignore=ignored, copy_function=link, symlinks=True)


class Grader:
    """The grader's command line, as an ordinary user."""

    def __init__(self, stage):
        self.stage = stage
        self.is_root = os.geteuid() == 0
        self.python, self.environment = Path(sys.executable), dict(os.environ)
        self.site = Path(sysconfig.get_paths()["purelib"])
        self.source = Path(rankbook.__file__).parents[1]
        if self.is_root:
            self._make_reachable()
        paths = f"{self.source}:{self.site}"
        self.environment |= {"PYTHONPATH": paths, "HOME": str(stage), "CI": "true"}

    def _make_reachable(self):
        home = Path(sys.base_prefix)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        if not is_reachable(home):
            copy = self.stage / "python"
            link_tree(home / "lib" / version, copy / "lib" / version, ("site-packages", "test"))
            for library in (home / "lib").glob("libpython*.so*"):
                shutil.copy2(library, copy / "lib" / library.name)
            (copy / "bin").mkdir()
            self.python = copy / "bin" / version
            shutil.copy2(home / "bin" / version, self.python)
            self.environment["LD_LIBRARY_PATH"] = str(copy / "lib")
        if not is_reachable(self.site):
            site = self.stage / "site-packages"
            site.mkdir()
            for name in PACKAGES:
                if (self.site / name).is_dir():
                    link_tree(self.site / name, site / name, ("tests",))
            for name in MODULES:
                shutil.copy2(self.site / name, site / name)
            self.site = site
        if not is_reachable(self.source):
            link_tree(self.source / "rankbook", self.stage / "source" / "rankbook")
            self.source = self.stage / "source"

    def folder(self, name, files):
        """A folder of the grader's own, with these files."""
        folder = self.stage / name
        folder.mkdir()
        for file, content in files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for path in [folder, *folder.rglob("*")]:
            self.give(path)
        return folder

    def give(self, path):
        """Make the grader the owner of a file that the tests made."""
        if self.is_root:
            os.chown(path, USER, USER)

    def start(self, *arguments, as_root=False, program=("-m", "rankbook.grading")):
        """Start a command; a Popen."""
        command = [str(self.python), *program, *map(str, arguments)]
        if self.is_root and not as_root:
            ids = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
            command = ["setpriv", *ids, "--inh-caps=-all", *command]
        return subprocess.Popen(
            command,
            cwd=self.stage,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments, **options):
        """Run a command to its end: status, what it printed, its errors."""
        process = self.start(*arguments, **options)
        out, err = process.communicate()
        return process.returncode, out, err

    def grade(self, name, files, *options, checks=None):
        """Grade a folder of notebooks: the results by student, and the folder of the output."""
        folder = self.folder(name, files)
        output = self.folder(f"{name}-graded", {})
        checks = checks or self.checks
        places = (checks, folder, "--output", output)
        code, out, err = self.run(*places, "--jobs", 2, *AMPLE, *options)
        assert code == 0, err or out
        return results(output), output


def results(output):
    """What a run wrote, by student."""
    found = [json.loads(path.read_text()) for path in (output / "results").glob("*.json")]
    return {result["student"]: result for result in found}


def earned(result):
    """The points of a stored result, by question."""
    return {o["question"]: o["earned"] for o in result["outcomes"]}


def status(result):
    """How the questions of a stored result ended."""
    return {o["question"]: o["status"] for o in result["outcomes"]}


def some(names, quick):
    """All names; those that are not quick are left to `make test-grading`."""
    return [n if n in quick else pytest.param(n, marks=pytest.mark.thorough) for n in names]


def batch(request, quick, everything):
    """The attacks of this run, in one batch: the quick ones, or all if a thorough test is run."""
    is_thorough = any(item.get_closest_marker("thorough") for item in request.session.items)
    return list(everything) if is_thorough else list(quick)


@pytest.fixture(scope="session")
def grader():
    """The grader; its folder is removed in the end."""
    stage = Path(tempfile.mkdtemp(prefix="rankbook-grading-"))
    stage.chmod(0o755)
    try:
        made = Grader(stage)
        # Readable by the grader alone: only the sandbox hides it from a submission.
        private = made.folder("instructor", {"checks.py": CHECKS.read_text()})
        private.chmod(0o700)
        made.checks = private / "checks.py"
        made.give(stage)
        yield made
    finally:
        shutil.rmtree(stage)


@pytest.fixture(scope="session")
def checks():
    """The checks of the tiny problem set."""
    return load_checks(CHECKS)
