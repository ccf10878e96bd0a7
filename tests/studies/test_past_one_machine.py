"""The study of fits over blocks: what does not depend on the machine is recomputed."""

import dask
import numpy as np
import pytest

from rankbook import distributed, studies
from rankbook.models import COCR, CumulativeLink, PairwiseRanker
from rankbook.studies import past_one_machine as study


@pytest.fixture(scope="module")
def stored():
    return studies.load("past_one_machine")


def test_settings_and_form(stored):
    assert (stored["block"], stored["p"]) == (study.BLOCK, study.N_FEATURES)
    assert stored["n"] == list(study.SIZES)
    for name, values in stored.items():
        if isinstance(values, list):
            assert len(values) == len(study.SIZES), name
    assert max(stored["difference"] + stored["cluster_difference"]) < 1e-8
    assert min(stored["core_seconds"] + stored["cluster_seconds"] + stored["core_mb"]) > 0


@pytest.mark.parametrize("place", [0, 1])
def test_sizes_are_recomputed(stored, place):
    with dask.config.set(scheduler="synchronous"):
        model = distributed.fit(CumulativeLink(), *study.blocks(stored["n"][place]))
    assert model.n_passes_ == stored["passes"][place]
    np.testing.assert_allclose(model.log_likelihood_, stored["log_likelihood"][place], rtol=1e-10)


def test_passes_of_the_rates_are_recomputed(stored):
    import dask.array as da

    every = study.make_block(0, 20_000, study.WIDE)
    X = da.from_array(every[:, :-1], chunks=(5000, study.WIDE))
    y = da.from_array(every[:, -1], chunks=5000)
    qid = da.from_array(np.arange(20_000) // study.QUERY, chunks=5000)
    for name, estimator, query in (
        ("CumulativeLink", CumulativeLink(), None),
        ("PairwiseRanker", PairwiseRanker(), qid),
        ("COCR", COCR(), None),
    ):
        with dask.config.set(scheduler="synchronous"):
            model = distributed.fit(estimator, X, y, qid=query)
        assert model.n_passes_ == stored["rates"][name]["passes"]
        assert stored["rates"][name]["seconds"] > 0
