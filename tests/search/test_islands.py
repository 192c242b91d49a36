"""Several searches of one fit in processes: the same result wherever they run, and nothing lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from itertools import count
from textwrap import dedent

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from joblib.externals import loky
from sklearn.model_selection import GridSearchCV

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.scored import Scored
from dgsr.expressions import Constraints, get_library
from dgsr.pareto import ParetoArchive
from dgsr.search import Search, SearchConfig, begin_with_search
from dgsr.search.evolution import EvolutionConfig, get_engine
from dgsr.search.islands import Islands, _kept, number_of_islands
from searches import assert_same, flat_regressor, tiny_generator

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 2.0, (40, 2))
Y = X[:, 0] * np.sin(X[:, 1]) / (X[:, 1] + 1.3) + 0.05 * rng.normal(size=40)


def small(**settings):
    usual = {"generator": None, "n_jobs": 2, "max_evaluations": 6_000, "batch_size": 50, "random_state": 0}
    usual |= {"gp_generations": 10, "max_length": 15, "look_up": False}
    return flat_regressor(**(usual | settings))


def in_turns(model):
    """Fit with all islands in this process, one after the other."""
    with parallel_config("sequential"):
        return model.fit(X, Y)


def islands(library="physics", n_islands=3, generator=None, precision_of=None, engine="compiled", **config):
    """Return islands of a search, which nobody has begun."""
    library = get_library(library, 2)
    config = SearchConfig(**({"max_evaluations": 10**6, "batch_size": 50} | config))
    arguments = {"library": library, "constraints": Constraints(), "config": config, "generator": generator}
    arguments |= {
        "data": DataSet.from_arrays(X, Y),
        "seed": 0,
        "precision_of": precision_of,
        "engine": engine,
    }
    return Islands(n_islands=n_islands, **arguments)


@pytest.fixture(autouse=True, scope="module")
def meetings_after_two_rounds():
    """Let islands meet often, so that small fits exchange what they found several times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dgsr.search.islands._MOST_ROUNDS", 2)
        yield


# Evaluations of fits that are compared with one another, enough for three meetings.
COMPARED = {"max_evaluations": 3_000}


@pytest.fixture(scope="module")
def undisturbed(meetings_after_two_rounds):
    model = in_turns(small(**COMPARED))
    assert len(model.history_) >= 3
    return model


@pytest.mark.slow
def test_processes_find_what_islands_that_take_turns_find(undisturbed):
    assert_same(small(**COMPARED).fit(X, Y), undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["physics", "koza"])
def test_islands_with_a_generator_find_in_processes_what_they_find_in_turns(library):
    settings = {"library": library, "generator": "auto", "look_up": False, "gp_generations": 5}
    settings |= {"max_evaluations": 4_000, "refine": True}
    assert_same(small(**settings).fit(X, Y), in_turns(small(**settings)))


def test_islands_in_threads_find_the_same_and_each_makes_its_search_once(undisturbed, monkeypatch):
    made = []
    make = Search.__init__

    def counted(self, *args, **options):
        made.append(type(self))
        make(self, *args, **options)

    monkeypatch.setattr(Search, "__init__", counted)
    with parallel_config("threading"):
        assert_same(small(**COMPARED).fit(X, Y), undisturbed)
    assert made.count(Search) <= 2  # the second may take that of the first, once it is done
    assert not any(_kept.values())


def of_a_difference():
    """Return a table whose target depends on the difference of two columns, and on a third one."""
    columns = np.random.default_rng(1).uniform(0.5, 2.0, (60, 3))
    a, b, c = columns.T
    return columns, np.exp(-((a - b) ** 2)) * c + 0.3 * np.sin(9.0 * c)


SYMMETRIC = {"look_up": True, "max_evaluations": 20_000}


def test_a_table_of_fewer_columns_has_as_many_islands(monkeypatch):
    advance, advanced = Islands.advance, []

    def counted(self):
        advanced.append((len(self.data.columns), self.n_islands, self._n_alone))
        advance(self)

    monkeypatch.setattr(Islands, "advance", counted)
    monkeypatch.setattr("dgsr.search.islands._N_ALONE", 1)
    with parallel_config("sequential"):
        small(**SYMMETRIC).fit(*of_a_difference())
    of_table = [alone for n_columns, n, alone in advanced if n_columns < 3 and n == 2]
    assert of_table[:2] == [1, 0]


@pytest.mark.slow
def test_processes_find_in_a_table_of_fewer_columns_what_islands_in_turns_find(monkeypatch):
    monkeypatch.setattr("dgsr.search.islands._N_ALONE", 1)
    with parallel_config("sequential"):
        in_one = small(**SYMMETRIC).fit(*of_a_difference())
    assert_same(small(**SYMMETRIC).fit(*of_a_difference()), in_one)


