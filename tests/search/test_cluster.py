"""A fit on the workers of a dask cluster, one of which dies."""

from __future__ import annotations

import os
import signal
import warnings
from contextlib import suppress

import dask
import distributed
import pytest
from joblib import Parallel, delayed, parallel_config
from test_islands import Deadly, X, Y, in_turns, small

from dgsr.data.dataset import DataSet
from dgsr.expressions import Constraints, get_library
from dgsr.search import SearchConfig
from dgsr.search.islands import Islands, number_of_islands
from searches import assert_same


@pytest.fixture(scope="module")
def workers():
    """The processes of a cluster of two workers, on which joblib runs its tasks.

    A cluster on one machine gives a worker up that is gone 15 seconds after it died, and one that dies again
    and again may be gone just then. Here both come back.
    """
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="localhost:0", silence_logs="ERROR"
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
    n_workers = []  # when the searches meet

    def shrink(progress):
        n_workers.append(len(client.ncores()))
        if len(n_workers) == 2:  # after the first rounds on the cluster
            client.cluster.scale(1)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a worker is gone
            model = small(**settings, callback=shrink).fit(X, Y)
        assert len(workers()) == 1
    finally:
        client.cluster.scale(2)
        client.wait_for_workers(2)
    assert n_workers[:2] == [2, 2]
    assert n_workers[-2:] == [1, 1]  # so that the last rounds began with one
    assert_same(model, in_turns(small(**settings)))


@pytest.mark.slow
def test_inside_a_task_of_the_cluster_islands_take_turns(workers):
    (found,) = Parallel(1)(delayed(number_of_islands)(n_jobs) for n_jobs in (None,))
    assert found == 1
    (model,) = Parallel(1)(delayed(fit_in_process)(small()) for _ in range(1))
    assert_same(model, in_turns(small()))


def fit_in_process(model):
    """Fit on a worker; joblib's active backend is that of the cluster there, too."""
    search = Islands(
        n_islands=2,
        data=DataSet.from_arrays(X, Y),
        library=get_library("physics", 2),
        constraints=Constraints(),
        config=SearchConfig(),
        generator=None,
        seed=0,
    )
    assert search._cluster is None
    return model.fit(X, Y)


class DiesOnce(Deadly):
    """The compiled engine, which kills the process that is the first to call it a number of times."""

    def __init__(self, folder=None, n_calls=3):
        super().__init__()
        self.death, self.n_calls = folder and folder / "death", n_calls

    def evolve(self, *arguments):
        self.n_calls -= 1
        if self.death is not None and self.n_calls == 0:
            with suppress(FileExistsError), self.death.open("x") as file:
                file.write(str(os.getpid()))
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().evolve(*arguments)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_worker_that_dies_costs_no_formula_and_the_fit_says_so(workers, tmp_path):
    settings = {"max_evaluations": 100_000, "batch_size": 300}
    before = workers()
    with pytest.warns(UserWarning, match="A worker of the cluster is gone; others do its part again"):
        model = small(**settings, gp=DiesOnce(tmp_path)).fit(X, Y)
    died = int((tmp_path / "death").read_text())
    assert died in before
    assert died not in workers()
    assert_same(model, in_turns(small(**settings, gp=DiesOnce())))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_cluster_whose_workers_die_again_and_again_ends_no_fit(workers, monkeypatch):
    class Kills(Deadly):
        """The compiled engine, which kills every process but the one that made it."""

        def __init__(self):
            super().__init__()
            self.pid = os.getpid()

        def evolve(self, *arguments):
            if os.getpid() != self.pid:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().evolve(*arguments)

    in_processes = Islands._in_processes

    def with_both_workers(self, *arguments, **settings):
        # While a worker is on its way back there is one, and joblib then works in this process, which lives.
        distributed.get_client().wait_for_workers(2, timeout=300)
        return in_processes(self, *arguments, **settings)

    monkeypatch.setattr(Islands, "_in_processes", with_both_workers)
    monkeypatch.setattr("dgsr.search.islands._LONGEST_CALL", 15.0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = small(gp=Kills()).fit(X, Y)
    said = [str(warning.message) for warning in found]
    assert "The cluster does not answer; the search goes on in this process." in said
    assert_same(model, in_turns(small(gp=Kills())))
