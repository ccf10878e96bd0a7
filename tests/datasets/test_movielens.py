"""The MovieLens loader, with files made here in its layout; the real ones where they are."""

from __future__ import annotations

import dataclasses
import gzip
import io
import zipfile

import numpy as np
import pytest

from rankbook import metrics
from rankbook.datasets import _files, load_movielens, movielens
from rankbook.exceptions import DatasetUnavailable
from tests.datasets.downloads import Response

SOURCE = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"


def item(number, title, date, *genres):
    flags = ["1" if name in genres else "0" for name in movielens._GENRES]
    return "|".join([str(number), title, date, "", f"http://films/{number}", *flags])


FILES = {
    "u.data": "3\t2\t5\t881250949\n1\t1\t3\t891717742\n3\t1\t1\t878887116\n2\t3\t4\t880606923\n",
    "u.item": "\n".join(
        [
            item(1, "Été à Oslo (1995)", "01-Jan-1995", "Drama", "Romance"),
            item(2, "Four\x85 no new line", "4-Feb-1971"),
            item(3, "unknown", "", "unknown"),
        ]
    )
    + "\n",
    "u.user": "1|24|M|writer|85711\n2|53|F|artist|94043\n3|7|F|writer|T8H1N\n",
}
CONTENT = {name: text.encode("latin-1") for name, text in FILES.items()}


