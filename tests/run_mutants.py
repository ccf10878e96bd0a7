"""Plant known errors in a copy of the package, one at a time, and see whether the tests notice.

``make mutants`` runs them all and says of each, by its number in the list, whether it was noticed;
a run that was broken off goes on with ``--start``. A mutant in ``mutants.json`` has a file, a text
that stands in it once, the text that replaces it, and the tests that must fail. One that changes
nothing a test could see says so in "equivalent", with the reason; it is planted nowhere.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("rankbook", "tests", "book", "benchmarks", "_toc.yml", "pyproject.toml", "README.md")
# A mutant may make a loop endless: that is noticed too.
TIME_LIMIT = 600


def load() -> list[dict]:
    """All mutants, those named equivalent included."""
    return json.loads((ROOT / "tests" / "mutants.json").read_text(encoding="utf-8"))


def planted(mutant: dict, source: str) -> str:
    """The source with the error in it."""
    if source.count(mutant["old"]) != 1:
        raise ValueError(f"{mutant['file']} must hold once, and does not: {mutant['old']!r}")
    return source.replace(mutant["old"], mutant["new"])


def copy_tree(target: Path) -> None:
    """Copy what the tests need, without what was built."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)


def tests_pass(tree: Path, tests: str) -> bool:
    """Whether the tests pass in that copy, with its own package."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    # Plugins take longer to load than most of these tests take to run, and none needs one.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment.pop("CI", None)
    try:
        run = subprocess.run(
            [*command, *tests.split()],
            cwd=tree,
            env=environment,
            capture_output=True,
            timeout=TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return False
    if run.returncode not in (0, 1):
        # Nothing collected, or a wrong path: neither passes nor fails.
        if run.returncode == 2 and b"error" in run.stdout:
            return False
        raise RuntimeError(f"{tests}: pytest said {run.returncode}\n{run.stdout.decode()[-2000:]}")
    return run.returncode == 0


def survives(tree: Path, mutant: dict) -> bool:
    """Whether the tests pass with the mutant planted; the copy is as before afterwards."""
    path = tree / mutant["file"]
    source = path.read_text(encoding="utf-8")
    path.write_text(planted(mutant, source), encoding="utf-8")
    try:
        lives = tests_pass(tree, mutant["tests"])
    finally:
        path.write_text(source, encoding="utf-8")
    if "number" in mutant:
        print(mutant["number"], "LIVES" if lives else "noticed", mutant["file"], flush=True)
    return lives


def run(mutants: list[dict], jobs: int) -> list[str]:
    """Plant each mutant; return a line for every one that nobody noticed."""
    mutants = [mutant for mutant in mutants if "equivalent" not in mutant]
    with tempfile.TemporaryDirectory(prefix="rankbook-mutants-") as scratch:
        trees: Queue[Path] = Queue()
        for number in range(jobs):
            tree = Path(scratch) / str(number)
            copy_tree(tree)
            trees.put(tree)

        def in_a_tree(check, *arguments):
            tree = trees.get()
            try:
                return check(tree, *arguments)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            files = sorted({mutant["tests"] for mutant in mutants})
            sound = pool.map(lambda tests: in_a_tree(tests_pass, tests), files)
            broken = [tests for tests, passed in zip(files, sound, strict=True) if not passed]
            if broken:
                raise RuntimeError(f"these fail without any mutant: {', '.join(broken)}")
            alive = list(pool.map(lambda mutant: in_a_tree(survives, mutant), mutants))
    return [
        f"{mutant['file']}: {mutant['old']!r} -> {mutant['new']!r} passes {mutant['tests']}"
        for mutant, lives in zip(mutants, alive, strict=True)
        if lives
    ]


def main() -> int:
    """Run all mutants, or those of one file, or those from a number on."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--file", help="only mutants of files whose path holds this")
    parser.add_argument("--start", type=int, default=0, help="number of the first one to plant")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("RANKBOOK_JOBS", "2")))
    options = parser.parse_args()
    numbered = [{**mutant, "number": number} for number, mutant in enumerate(load())]
    mutants = [m for m in numbered[options.start :] if (options.file or "") in m["file"]]
    alive = run(mutants, options.jobs)
    print("\n".join(alive))
    planted_count = sum("equivalent" not in mutant for mutant in mutants)
    print(f"{planted_count - len(alive)} of {planted_count} mutants noticed")
    return bool(alive)


if __name__ == "__main__":
    sys.exit(main())
