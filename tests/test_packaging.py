"""The package as it is installed: one version, a light import, a complete wheel."""

import ast
import re
import subprocess
import sys
import tomllib
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
        "coursework",
        "distributed",
        "formula",
        "test",
    }


REQUIREMENTS = ("requirements.txt", "requirements-bench.txt", "requirements-minimum.txt")


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_requirement_is_pinned_with_its_hashes(name):
    text = (ROOT / name).read_text().replace(" \\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(lines) > 30
    for line in lines:
        pin, *hashes = line.split("--hash=")
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.]+( ;.*)?$", pin.strip()), pin
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", h.strip()) for h in hashes), pin


def test_the_minimum_set_holds_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pins = dict(
        re.findall(r"^([\w-]+)==([\w.]+)", (ROOT / REQUIREMENTS[2]).read_text(), re.MULTILINE)
    )
    for need in [*project["dependencies"], *extras["book"], *extras["test"]]:
        name, bound = re.match(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", need).groups()
        given, wanted = ([int(part) for part in re.findall(r"\d+", v)] for v in (pins[name], bound))
        assert given[: len(wanted)] == wanted, need


def test_workflows_pin_actions_by_commit():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action in re.findall(r"uses: (\S+)", path.read_text()):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{path.name}: {action}"


@pytest.mark.parametrize("path", sorted((ROOT / "rankbook").rglob("*.py")), ids=lambda p: p.stem)
def test_modules_stay_short(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines"


def test_every_public_module_has_tests_of_its_name():
    modules = [path for path in (ROOT / "rankbook").rglob("*.py") if not path.stem.startswith("_")]
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert [path.stem for path in modules if f"test_{path.stem}.py" not in tests] == []


def imported_names(path):
    """What a module imports, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_to_another(own, name):
    """Whether a dotted name is private to a package of ours that is not `own`."""
    root, *inner = name.split(".")
    return (
        root == "rankbook"
        and len(inner) > 1
        and inner[0] != own
        and any(part.startswith("_") and not part.startswith("__") for part in inner[1:])
    )


def test_what_is_private_to_a_package_stays_in_it():
    assert private_to_another("distributed", "rankbook.models._restricted.Restricted")
    assert private_to_another("distributed", "rankbook.models.cocr._hidden")
    assert not private_to_another("models", "rankbook.models._restricted.Restricted")
    assert not private_to_another("models", "rankbook._loss.Loss")
    package = ROOT / "rankbook"
    modules = list(package.rglob("*.py"))
    assert len(modules) > 100
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules
        for name in imported_names(path)
        if private_to_another(path.relative_to(package).parts[0], name)
    ]
    assert found == []
