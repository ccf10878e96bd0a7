"""Fits on a cluster of two worker processes, one of which may die."""

import logging
import signal
from contextlib import contextmanager

import dask.array as da
import joblib
import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from rankbook import distributed
from rankbook.models import COCR, CumulativeLink, PairwiseRanker

distributed_dask = pytest.importorskip("distributed")

N, CHUNK = 400, 100
WAIT = "60s"  # of what a busy machine may take; nothing waits for it to pass
LIMIT = 300  # seconds after which a test fails that would hang


@contextmanager
def limited():
    """Fail, rather than hang, where a cluster does not answer."""

    def stop(*_):
        raise TimeoutError(f"the cluster has not answered for {LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def no_hang(client):
    with limited():
        yield


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    settings = {
        "distributed.comm.timeouts.connect": WAIT,
        "distributed.comm.timeouts.tcp": WAIT,
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": False,
    }
    import dask

    with (
        limited(),
        dask.config.set(settings),
        distributed_dask.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            local_directory=str(tmp_path_factory.mktemp("workers")),
        ) as cluster,
        distributed_dask.Client(cluster, timeout=WAIT, set_as_default=False) as client,
    ):
        signal.alarm(0)
        yield client
        signal.alarm(LIMIT)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(N, 3))
    y = np.digitize(X @ [1.0, -0.5, 0.2] + rng.logistic(size=N), [-1.0, 1.0])
    return X, y, np.arange(N) // 10


def blocked(*arrays):
    return [da.from_array(a, chunks=(CHUNK,) + a.shape[1:]) for a in arrays]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())


def test_same_numbers_as_in_memory(client, sample):
    X, y, qid = sample
    Xd, yd, qd = blocked(*sample)
    model = distributed.fit(CumulativeLink(), Xd, yd, client=client)
    close(model.params_, CumulativeLink().fit(X, y).params_)
    ranker = PairwiseRanker(tol=1e-18)
    model = distributed.fit(ranker, Xd, yd, qid=qd, client=client)
    close(model.coef_, ranker.fit(X, y, qid=qid).coef_)
    ranker = PairwiseRanker("exponential", tol=1e-18)
    model = distributed.fit(ranker, Xd, yd, client=client)
    close(model.coef_, ranker.fit(X, y).coef_)


def test_an_error_in_a_block_reaches_the_caller(client, sample):
    Xd, yd, _ = blocked(*sample)
    with pytest.raises(ValueError, match="X must be finite"):
        distributed.fit(COCR(), Xd.map_blocks(np.log), yd, client=client)


def test_a_worker_killed_in_the_middle_of_a_pass(client, sample, tmp_path):
    armed, fallen = tmp_path / "armed", tmp_path / "fallen"

    def read(block, block_info=None):
        import os
        import signal

        try:
            # One process alone can move the file: it dies while it reads its block.
            os.rename(armed, fallen)
        except FileNotFoundError:
            return block
        os.kill(os.getpid(), signal.SIGKILL)

    def arm(n_iter, *_):
        if n_iter == 2:
            armed.touch()

    X, y, _ = sample
    Xd, yd, _ = blocked(*sample)
    Xd = Xd.map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    model = distributed.fit(CumulativeLink(), Xd, yd, client=client, callback=arm)
    assert fallen.exists()
    memory = CumulativeLink().fit(X, y)
    assert model.n_iter_ > 2
    close(model.params_, memory.params_)
    close(model.standard_errors_, memory.standard_errors_)


def test_joblib_fits_other_bases_on_the_cluster(client, sample):
    X, y, _ = sample
    estimator = COCR(DecisionTreeRegressor(max_depth=3, random_state=0), "oerr", n_jobs=2)
    expected = estimator.fit(X, y).decision_function(X)
    with client.as_current(), joblib.parallel_config("dask"):
        found = estimator.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(found, expected)
