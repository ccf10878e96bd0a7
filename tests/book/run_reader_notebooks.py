"""Run the reader's notebooks as a reader does: in an empty folder, with the wheel installed.

``python run_reader_notebooks.py FOLDER [options of pytest]`` builds the wheel, installs it in a new
environment that borrows the pinned packages of this one but not its editable copy of the project,
copies the notebooks of FOLDER into an empty folder, and runs them there.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHERE = """
import pathlib, sys, rankbook
root, environment = map(pathlib.Path, sys.argv[1:])
at = pathlib.Path(rankbook.__file__).resolve()
assert environment.resolve() in at.parents, f"rankbook comes from {at}, not from the wheel"
assert root not in map(pathlib.Path, sys.path), f"{root} is on the path"
print("rankbook", rankbook.__version__, "of the wheel, at", at.parent)
"""


def new_environment(folder: Path) -> Path:
    """An environment with the wheel alone, and the other packages of this one; its python."""
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, ROOT], check=True
    )
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    (wheel,) = wheels.glob("rankbook-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True)
    # A path in a .pth file comes last, and the .pth files found there are not read.
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "pinned.pth").write_text("\n".join(sorted(paths)) + "\n")
    return python


def main(notebooks: str, *options: str) -> int:
    """Run all notebooks; return pytest's exit code."""
    chapters = Path(notebooks).resolve()
    if not list(chapters.rglob("*.ipynb")):
        print(f"no notebooks in {chapters}: run `make book` first", file=sys.stderr)
        return 1
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST_"))}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = new_environment(folder)
        environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
        empty = folder / "empty"
        shutil.copytree(
            chapters, empty, ignore=lambda _, names: [n for n in names if n.startswith(".")]
        )
        subprocess.run(
            [python, "-c", WHERE, ROOT, folder / "env"], check=True, cwd=empty, env=environment
        )
        command = [python, "-m", "pytest", "--nbmake", ".", "--nbmake-kernel=python3"]
        command += ["--nbmake-timeout=300", "-p", "no:cacheprovider", *options]
        return subprocess.run(command, cwd=empty, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