def test_the_number_of_islands_matters(undisturbed):
    with pytest.raises(AssertionError):
        assert_same(in_turns(small(n_jobs=3, **COMPARED)), undisturbed)


@pytest.mark.slow
def test_inside_a_parallel_loop_islands_take_turns_and_find_the_same(monkeypatch):
    monkeypatch.setattr("dgsr.search.islands._MOST_ROUNDS", 8)  # as in the processes of the loop
    expected = in_turns(small())
    for model in Parallel(2)(delayed(small().fit)(X, Y) for _ in range(2)):
        assert_same(model, expected)


@pytest.mark.slow
def test_a_grid_search_starts_no_processes_of_its_islands(tmp_path):
    """Every fit writes the process that computed its islands, which is that of the fit itself."""

    class Engine:
        def evolve(self, population, nmse, evaluate, grammar, state, should_stop):
            (tmp_path / f"{os.getpid()}-{os.getppid()}").touch()
            return population, nmse

    grid = GridSearchCV(small(gp=Engine()), {"max_evaluations": [200, 400]}, n_jobs=2, cv=2)
    grid.fit(X, Y)
    parents = {path.name.partition("-")[2] for path in tmp_path.iterdir()}
    assert parents == {str(os.getpid())}


@pytest.mark.parametrize("max_evaluations", [100, 4_001, pytest.param(12_000, marks=pytest.mark.slow)])
def test_the_islands_share_one_budget(max_evaluations):
    model = in_turns(small(library="koza", max_evaluations=max_evaluations, tolerance=0.0))
    assert model.n_evaluations_ == max_evaluations
    assert model.stop_reason_ == "max_evaluations"


def test_a_time_budget_is_that_of_all_islands():
    model = in_turns(small(library="koza", max_evaluations=10**9, max_time=0.25, n_jobs=4))
    assert model.stop_reason_ == "max_time"
    assert model.history_[-1]["seconds"] < 2.25


@pytest.mark.parametrize(("seconds_of_round", "n_rounds"), [(0.2, 5), (0.45, 2), (1.7, 1), (3.0, 1)])
def test_islands_that_meet_by_the_clock_end_with_the_round_whose_end_is_nearest(
    seconds_of_round, n_rounds, monkeypatch
):
    now = [0.0]

    class Slow:
        def evolve(self, population, nmse, *options):
            now[0] += seconds_of_round
            return population, nmse

    monkeypatch.setattr("dgsr.finders.budget.time.perf_counter", lambda: now[0])
    with parallel_config("sequential"):
        search = islands(n_islands=2, engine=Slow(), max_time=100.0)
    search.advance()
    search.budget._started = now[0] - 10.0  # a tenth of which is a second
    assert [len(state["history"]) for state in search._in_processes(range(2), 1)] == [n_rounds] * 2


def advanced_once(**options):
    """Islands after their first rounds, and what they are after the next; none begins again."""
    with parallel_config("sequential"):
        search = islands(patience=0, max_evaluations=20_000, **options)
        search.prepare(lambda: None)
        search.advance()
        return search, search._in_processes(range(3), 1, send_search=True)


@pytest.mark.slow
def test_the_archive_holds_the_best_of_every_island():
    search, found = advanced_once()
    lowest = np.min([search.archive.nmse, *(state["archive"]["nmse"] for state in found)], axis=0)
    n_before, n_examined = search.n_evaluations, search.budget.n_examined
    n_new = [
        after["budget"]["n_evaluations"] - before["budget"]["n_evaluations"]
        for before, after in zip(search._states, found, strict=True)
    ]
    found[0]["budget"]["n_examined"] += 7
    search._gather(found)
    np.testing.assert_array_equal(search.archive.nmse, lowest)
    assert min(n_new) > 0
    assert search.n_evaluations == n_before + sum(n_new)
    assert search.budget.n_examined == n_examined + 7


def test_islands_differ_in_their_numbers_and_shares_and_divide_the_exact_stages():
    search = islands("koza", n_islands=3)
    states = [search._new_island(i) for i in range(3)]
    assert len({state["random_state"].tobytes() for state in states}) == 3
    assert [state["restarts"]["n"] for state in states] == [0, 1, 2]
    n_stages = search.scheduler.exact.solver.n_stages
    solving = [state["solving"] for state in states]
    stages = [range(state["stage"], n_stages, state["step"]) for state in solving]
    assert sorted(stage for own in stages for stage in own) == [*range(1, n_stages)]


