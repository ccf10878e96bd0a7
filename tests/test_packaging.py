"""The package as it is installed: one version, a light import, a complete wheel."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import rankbook

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("scipy.stats", "pandas", "matplotlib", "cvxpy", "statsmodels", "IPython")


def test_the_version_is_in_one_place():
    project = (ROOT / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in project
    assert not re.search(r"^version\s*=", project, re.MULTILINE)
    assert re.fullmatch(r"\d+\.\d+\.\d+", rankbook.__version__)
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {rankbook.__version__}\n" in citation


def loaded_after(statement):
    code = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.split()


@pytest.mark.parametrize(
    "statement", ["import rankbook", "from rankbook import costs, losses, metrics, models, plots"]
)
def test_the_import_is_light(statement):
    loaded = loaded_after(statement)
    assert not [name for name in HEAVY if name in loaded]


def test_the_wheel_is_complete(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"rankbook-{rankbook.__version__}-")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        meta = next(name for name in names if name.endswith("METADATA"))
        metadata = archive.read(meta).decode()
    assert "rankbook/py.typed" in names
    assert "rankbook/plots/rankbook.mplstyle" in names
    assert not [name for name in names if name.startswith(("tests", "book/", "benchmarks"))]
    for module in (ROOT / "rankbook").rglob("*.py"):
        assert module.relative_to(ROOT).as_posix() in names
    needs = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.MULTILINE)
    assert sorted(needs) == ["numpy", "scikit-learn", "scipy", "tqdm"]
    assert set(re.findall(r"^Provides-Extra: (\w+)", metadata, re.MULTILINE)) == {
        "bench",
        "book",
        "test",
    }


def test_every_requirement_is_pinned():
    for name in ("requirements.txt", "requirements-bench.txt"):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith("#"):
                assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.]+( ;.*)?$", line), line


@pytest.mark.parametrize("path", sorted((ROOT / "rankbook").rglob("*.py")), ids=lambda p: p.stem)
def test_modules_stay_short(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines"
