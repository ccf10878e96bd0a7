"""The reader of LETOR files against scikit-learn's, and every way a file can be wrong."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from rankbook.datasets import letor as module
from rankbook.datasets import load_letor
from rankbook.datasets._letor_text import parse_lines
from rankbook.exceptions import DatasetUnavailable


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.txt"):
        file = tmp_path / name
        content = text.encode()
        file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return file

    return write


def random_file(folder, n=400, p=9, name="random.txt"):
    rng = np.random.default_rng(3)
    X = np.where(
        rng.random((n, p)) < 0.5, 0.0, rng.normal(size=(n, p)) * 10.0 ** rng.integers(-9, 9)
    )
    y, qid = rng.integers(0, 5, n), np.sort(rng.integers(0, 30, n))
    file = folder / name
    dump_svmlight_file(X, y, str(file), query_id=qid, zero_based=False, comment="made up")
    return file


@pytest.mark.parametrize("block", [40, 1000, 1 << 19])
def test_reads_what_scikit_learn_reads(tmp_path, monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK", block)
    file = random_file(tmp_path)
    X, y, qid = load_svmlight_file(str(file), query_id=True, zero_based=False)
    for sparse in (False, True):
        data = load_letor(file, sparse=sparse)
        assert sp.issparse(data.X) == sparse
        dense = data.X.toarray() if sparse else data.X
        np.testing.assert_array_equal(dense, X.toarray())
        np.testing.assert_array_equal(data.y, y)
        np.testing.assert_array_equal(data.qid, qid)
        assert data.y.dtype == np.int64


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_numbers_are_read_as_python_reads_them(values):
    words = [repr(v) for v in values] + [f"{v:.6f}" for v in values] + [f"{v:g}" for v in values]
    line = "1 " + " ".join(f"{i}:{word}" for i, word in enumerate(words, start=1))
    rows = parse_lines(line.encode())
    np.testing.assert_array_equal(rows.value, [float(word) for word in words])


@pytest.mark.parametrize(
    "word", ["1", "-1", "+2.", ".5", "-.25", "007", "1e3", "0.1234567890123456"]
)
def test_forms_of_numbers(word):
    assert parse_lines(f"0 1:{word}".encode()).value[0] == float(word)


def test_comments_blank_lines_and_line_ends(write):
    file = write("# head\n\n2 qid:1 1:3 # docid = 1:2 qid:9\r\n   \n0\tqid:1\t2:1e-3\n1 qid:1")
    data = load_letor(file)
    np.testing.assert_array_equal(data.X, [[3, 0], [0, 1e-3], [0, 0]])
    assert data.y.tolist() == [2, 0, 1]


def test_packed_files_and_several(write, tmp_path):
    first, second = write("1 qid:1 1:1\n", "a.txt"), write("0.5 qid:2 3:1\n", "b.txt.gz")
    data = load_letor([first, str(second)])
    np.testing.assert_array_equal(data.X, [[1, 0, 0], [0, 0, 1]])
    assert data.y.tolist() == [1.0, 0.5]
    assert data.qid.tolist() == [1, 2]


def test_columns_single_precision_and_origin(write):
    file = write("1 1:0.1\n0 2:3\n")
    data = load_letor(file, n_features=4, dtype=np.float32)
    assert data.X.shape == (2, 4)
    assert data.X.dtype == np.float32
    assert data.qid is None
    assert load_letor(write("1 0:2\n"), zero_based=True).X.tolist() == [[2.0]]


def test_large_queries_stay_exact(write):
    file = write("1 qid:9223372036854775807 1:1\n1 qid:9223372036854775806 1:1\n")
    assert load_letor(file).qid.tolist() == [2**63 - 1, 2**63 - 2]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x qid:1 1:2", "grade 'x' is not a number"),
        ("1 qid:1 1:two", "value 'two' is not a number"),
        ("1 qid:1 1:1_0", "value '1_0' is not a number"),
        ("1 qid:1 1:\u0661", "value '\u0661' is not a number"),
        ("1 qid:1 1:nan", "value 'nan' is not finite"),
        ("1 qid:1 1:-inf", "value '-inf' is not finite"),
        ("nan qid:1 1:2", "grade 'nan' is not finite"),
        ("1 qid:1 1:2 2:", "got '2'"),
        ("1 qid:1 1:2 3", "got '3'"),
        ("1 qid:1 1: 2", "got '2'"),
        ("1 qid:1 1::2", "a colon has no name"),
        ("1 qid:1 :2", "a colon has no name"),
        (":" + " " * 40, "a colon has no name"),
        ("1:2 3:4", "got '1' where a grade belongs"),
        ("1 qid:1 2:2 1:3", "index 1 comes after 2"),
        ("1 qid:1 2:2 2:3", "index 2 comes after 2"),
        ("1 qid:1 0:2", "zero_based=True"),
        ("1 qid:1 -1:2", "index '-1' is not a whole number"),
        ("1 qid:1 99999999999:2", "index '99999999999' is not a whole number"),
        ("1 qid:-3 1:2", "qid '-3' is not a whole number"),
        ("1 qid:1.5 1:2", "qid '1.5' is not a whole number"),
        ("1 1:2", "qid: is missing|only some of the lines"),
    ],
)
@pytest.mark.parametrize("block", [30, 1 << 19])
def test_malformed_lines_are_named(write, monkeypatch, block, line, problem):
    monkeypatch.setattr(module, "_BLOCK", block)
    good = "1 qid:1 1:2 # a comment\n\n"
    file = write(good * 10 + line + "\n" + good)
    with pytest.raises(ValueError, match=problem) as caught:
        load_letor(file)
    assert f"{file}, line 21:" in str(caught.value)


def test_column_beyond_those_asked_for(write):
    with pytest.raises(ValueError, match=r"line 2: index 3 is beyond n_features=2"):
        load_letor(write("1 1:2\n1 3:2\n"), n_features=2)


@pytest.mark.parametrize("block", [20, 1 << 19])
def test_query_that_comes_back(write, monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK", block)
    file = write("1 qid:1 1:2\n1 qid:1 1:2\n1 qid:2 1:2\n0 qid:1 1:1\n")
    with pytest.raises(ValueError, match=r"line 4: query 1 comes back: it began in .*line 1,"):
        load_letor(file)
    with pytest.raises(ValueError, match="comes back"):
        load_letor([write("1 qid:1 1:2\n1 qid:2 1:2\n", "a"), write("1 qid:1 1:2\n", "b")])


def test_files_that_cannot_be_read(write, tmp_path):
    with pytest.raises(DatasetUnavailable, match="absent.txt"):
        load_letor(tmp_path / "absent.txt")
    file = write("1 qid:1 1:2\n" * 5000, "cut.txt.gz")
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"cut.txt.gz is damaged"):
        load_letor(file)
    (tmp_path / "plain.gz").write_bytes(b"1 qid:1 1:2\n")
    with pytest.raises(ValueError, match=r"plain.gz is damaged"):
        load_letor(tmp_path / "plain.gz")
    with pytest.raises(ValueError, match="got none in"):
        load_letor(write("# nothing\n\n", "empty.txt"))
    with pytest.raises(ValueError, match="at least one file"):
        load_letor([])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_features": 0}, "n_features"),
        ({"sparse": 2}, "sparse"),
        ({"zero_based": "no"}, "zero_based"),
        ({"dtype": np.int64}, "dtype must be float64 or float32"),
    ],
)
def test_bad_options(write, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        load_letor(write("1 1:2\n"), **options)


def test_real_files_as_scikit_learn_reads_them():
    root = os.environ.get("RANKBOOK_DATA")
    if not root or not Path(root, "mslr-web-sample-5k").is_dir():
        pytest.skip("RANKBOOK_DATA names no folder with the MSLR sample")
    file = Path(root, "mslr-web-sample-5k", "msn1.fold1.train.5k.txt.gz")
    data = load_letor(file)
    X, y, qid = load_svmlight_file(str(file), query_id=True, zero_based=False)
    np.testing.assert_array_equal(data.X, X.toarray())
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, qid)


def test_progress_bar(write, capsys):
    load_letor(write("1 1:2\n"), verbose=1)
    assert "data.txt" in capsys.readouterr().err