@pytest.mark.slow
def test_the_best_programs_migrate_to_the_next_island_but_not_into_one_that_begins_again():
    search, found = advanced_once()

    def programs(state):
        return {tuple(tokens) for tokens in state["generation"]["tokens"]}

    best = [
        tuple(state["generation"]["tokens"][np.argmin(state["generation"]["nmse"])]) for state in found[:2]
    ]
    found[2]["generation"] = search._nothing.state_dict()
    after = search._with_migrants(found)
    assert programs(after[0]) == programs(found[0])  # the one before it has nothing
    assert best[0] in programs(after[1])
    assert best[1] in programs(after[1])
    assert len(after[1]["generation"]["nmse"]) == len(found[1]["generation"]["nmse"]) == 50
    assert len(programs(found[1]) - programs(after[1])) <= 5
    assert programs(after[2]) == set()
    for state in after:
        np.testing.assert_array_equal(state["archive"]["nmse"], search.archive.nmse)


def precision_of(data):
    """Return a precision by which the first column says how exactly a row was measured."""
    return 0.1 + X[:, 0]


def test_every_second_island_weighs_the_rows_by_their_precision():
    search = islands(precision_of=precision_of)
    own, other, *more = [search._group(i).arguments["data"] for i in range(4)]
    np.testing.assert_array_equal(own.weights, np.ones(len(Y)))
    np.testing.assert_allclose(other.weights, precision_of(search.data) / precision_of(search.data).mean())
    assert other.n_effective == own.n_effective
    for data, again in zip((own, other), more, strict=True):
        np.testing.assert_array_equal(data.weights, again.weights)


def test_where_all_rows_are_as_precise_or_no_constants_are_fitted_the_islands_weigh_alike():
    for search in (
        islands(precision_of=lambda data: np.full(len(data.y), 0.3)),
        islands("koza", precision_of=precision_of),
    ):
        assert search._group(1) is search._group(0)


def test_what_comes_from_an_island_of_other_weights_is_judged_anew():
    search, found = advanced_once(precision_of=precision_of)
    search._gather(found)
    programs = search.archive.population()
    np.testing.assert_allclose(programs.nmse(search.data), search.archive.nmse[search.archive.front()])
    after = search._with_migrants(found)
    weighted = search._group(1).arguments["data"]
    own, arrived = (Scored.from_state_dict(search.library, s[1]["generation"]) for s in (found, after))
    n_before = len(arrived.nmse) - 5
    old = {tuple(tokens) for tokens in own.programs.tokens}
    assert {tuple(tokens) for tokens in arrived.programs.tokens[:n_before]} <= old
    by_weights = fit_constants(arrived.programs[n_before:], weighted, n_iterations=0).nmse
    np.testing.assert_allclose(arrived.nmse[n_before:], by_weights, rtol=1e-6)
    by_rows = fit_constants(arrived.programs[n_before:], search.data, n_iterations=0).nmse
    assert not np.allclose(arrived.nmse[n_before:], by_rows, rtol=1e-3)


def test_an_island_of_other_weights_begins_with_what_there_is():
    search = islands(precision_of=precision_of)
    search.prepare(lambda: None)  # formulas of two terms
    archive = ParetoArchive.from_state_dict(search.library, search._new_island(1)["archive"])
    programs = archive.population()
    weighted = search._group(1).arguments["data"]
    assert len(programs) > 3
    np.testing.assert_allclose(programs.nmse(weighted), archive.nmse[archive.front()])


def test_islands_that_did_not_begin_again_count_no_restarts():
    search, _ = advanced_once()
    assert search.restarts.n == 0


@pytest.mark.slow
def test_the_decoder_of_the_best_island_goes_on():
    generator = tiny_generator("koza", max_length=30)
    settings = {"generator": generator, "look_up": False, "patience": 0}
    search = islands("koza", n_islands=2, **settings)
    with parallel_config("sequential"):
        search.advance()
    state = search.state_dict()
    decoders = [island["refinement"]["decoder"] for island in state["islands"].values()]
    lowest = [island["queue"]["nmse"].min() for island in state["islands"].values()]
    best, other = np.argsort(lowest)
    name = max(decoders[0], key=lambda name: decoders[0][name].size)
    np.testing.assert_array_equal(state["refinement"]["decoder"][name], decoders[best][name])
    assert not np.array_equal(decoders[best][name], decoders[other][name])
    later = islands("koza", n_islands=2, **settings)
    begin_with_search(later, state)
    weights = later.state_dict()["refinement"]["decoder"]
    np.testing.assert_array_equal(weights[name], decoders[best][name])


class Deadly:
    """The compiled engine, which kills its process at some of its calls."""

    def __init__(self, folder=None, at=()):
        self.folder, self.at = folder, at
        self.engine = get_engine("compiled", EvolutionConfig())

    def evolve(self, *arguments):
        if self.folder is not None and self._number_of_call() in self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.engine.evolve(*arguments)

    def _number_of_call(self):
        """Take the next number that no process has taken, by a file that can be created once alone."""
        for n in count():
            with contextlib.suppress(FileExistsError), open(self.folder / str(n), "x") as file:
                file.write(str(os.getpid()))
                return n


