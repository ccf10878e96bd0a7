"""Errors and warnings: what a caller who knows only the built-in ones can catch."""

import pickle
import re
from pathlib import Path

import pytest

import rankbook
from rankbook import exceptions

BUILT_IN = {
    "CertificateError": RuntimeError,
    "CollinearityWarning": UserWarning,
    "CostConditionError": ValueError,
    "CrossingWarning": UserWarning,
    "DatasetUnavailable": RuntimeError,
    "KernelMemoryError": MemoryError,
    "LabelCostWarning": UserWarning,
    "NotBlockwiseError": ValueError,
    "SeparationWarning": UserWarning,
    "SolverError": RuntimeError,
    "SplitQueryError": ValueError,
    "ThresholdOrderWarning": UserWarning,
    "UncertifiedOrderWarning": UserWarning,
}


def test_these_are_kinds_of_built_in_ones():
    assert set(BUILT_IN) <= set(exceptions.__all__)
    for name, kind in BUILT_IN.items():
        assert getattr(exceptions, name).__bases__ == (kind,)


@pytest.mark.parametrize("name", exceptions.__all__)
def test_it_travels_between_processes_with_its_message(name):
    error = pickle.loads(pickle.dumps(getattr(exceptions, name)("what was wrong")))
    assert type(error).__name__ == name and str(error) == "what was wrong"


@pytest.mark.parametrize("name", exceptions.__all__)
def test_something_raises_or_warns_with_it(name):
    sources = Path(rankbook.__file__).parent.rglob("*.py")
    texts = [path.read_text(encoding="utf-8") for path in sources if path.name != "exceptions.py"]
    assert any(re.search(rf"\b{name}[(,]", text) for text in texts)