def archive(content=CONTENT, folder="ml-100k/"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as members:
        for name, text in content.items():
            members.writestr(folder + name, text)
    return stream.getvalue()


def write(folder, content=CONTENT):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (folder / name).write_bytes(text)
    return folder


def without(name):
    return {key: text for key, text in CONTENT.items() if key != name}


@pytest.fixture
def home(monkeypatch, tmp_path):
    """The checksums of the toy files, no network, and nothing in the cache."""
    known = {name: _files.sha256(text) for name, text in CONTENT.items()}
    monkeypatch.setattr(movielens, "_SHA256", known)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RANKBOOK_DATA", raising=False)

    def offline(url, timeout):
        raise OSError("no network here")

    monkeypatch.setattr(_files.urllib.request, "urlopen", offline)
    return tmp_path


def check_toy(data):
    assert data.y.tolist() == [5, 3, 1, 4]
    assert data.qid.tolist() == [3, 1, 3, 2]
    assert data.item_id.tolist() == [2, 1, 1, 3]
    assert data.timestamp.tolist() == [881250949, 891717742, 878887116, 880606923]
    assert data.item_titles == ("Été à Oslo (1995)", "Four\x85 no new line", "unknown")
    genres = ["genre=" + name for name in movielens._GENRES]
    people = ["age", "gender=M", "occupation=artist", "occupation=writer"]
    assert list(data.feature_names) == ["year", *genres, *people]
    assert data.user_features.tolist() == [[24, 1, 0, 1], [53, 0, 1, 0], [7, 0, 0, 1]]
    np.testing.assert_array_equal(data.item_features[:, 0], [1995, 1971, np.nan])
    by_name = dict(zip(data.feature_names, data.X.T, strict=True))
    np.testing.assert_array_equal(by_name["year"], [1971, 1995, 1995, np.nan])
    assert by_name["genre=Drama"].tolist() == by_name["genre=Romance"].tolist() == [0, 1, 1, 0]
    assert by_name["genre=unknown"].tolist() == [0, 0, 0, 1]
    assert by_name["age"].tolist() == [7, 24, 7, 53]
    assert by_name["gender=M"].tolist() == [0, 1, 0, 0]
    assert by_name["occupation=artist"].tolist() == [0, 0, 0, 1]
    assert sum(column.sum() for name, column in by_name.items() if "=" in name) == 5 + 1 + 4


def test_every_layout_and_the_search_order(home, monkeypatch):
    plain = write(home / "plain")
    packed = write(home / "x", {f"{n}.gz": gzip.compress(text) for n, text in CONTENT.items()})
    mixed = write(home / "y", without("u.item") | {"u.item.gz": gzip.compress(CONTENT["u.item"])})
    whole = write(home / "z", {"ml-100k.zip": archive()})
    for path in (plain, str(packed), mixed, whole, plain / "u.data", packed / "u.data.gz"):
        check_toy(load_movielens(path))
    check_toy(load_movielens(whole / "ml-100k.zip"))
    cache = write(home / "cache" / "rankbook" / "ml-100k", {"ml-100k.zip": archive()})
    assert load_movielens().path == cache / "ml-100k.zip"
    for name in ("ml-100k", "movielens-100k"):
        folder = write(home / "root" / name)
        monkeypatch.setenv("RANKBOOK_DATA", str(home / "root"))
        assert load_movielens().path == folder / "u.data"
    assert load_movielens(packed).path == packed / "u.data.gz"
    assert load_movielens(home / "nowhere").path == folder / "u.data"
    monkeypatch.setenv("RANKBOOK_DATA", str(mixed))
    assert load_movielens().path == mixed / "u.data"


def test_the_record_is_frozen(home):
    data = load_movielens(write(home / "a"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = None


@pytest.mark.parametrize("end", [b"\r\n", b"\n\n"])
def test_line_ends_may_be_those_of_another_system(home, end):
    other = {name: text.replace(b"\n", end) for name, text in CONTENT.items()}
    check_toy(load_movielens(write(home / "a", other)))
    check_toy(load_movielens(write(home / "b", {"ml-100k.zip": archive(other)})))


DAMAGES = {
    "empty": lambda text: b"",
    "blank": lambda text: b"\n\n",
    "cut within a line": lambda text: text[:-7],
    "cut after a line": lambda text: text[: text.rindex(b"\n", 0, -1) + 1],
    "one number changed": lambda text: text.replace(b"3", b"4", 1),
    "rows exchanged": lambda text: b"".join(reversed(text.splitlines(keepends=True))),
    "a line twice": lambda text: text + text.splitlines(keepends=True)[-1],
    "another file": lambda text: b"<html>not found</html>\n",
    "another encoding": lambda text: text.decode("latin-1").encode("utf-16"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_named(home, name, damage):
    content = CONTENT | {name: DAMAGES[damage](CONTENT[name])}
    problem = "it is empty" if damage in ("empty", "blank") else "its sha256 is"
    folder = write(home / "a", content)
    with pytest.raises(ValueError, match=f"{folder / name} does not hold MovieLens.*: {problem}"):
        load_movielens(folder)
    file = write(home / "b", {"ml-100k.zip": archive(content)}) / "ml-100k.zip"
    with pytest.raises(ValueError, match=f"{file}/{name} does not hold MovieLens.*: {problem}"):
        load_movielens(file)


@pytest.mark.parametrize("name", FILES)
def test_packed_files_that_are_cut_are_named(home, name):
    packed = gzip.compress(CONTENT[name])
    for content in (packed[:-12], packed[:5], CONTENT[name]):
        folder = write(home / "a", without(name) | {f"{name}.gz": content})
        with pytest.raises(ValueError, match=f"{folder / name}.gz is damaged"):
            load_movielens(folder)


@pytest.mark.parametrize("name", ["u.item", "u.user"])
def test_a_missing_or_renamed_file_is_named(home, name):
    folder = write(home / "a", without(name) | {f"{name}.txt": CONTENT[name]})
    message = rf"not complete: path {folder} holds no {name} or {name}\.gz\. Fetch {SOURCE}"
    with pytest.raises(DatasetUnavailable, match=message):
        load_movielens(folder)
    file = write(home / "b", {"ml-100k.zip": archive(without(name))}) / "ml-100k.zip"
    with pytest.raises(ValueError, match=f"{file} is not complete: .*'ml-100k/{name}'"):
        load_movielens(file)


def test_a_path_to_another_file_is_refused(home):
    folder = write(home / "a", {"ratings.zip": archive(), "u.item": CONTENT["u.item"]})
    for name in ("ratings.zip", "u.item"):
        with pytest.raises(ValueError, match=f"path must be a folder or a file .*{folder / name}"):
            load_movielens(folder / name)


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_archive_is_named(home, seed):
    """Bytes cut or changed anywhere: the right data or an error that names the archive."""
    rng, good = np.random.default_rng(seed), archive()
    refused = 0
    for _ in range(400):
        content = bytearray(good)
        for place in rng.integers(len(good), size=rng.integers(1, 4)):
            content[place] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.3:
            content = content[: rng.integers(len(good))]
        folder = write(home / "a", {"ml-100k.zip": bytes(content)})
        try:
            check_toy(load_movielens(folder))
        except ValueError as error:
            assert str(folder / "ml-100k.zip") in str(error)
            refused += 1
    assert refused > 200


def test_unavailable_says_what_to_do(home):
    for options, why in (({}, "no network here"), ({"download_if_missing": False}, "is False")):
        with pytest.raises(DatasetUnavailable) as caught:
            load_movielens(home / "nothing", **options)
        for part in (why, SOURCE, "ml-100k.zip", "path=", "RANKBOOK_DATA", str(home / "nothing")):
            assert part in str(caught.value)


def test_download_is_checked_and_kept(home, monkeypatch, capsys):
    asked = []

    def serve(url, timeout):
        asked.append(url)
        return Response(archive())

    monkeypatch.setattr(_files.urllib.request, "urlopen", serve)
    check_toy(load_movielens())
    assert "ml-100k.zip" in capsys.readouterr().err
    check_toy(load_movielens(download_if_missing=False))
    assert asked == [SOURCE]
    assert [file.name for file in (home / "cache/rankbook/ml-100k").iterdir()] == ["ml-100k.zip"]


@pytest.mark.parametrize("content", [archive()[:-30], b"", archive(without("u.user"))])
def test_a_bad_download_leaves_nothing(home, monkeypatch, content):
    monkeypatch.setattr(_files.urllib.request, "urlopen", lambda url, timeout: Response(content))
    with pytest.raises(DatasetUnavailable, match=r"ml-100k\.zip is (damaged|not complete)"):
        load_movielens(progress=False)
    assert not (home / "cache").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": 3}, "path must be a path, got 3"),
        ({"path": ["u.data"]}, "path must be a path"),
        ({"download_if_missing": "no"}, "download_if_missing must be True or False"),
        ({"progress": None}, "progress must be True or False"),
    ],
)
def test_bad_arguments(home, options, message):
    with pytest.raises(TypeError, match=message):
        load_movielens(**options)


@pytest.fixture(scope="module")
def ratings():
    try:
        return load_movielens(download_if_missing=False)
    except DatasetUnavailable:
        pytest.skip("RANKBOOK_DATA does not hold the MovieLens ratings")


def test_the_real_ratings(ratings):
    """Against the counts in the README of the archive and in Uematsu and Lee (2013)."""
    assert ratings.X.shape == (100_000, 20 + 23)
    assert np.bincount(ratings.y).tolist() == [0, 6110, 11370, 27145, 34174, 21201]
    assert (ratings.user_features.shape, ratings.item_features.shape) == ((943, 23), (1682, 20))
    assert np.unique(ratings.qid).tolist() == list(range(1, 944))
    assert np.bincount(ratings.qid)[1:].min() == 20
    assert np.unique(ratings.item_id).tolist() == list(range(1, 1683))
    months = np.array([ratings.timestamp.min(), ratings.timestamp.max()], "M8[s]").astype("M8[M]")
    assert months.tolist() == np.array(["1997-09", "1998-04"], "M8[M]").tolist()
    (nameless,) = np.flatnonzero(np.isnan(ratings.item_features[:, 0]))
    assert ratings.item_titles[nameless] == "unknown"
    assert len(set(ratings.item_titles)) == 1682 - 18  # films that are listed twice
    unusual = np.isin(ratings.qid, [13, 181, 405, 445, 655, 774])
    kept = ratings.y[~unusual & (ratings.item_id != nameless + 1)]
    assert np.bincount(kept).tolist() == [0, 5039, 10846, 26448, 33842, 20964]


def test_the_real_features_hold_together(ratings):
    names = np.array(ratings.feature_names)
    jobs = ratings.X[:, np.char.startswith(names, "occupation=")]
    assert (jobs.sum(axis=1) == 1).all() and jobs.shape[1] == 21
    years = ratings.item_features[:, 0]
    written = [title[-5:-1] for title in ratings.item_titles]
    agree = [w == f"{year:.0f}" for w, year in zip(written, years, strict=True)]
    assert np.mean(agree) > 0.75  # a title has the year of the film, not of its release
    rows = np.arange(0, 100_000, 997)
    beside = [ratings.item_features[ratings.item_id - 1], ratings.user_features[ratings.qid - 1]]
    np.testing.assert_array_equal(ratings.X[rows], np.hstack(beside)[rows])


def test_popular_films_rank_within_users(ratings):
    """A metric takes the record as it is, its queries not sorted."""
    mean = np.bincount(ratings.item_id, ratings.y) / np.bincount(ratings.item_id).clip(1)
    risk = metrics.pairwise_risk(ratings.y, mean[ratings.item_id], qid=ratings.qid)
    order = np.argsort(ratings.qid, kind="stable")
    again = metrics.pairwise_risk(
        ratings.y[order], mean[ratings.item_id[order]], qid=ratings.qid[order]
    )
    assert again == pytest.approx(risk, rel=1e-12)
    assert 0.2 < risk < 0.4
