"""The studies as a whole: what each must offer, and the command that computes them."""

import json

import pytest

from rankbook import studies
from rankbook.studies.__main__ import main, write


@pytest.mark.parametrize("name", studies.names())
def test_every_study_has_results(name):
    assert studies.load(name)


def test_names_are_checked():
    with pytest.raises(ValueError, match="name must be one of"):
        studies.load("nonsense")
    with pytest.raises(ValueError, match="name must be one of"):
        studies.run("../nonsense")


def test_the_command_refuses_an_unknown_name(capsys):
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "invalid choice" in capsys.readouterr().err


def test_results_are_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "results.json"
    write({"risk": [0.25]}, target)
    with pytest.raises(TypeError):
        write({"risk": {1, 2}}, target)
    assert json.loads(target.read_text()) == {"risk": [0.25]}
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("quick", "name"), [(True, "tripartite.quick.json"), (False, "mine.json")])
def test_results_are_written_where_they_are_wanted(monkeypatch, tmp_path, capsys, quick, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(studies, "run", lambda study, quick: {"study": study, "quick": quick})
    assert main(["tripartite", "--quick"] if quick else ["tripartite", "--output", name]) == 0
    assert capsys.readouterr().out == f"{name}\n"
    found = json.loads((tmp_path / name).read_text())
    assert found == {"study": "tripartite", "quick": quick}