@pytest.mark.slow
def test_a_killed_process_costs_nothing_but_time(tmp_path):
    with pytest.warns(UserWarning, match="A process of the search was killed; others take its place"):
        model = small(gp=Deadly(tmp_path, at=(1, 8))).fit(X, Y)
    assert len(list(tmp_path.iterdir())) > 8
    assert_same(model, in_turns(small(gp=Deadly())))


class Heavy(Deadly):
    """A deadly engine that takes more memory than loky allows its processes to grow by."""

    memory = None

    def evolve(self, *arguments):
        if self.memory is None:
            self.memory = np.ones(5 * 10**7)
        return super().evolve(*arguments)


@pytest.mark.slow
def test_a_process_that_takes_the_place_of_another_stays(tmp_path):
    with pytest.warns(UserWarning, match="A process of the search was killed; others take its place"):
        small(gp=Heavy(tmp_path, at=(1,)), library="koza", max_evaluations=40_000, tolerance=0.0).fit(X, Y)
    of_calls = [file.read_text() for file in tmp_path.iterdir()]
    assert len(of_calls) > 20
    of_the_last = Counter(of_calls).most_common(2)
    assert sum(n for _, n in of_the_last) > len(of_calls) / 2


def test_where_processes_die_again_and_again_the_search_goes_on_without(undisturbed, monkeypatch):
    real = Parallel.__call__

    def dying(self, calls):
        if self.n_jobs > 1:
            raise joblib.externals.loky.process_executor.TerminatedWorkerError("killed")
        return real(self, calls)

    monkeypatch.setattr(Parallel, "__call__", dying)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = small(**COMPARED).fit(X, Y)
    said = [str(warning.message) for warning in caught if "killed" in str(warning.message)]
    assert len(said) == 3
    assert "goes on in this one" in said[-1]
    assert_same(model, undisturbed)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_keeps_the_best(tmp_path):
    script = tmp_path / "fit.py"
    script.write_text(
        dedent("""
        import signal
        import numpy as np
        from dgsr import DGSRRegressor

        # A shell may have started the tests with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        def begun(progress):
            if progress.evaluations > 2000:
                print("begun", flush=True)

        if __name__ == "__main__":
            X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
            y = X[:, 0] * np.sin(X[:, 1]) + 0.05 * np.random.default_rng(1).normal(size=40)
            model = DGSRRegressor(n_jobs=2, max_evaluations=10**9, callback=begun).fit(X, y)
            print(model.stop_reason_, len(model.pareto_front_), flush=True)
        """),
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "begun\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to all processes
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in said
    reason, n = said.split()[-2:]
    assert reason == "interrupted"
    assert int(n) > 0


@pytest.mark.slow
def test_an_interrupt_while_calls_are_handed_over_leaves_no_traceback(monkeypatch):
    executor = loky.process_executor.ProcessPoolExecutor
    thread = loky.process_executor._ExecutorManagerThread
    submit, wait = executor.submit, thread.wait_result_broken_or_wakeup
    n_submitted, failed = count(1), []

    def interrupted(self, *call, **arguments):
        future = submit(self, *call, **arguments)
        if next(n_submitted) == 4:
            raise KeyboardInterrupt
        return future

    def slow(self):
        waited = wait(self)
        time.sleep(0.02)  # so that the calls are taken back before it looks, if nobody waits for it
        return waited

    monkeypatch.setattr(executor, "submit", interrupted)
    monkeypatch.setattr(thread, "wait_result_broken_or_wakeup", slow)
    monkeypatch.setattr(threading, "excepthook", failed.append)
    with pytest.warns(UserWarning, match="interrupted"):
        model = small().fit(X, Y)
    assert model.stop_reason_ == "interrupted"
    assert failed == []


def test_an_interrupted_fit_keeps_the_best():
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        model = in_turns(small(library="koza", callback=interrupt))
    assert model.stop_reason_ == "interrupted"
    assert len(model.pareto_front_) > 0


def test_joblib_says_how_many_islands_none_and_minus_one_are():
    assert number_of_islands(None) == 1
    assert number_of_islands(5) == 5
    assert number_of_islands(-1) == joblib.cpu_count()
    assert number_of_islands(-(10**6)) == 1
    with parallel_config("loky", n_jobs=3):
        assert number_of_islands(None) == 3


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_a_number_of_jobs_that_is_none_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs"):
        small(n_jobs=n_jobs).fit(X, Y)
