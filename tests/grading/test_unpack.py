"""Archives of strangers: bad members are refused one by one, and the rest goes on."""

import os
import stat
import struct
import zipfile

import pytest

from rankbook.grading import read_submissions, unpack
from tests.grading.conftest import notebook

GOOD = notebook("x = 1")
MOODLE = "Ada Lovelace_101_assignsubmission_file_/ps1.ipynb"


def make_zip(path, members):
    """An archive of (name or ZipInfo, content)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def students(found):
    return {s.student: s for s in found.submissions}


def test_a_flat_folder(tmp_path):
    (tmp_path / "ada.ipynb").write_text(GOOD)
    (tmp_path / "emmy").mkdir()
    (tmp_path / "emmy" / "set 1.ipynb").write_text(notebook("a = 1", "b = 2"))
    (tmp_path / ".DS_Store").write_text("litter")
    found = read_submissions(tmp_path)
    assert found.layout == "flat" and not found.refused
    assert students(found)["ada"].cells == ("x = 1",)
    assert students(found)["emmy"].cells == ("a = 1", "b = 2")


def test_a_flat_folder_with_links_and_pipes(tmp_path):
    (tmp_path / "ada.ipynb").write_text(GOOD)
    (tmp_path / "link.ipynb").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe.ipynb")
    found = read_submissions(tmp_path)
    assert dict(found.refused) == {
        "link.ipynb": "a symbolic link",
        "folder": "a symbolic link",
        "pipe.ipynb": "not a regular file",
    }
    assert students(found)["ada"].cells and students(found)["link"].cells is None


def test_moodle(tmp_path):
    other = "Emmy Noether_102_assignsubmission_file_/"
    members = [(MOODLE, GOOD), (other + "a.ipynb", GOOD), (other + "b.ipynb", GOOD)]
    members.append(("Kurt Gödel_103_assignsubmission_file_/proof.pdf", b"%PDF"))
    found = read_submissions(make_zip(tmp_path / "moodle.zip", members))
    assert found.layout == "moodle"
    by_id = students(found)
    assert (by_id["101"].name, by_id["101"].cells) == ("Ada Lovelace", ("x = 1",))
    assert by_id["102"].cells is None and "several notebooks" in by_id["102"].flags[0]
    assert by_id["103"].cells is None and "no notebook" in by_id["103"].flags


def test_canvas_takes_the_newest_attachment(tmp_path):
    members = [
        ("lovelaceada_201_9002_ps1-1.ipynb", notebook("new = 1")),
        ("lovelaceada_201_9001_ps1.ipynb", notebook("old = 1")),
        ("noetheremmy_LATE_202_9003_ps1.ipynb", GOOD),
    ]
    found = read_submissions(make_zip(tmp_path / "canvas.zip", members))
    assert found.layout == "canvas"
    assert students(found)["201"].cells == ("new = 1",)
    assert "newest attachment" in students(found)["201"].flags[0]
    assert students(found)["202"].flags == ("handed in late",)


def link():
    info = zipfile.ZipInfo("Eve_105_assignsubmission_file_/ps1.ipynb")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, "/etc/passwd"


EVE = "Eve_105_assignsubmission_file_/"
BAD = {
    "slip": ("../../" + EVE + "ps1.ipynb", GOOD),
    "slip inside": (EVE + "../../../ps1.ipynb", GOOD),
    "absolute": ("/" + EVE + "ps1.ipynb", GOOD),
    "drive": ("C:/" + EVE + "ps1.ipynb", GOOD),
    "backslash": (EVE + "..\\..\\ps1.ipynb", GOOD),
    "symlink": link(),
    "bomb": (EVE + "ps1.ipynb", b" " * (unpack.NOTEBOOK_BYTES + 1)),
    "archive": (EVE + "ps1.zip", b"PK"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_member_is_refused_and_the_rest_goes_on(tmp_path, kind):
    path = make_zip(tmp_path / "moodle.zip", [BAD[kind], (MOODLE, GOOD)])
    found = read_submissions(path)
    assert len(found.refused) == 1
    assert students(found)["101"].cells == ("x = 1",)
    assert students(found)["101"].flags == ()
    assert all(s.cells is None and s.flags for s in found.submissions if s.student != "101")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["moodle.zip"]


def test_sizes_in_the_header_are_not_believed(tmp_path):
    bomb = b" " * (unpack.NOTEBOOK_BYTES + 5)
    path = make_zip(tmp_path / "moodle.zip", [(EVE + "ps1.ipynb", bomb), (MOODLE, GOOD)])
    data = path.read_bytes().replace(struct.pack("<L", len(bomb)), struct.pack("<L", 10))
    path.write_bytes(data)
    found = read_submissions(path)
    assert len(found.refused) == 1 and students(found)["105"].cells is None
    assert students(found)["101"].cells == ("x = 1",)


def test_a_damaged_member_is_refused(tmp_path):
    path = tmp_path / "moodle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(EVE + "ps1.ipynb", notebook("damaged = 1"))
        archive.writestr(MOODLE, GOOD)
    path.write_bytes(path.read_bytes().replace(b"damaged = 1", b"damaged = 2"))
    found = read_submissions(path)
    assert "CRC" in found.refused[0][1]
    assert students(found)["101"].cells == ("x = 1",)


@pytest.mark.parametrize(
    "content, flag",
    [
        ("nothing", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "format 4"),
        ('{"nbformat": 3, "worksheets": []}', "format 4"),
        ('{"nbformat": 4, "cells": [3]}', "a cell that is none"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": [1]}]}', "without text"),
        (notebook("x" * (unpack.SOURCE_BYTES + 1)), "megabyte"),
        (notebook("x = 1", ids=["P1.1", "P1.1"]), "same id: P1.1"),
    ],
    ids=lambda text: text[:30],
)
def test_a_broken_notebook_is_flagged(tmp_path, content, flag):
    (tmp_path / "eve.ipynb").write_text(content)
    (tmp_path / "ada.ipynb").write_text(GOOD)
    found = students(read_submissions(tmp_path))
    assert flag in found["eve"].flags[0]
    assert found["ada"].cells == ("x = 1",)


def test_what_is_no_archive_is_an_error(tmp_path):
    (tmp_path / "a.txt").write_text("no zip")
    for path in (tmp_path / "a.txt", tmp_path / "absent"):
        with pytest.raises(ValueError, match="path must be a folder or a zip file"):
            read_submissions(path)


def test_a_folder_with_nothing_but_an_archive_is_that_archive(tmp_path):
    (tmp_path / ".DS_Store").write_text("litter")
    members = [("Ada Lovelace_101_assignsubmission_file_/", b""), (MOODLE, GOOD)]
    make_zip(tmp_path / "moodle.zip", members)
    found = read_submissions(tmp_path)
    assert found.layout == "moodle" and not found.refused
    assert students(found)["101"].cells == ("x = 1",)


def test_an_encrypted_member_is_refused(tmp_path):
    path = make_zip(tmp_path / "moodle.zip", [(EVE + "ps1.ipynb", GOOD), (MOODLE, GOOD)])
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory at the end
    path.write_bytes(data)
    found = read_submissions(path)
    assert found.refused == ((EVE + "ps1.ipynb", "encrypted"),)
    assert students(found)["101"].cells == ("x = 1",)


def test_too_many_files_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(unpack, "MEMBERS", 2)
    members = [(f"s{i}.ipynb", GOOD) for i in range(3)]
    with pytest.raises(ValueError, match="at most 2 files"):
        read_submissions(make_zip(tmp_path / "many.zip", members))
    assert len(read_submissions(make_zip(tmp_path / "few.zip", members[:2])).submissions) == 2
