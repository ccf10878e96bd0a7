"""The UCI loader and the file machinery, with files made here; the real ones where they are."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rankbook.datasets import UCI_NAMES, _files, load_uci, uci
from rankbook.exceptions import DatasetUnavailable
from tests.datasets.downloads import Response

ROWS = [["1.5", "red hot", "no", "good"], ["?", "blue", "yes", "bad"], ["-2", "?", "no", "good"]]
TEXT = "\n".join(",".join(row) for row in ROWS)
CSV = f"size,colour,big,Class\n{TEXT}\n"
ARFF = """% a comment
@relation 'toy'
@attribute 'size' real
@attribute colour { 'red hot', blue, green}
@attribute big {yes,no}
@attribute Class {good,bad}

@data
1.5,'red hot',no,good
?, blue, yes, bad
-2,?,no,good
"""


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """A data set "vote" of three rows, no network, and nothing in the cache."""
    known = f"size,colour,big,class\n{TEXT}".encode()
    entry = replace(uci._ENTRIES["vote"], positive="good", sha256=hashlib.sha256(known).hexdigest())
    monkeypatch.setitem(uci._ENTRIES, "vote", entry)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RANKBOOK_DATA", raising=False)

    def offline(url, timeout):
        raise OSError("no network here")

    monkeypatch.setattr(_files.urllib.request, "urlopen", offline)
    return tmp_path


def check_toy(data):
    assert data.y.tolist() == [1, 0, 1]
    assert data.classes == ("bad", "good")
    assert data.feature_names == ("size", "colour=red hot", "big=yes")
    expected = [[1.5, 1, 0], [np.nan, 0, 1], [-2, np.nan, 0]]
    np.testing.assert_array_equal(data.X, expected)


def test_formats_and_search_order(toy, monkeypatch):
    plain, packed, home = toy / "plain", toy / "packed", toy / "root" / "uci"
    for folder in (plain, packed, home):
        folder.mkdir(parents=True)
    (plain / "vote.arff").write_text(ARFF)
    (packed / "vote.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    (home / "vote.csv").write_text(CSV)
    for path in (plain, packed, plain / "vote.arff", str(packed)):
        check_toy(load_uci("vote", path))
    monkeypatch.setenv("RANKBOOK_DATA", str(toy / "root"))
    assert load_uci("vote").path == home / "vote.csv"
    assert load_uci("vote", plain).path == plain / "vote.arff"
    check_toy(load_uci("vote", toy / "nowhere"))
    cache = toy / "cache" / "rankbook" / "uci"
    cache.mkdir(parents=True)
    (cache / "vote.arff").write_text(ARFF)
    assert load_uci("vote").path == home / "vote.csv"
    monkeypatch.delenv("RANKBOOK_DATA")
    assert load_uci("vote").path == cache / "vote.arff"


def test_nominal_numbers(toy):
    (toy / "vote.csv").write_text(CSV)
    data = load_uci("vote", toy, nominal=["size"])
    assert data.feature_names[0] == "size=1.5"
    with pytest.raises(ValueError, match="nominal must name attributes of 'vote', got .'weight'"):
        load_uci("vote", toy, nominal=["weight"])


def test_wrong_rows_are_refused(toy):
    (toy / "vote.csv").write_text(CSV.replace("-2", "-3"))
    with pytest.raises(ValueError, match="vote.csv does not hold the data set 'vote'.*sha256"):
        load_uci("vote", toy)


@pytest.mark.parametrize(
    "header", ["size,colour,large,Class", "colour,size,big,Class", "size,colour,big"]
)
def test_wrong_names_are_refused(toy, header):
    (toy / "vote.csv").write_text(f"{header}\n{TEXT}\n")
    with pytest.raises(ValueError, match="vote.csv does not hold the data set 'vote'.*sha256"):
        load_uci("vote", toy)


def test_quotes_and_dashes_in_names_may_differ(toy):
    (toy / "vote.csv").write_text(CSV.replace("size,", "'si_ze',"))
    assert load_uci("vote", toy).feature_names[0] == "'si_ze'"


PACKED = gzip.compress(CSV.encode())
BROKEN = {
    "cut.csv.gz": PACKED[:-12],
    "cut-head.csv.gz": PACKED[:5],
    "not-packed.csv.gz": CSV.encode(),
    "changed.csv.gz": PACKED[:12] + bytes(b ^ 255 for b in PACKED[12:30]) + PACKED[30:],
    "bits.csv.gz": PACKED[:10] + b"\xff" * 30,
    "empty.csv.gz": b"",
    "packed-empty.csv.gz": gzip.compress(b""),
    "empty.csv": b"",
    "blank.csv": b"\n  \n",
    "not-text.csv": b"\xff\xfe\x00a",
    "nul.csv": CSV.replace("blue", "bl\0ue").encode(),
    "long.csv": b'a,b\n"' + b"x" * 200_000,
    "empty.arff": b"",
    "no-data.arff": ARFF.split("@data")[0].encode(),
    "blank-attribute.arff": ARFF.replace("@attribute big {yes,no}", "@attribute").encode(),
    "open-quote.arff": ARFF.replace("'size' real", "'size real").encode(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_files_are_named(toy, name):
    path = toy / f"vote.{name.split('.', 1)[1]}"
    path.write_bytes(BROKEN[name])
    with pytest.raises(ValueError, match=str(path)):
        load_uci("vote", toy)


@pytest.mark.parametrize("name", ["packed-empty.csv.gz", "empty.csv", "blank.csv", "no-data.arff"])
def test_a_file_without_rows_is_said_to_have_none(toy, name):
    (toy / f"vote.{name.split('.', 1)[1]}").write_bytes(BROKEN[name])
    with pytest.raises(ValueError, match="it has no rows"):
        load_uci("vote", toy)


def test_unavailable_says_what_to_do(toy):
    with pytest.raises(DatasetUnavailable) as caught:
        load_uci("vote", toy)
    message = str(caught.value)
    for part in ("no network here", "https://", "vote.arff", "path=", "RANKBOOK_DATA", str(toy)):
        assert part in message
    assert "name it in the environment variable" in message
    with pytest.raises(ValueError, match="name must be one of"):
        load_uci("iris")


def test_the_advice_can_be_followed(toy, monkeypatch):
    """Every place that the message names is one where the file is then found."""
    with pytest.raises(DatasetUnavailable, match="download_if_missing is False") as caught:
        load_uci("vote", download_if_missing=False)
    assert "no network here" not in str(caught.value)
    target = Path(re.search("save it as (.*?), or", str(caught.value))[1])
    own = toy / "own"
    for folder in (own, target.parent):
        folder.mkdir(parents=True)
    (own / target.name).write_text(ARFF)
    check_toy(load_uci("vote", own))
    monkeypatch.setenv("RANKBOOK_DATA", str(own))
    check_toy(load_uci("vote"))
    monkeypatch.delenv("RANKBOOK_DATA")
    target.write_text(ARFF)
    check_toy(load_uci("vote", download_if_missing=False))
    with pytest.raises(TypeError, match="download_if_missing must be True or False, got 1"):
        load_uci("vote", download_if_missing=1)


def test_download_is_checked_and_kept(toy, monkeypatch, capsys):
    asked = []

    def serve(url, timeout):
        asked.append(url)
        return Response(ARFF.encode())

    monkeypatch.setattr(_files.urllib.request, "urlopen", serve)
    check_toy(load_uci("vote"))
    assert "vote.arff" in capsys.readouterr().err
    check_toy(load_uci("vote", progress=False))
    assert asked == ["https://www.openml.org/data/download/56/dataset_56_vote.arff"]
    folder = toy / "cache" / "rankbook" / "uci"
    assert [file.name for file in folder.iterdir()] == ["vote.arff"]


def test_a_bad_download_leaves_nothing(toy, monkeypatch):
    monkeypatch.setattr(
        _files.urllib.request, "urlopen", lambda url, timeout: Response(ARFF[:-20].encode())
    )
    with pytest.raises(DatasetUnavailable, match="sha256"):
        load_uci("vote", progress=False)
    assert not (toy / "cache" / "rankbook" / "uci").exists()


@pytest.mark.parametrize(
    "failure",
    [
        http.client.IncompleteRead(b"half"),
        http.client.BadStatusLine("garbage"),
        ConnectionResetError("gone"),
        TimeoutError("slow"),
    ],
)
def test_interrupted_downloads_say_what_to_do(toy, monkeypatch, failure):
    class Cut(Response):
        def read(self, size):
            raise failure

    monkeypatch.setattr(_files.urllib.request, "urlopen", lambda url, timeout: Cut(b"abc"))
    with pytest.raises(DatasetUnavailable, match=rf"{type(failure).__name__}[\s\S]*Fetch https"):
        load_uci("vote", progress=False)
    assert not (toy / "cache" / "rankbook" / "uci").exists()


def test_a_blank_attribute_in_a_download_is_refused(toy, monkeypatch):
    text = ARFF.replace("@attribute big {yes,no}", "@attribute")
    monkeypatch.setattr(
        _files.urllib.request, "urlopen", lambda url, timeout: Response(text.encode())
    )
    with pytest.raises(DatasetUnavailable, match="attribute without a name"):
        load_uci("vote", progress=False)


def test_a_failed_write_leaves_nothing(toy, monkeypatch):
    monkeypatch.setattr(_files.urllib.request, "urlopen", lambda url, timeout: Response(b"abc"))

    def broken(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(_files.os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        _files.download("https://x", toy / "f" / "a", lambda content: None, progress=False)
    assert list((toy / "f").iterdir()) == []


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _files.cache_folder() == tmp_path / "rankbook"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _files.cache_folder().name == "rankbook"


SHAPES = {
    "breast-c": (286, 85),
    "breast-w": (699, 241),
    "colic": (368, 232),
    "diabetes": (768, 268),
    "haberman": (306, 81),
    "heart-h": (294, 106),
    "hepatitis": (155, 32),
    "ionosphere": (351, 225),
    "vote": (435, 168),
}


@pytest.mark.skipif(not os.environ.get("RANKBOOK_DATA"), reason="RANKBOOK_DATA is not set")
@pytest.mark.parametrize("name", UCI_NAMES)
def test_real_data(name):
    data = load_uci(name)
    assert (data.y.size, int(data.y.sum())) == SHAPES[name]
    assert data.X.shape == (data.y.size, len(data.feature_names))
    assert not np.isinf(data.X).any()


def test_cache_folder_of_windows(monkeypatch, tmp_path):
    monkeypatch.setattr(_files.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert _files.cache_folder() == tmp_path / "rankbook"
