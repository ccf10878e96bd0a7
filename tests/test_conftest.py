"""In CI a skip fails the run unless its reason is allowed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ALLOWED = """
import pytest
def test_data(): pytest.skip("RANKBOOK_DATA is not set")
@pytest.mark.xfail(strict=True)
def test_known(): assert False
def test_fine(): pass
"""
REFUSED = {
    "test_by_call": "import pytest\ndef test(): pytest.skip('no browser')\n",
    "test_by_file": "import pytest\npytest.skip('no browser', allow_module_level=True)\n",
    "test_by_import": "import pytest\npytest.importorskip('no_such_package')\n",
}


def run_pytest(folder, ci, *arguments):
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "CI": ci}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_skip_fails_in_ci(tmp_path, workers):
    for name, source in REFUSED.items():
        (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "test_allowed.py").write_text(ALLOWED)
    run = run_pytest(tmp_path, "true", *workers)
    assert run.returncode == 1, run.stdout
    summary = run.stdout.split("not allowed")[-1]
    assert [name for name in REFUSED if name not in summary] == []
    assert "test_data" not in summary


def test_allowed_skips_pass_and_elsewhere_all_do(tmp_path):
    (tmp_path / "test_allowed.py").write_text(ALLOWED)
    assert run_pytest(tmp_path, "true").returncode == 0
    (tmp_path / "test_by_call.py").write_text(REFUSED["test_by_call"])
    assert run_pytest(tmp_path, "").returncode == 0
