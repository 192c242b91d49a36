"""A fit on the workers of a dask cluster, one of which dies."""

from __future__ import annotations

import os
import signal
import threading
import warnings

import distributed
import pytest
from joblib import parallel_config

from test_islands import X, Y, assert_same, in_turns, small


@pytest.fixture(scope="module")
def workers():
    """The processes of a cluster of two workers, on which joblib runs its tasks."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="ERROR"
        ) as cluster,
        distributed.Client(cluster) as client,
        parallel_config("dask"),
    ):
        yield lambda: list(client.run(os.getpid).values())


@pytest.mark.slow
def test_workers_of_a_cluster_find_what_islands_that_take_turns_find(workers):
    on_cluster = small().fit(X, Y)
    assert_same(on_cluster, in_turns(small()))


@pytest.mark.slow
def test_a_cluster_that_shrinks_to_one_worker_is_no_fault(workers):
    settings = {"max_evaluations": 400_000, "batch_size": 300}
    client = distributed.get_client()
    client.cluster.scale(2)
    client.wait_for_workers(2)
    seen = []

    def shrink(progress):
        seen.append(progress)
        if len(seen) == 2:  # after the first rounds on the cluster
            client.cluster.scale(1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a worker is gone
        model = small(**settings, callback=shrink).fit(X, Y)
    assert_same(model, in_turns(small(**settings)))
    client.cluster.scale(2)
    client.wait_for_workers(2)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_worker_that_dies_costs_no_formula_and_the_fit_says_so(workers):
    settings = {"max_evaluations": 400_000, "batch_size": 300}
    before, timers = workers(), []

    def kill_soon(progress):
        if not timers:  # in the midst of the next rounds
            timers.append(threading.Timer(0.5, os.kill, (before[0], signal.SIGKILL)))
            timers[0].start()

    with pytest.warns(UserWarning, match="A worker of the cluster is gone; others do its part again"):
        model = small(**settings, callback=kill_soon).fit(X, Y)
    assert_same(model, in_turns(small(**settings)))
    assert before[0] not in workers()
