"""Many problems on a Ray cluster: all come back once, whoever dies on the way; what cannot go on is told."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from chainroute import ChainRouteError, Problem, check
from chainroute.errors import fail
from chainroute.generate import generate
from chainroute.problem.variants import variant
from chainroute.solve import Effort, cluster, solve_many


class DeadNodeError(Exception):
    """What Ray raises for a job on a machine that died."""


class Ray:
    """Ray's interface over jobs that run at once in this process; `die` says which calls meet a death."""

    def __init__(self, cores=2, gpus=0, die=lambda call: False):
        self.exceptions = SimpleNamespace(RayError=DeadNodeError)
        self.resources, self.die = {"CPU": cores, "GPU": gpus}, die
        self.calls, self.most_out, self.out, self.needs = 0, 0, {}, []

    def cluster_resources(self):
        return self.resources

    def remote(self, **needs):
        def call(task, *args):
            self.calls += 1
            self.needs.append((task.__name__, needs["num_cpus"]))
            self.out[self.calls] = DeadNodeError() if self.die(self.calls) else task(*args)
            self.most_out = max(self.most_out, len(self.out))
            return self.calls

        return lambda task: SimpleNamespace(remote=lambda *args: call(task, *args))

    def wait(self, references, timeout):
        return references[:1], references[1:]

    def get(self, reference):
        result = self.out.pop(reference)
        if isinstance(result, Exception):
            raise result
        return result


@pytest.fixture
def problems():
    return [line(f"line {i}", 1 + i % 3) for i in range(10)]


def line(name, far):
    """Two customers on a line, at 1 and `far` + 1: one route, out and back."""
    return Problem(name=name, capacity=2, delivery=[1, 1], coords=[(0, 0), (1, 0), (far + 1, 0)])


def wait_until(is_true, seconds=10):
    tick = threading.Event()
    return any(is_true() or tick.wait(0.05) for _ in range(int(seconds / 0.05)))


def outcomes(problems, ray, effort=Effort()):
    return list(cluster._Cluster(ray, problems, (1.0, 0, effort)).outcomes(None))


def test_every_problem_comes_back_once_and_few_are_out_at_a_time(problems):
    ray = Ray(cores=2)
    found = outcomes(problems, ray)
    assert sorted(o.index for o in found) == list(range(10))
    assert [o.result.solution.cost for o in sorted(found, key=lambda o: o.index)] == [4, 6, 8] * 3 + [4]
    assert ray.most_out == 2 * cluster.JOBS_AHEAD


def test_what_a_dead_machine_had_is_sent_out_again(problems):
    """Every third job dies; in the end all are there, once, and nobody is told of an error."""
    found = outcomes(problems, Ray(die=lambda call: call % 3 == 0))
    assert sorted(o.index for o in found) == list(range(10))
    assert all(check(o.problem, o.result.solution).feasible for o in found)


def test_what_a_dead_machine_had_waits_for_another_and_is_not_forgotten(problems, monkeypatch):
    """The only machine dies with the first job, and another comes when we have asked for one 20 times."""
    ray, asked = Ray(die=lambda call: call == 1), []

    def resources():
        asked.extend([True] * bool(ray.calls))
        return {"CPU": 0 if 0 < len(asked) <= 20 else 2}

    ray.cluster_resources = resources
    monkeypatch.setattr(cluster, "ASKING_SECONDS", 0.0)
    assert sorted(o.index for o in outcomes(problems, ray)) == list(range(10))


def test_a_problem_that_kills_its_machine_every_time_is_told_and_the_others_go_on(problems):
    """With one core and one job at a time, the first job and its repetitions are calls 1, 2 and 3."""
    ray = Ray(cores=1, die=lambda call: call <= cluster.PROBLEM_TRIES * cluster.JOBS_AHEAD)
    found = outcomes(problems, ray)
    failed = [o for o in found if o.error]
    assert sorted(o.index for o in found) == list(range(10))
    assert [o.index for o in failed] == [0, 1]
    assert {fault.code for o in failed for fault in o.error.faults} == {"solver-failed"}


def test_an_error_of_one_problem_is_its_own_and_a_wrong_option_ends_all(problems, monkeypatch):
    narrow = Problem(name="narrow", capacity=1, delivery=[1, 1], coords=[(0, 0), (1, 0), (2, 0)], fleet=2)
    monkeypatch.setattr(cluster.Race, "run", lambda race, _: unlucky(race.problem))

    def unlucky(problem):
        raise fail("no-plan-found" if problem is narrow else "bad-option", "no.", problem.name)

    (found,) = outcomes([narrow], Ray())
    assert found.error.faults[0].code == "no-plan-found"
    with pytest.raises(ChainRouteError, match="bad-option"):
        outcomes(problems, Ray())


def test_a_gpu_decodes_batches_and_cores_search_from_them(problems, monkeypatch):
    """Proposals first, of all ten problems at once; then ten searches, each from its own proposal."""
    starts = []
    plan = SimpleNamespace(pairs=lambda: [(0, [2, 1])])
    monkeypatch.setattr(cluster.policy_process, "propose_many", lambda some, *_: [plan] * len(some))
    race = cluster.Race
    monkeypatch.setattr(cluster, "Race", lambda *args: starts.append(args[4].pairs()) or race(*args))
    ray = Ray(gpus=1)
    assert len(outcomes(problems, ray)) == 10
    assert starts == [[(0, [2, 1])]] * 10
    assert ray.needs == [("propose", 0)] + [("search", 1)] * 10


def test_a_cluster_without_cores_or_without_a_word_is_given_up(problems, monkeypatch):
    monkeypatch.setattr(cluster, "LOST_SECONDS", 0.0)
    work = cluster._Cluster(Ray(cores=0), problems, (1.0, 0, Effort()))
    work.out = {1: None}
    with pytest.raises(ChainRouteError, match=r"cluster-failed.*no core"):
        work.require_progress()
    with pytest.raises(ChainRouteError, match=r"cluster-failed.*no core"):  # also where nothing is out
        outcomes(problems, Ray(cores=0))
    assert outcomes([], Ray(cores=0)) == []
    work.resources, work.last_outcome = {"CPU": 2}, time.monotonic() - 1000
    with pytest.raises(ChainRouteError, match=r"cluster-failed.*sent nothing for 130 s"):
        work.require_progress()


def test_outcomes_and_a_stop_do_not_wait_for_the_next_problem(problems):
    """The reader has two problems, and the third when we are done: the two come back, and stop ends it."""
    done, stop, waited_out = threading.Event(), threading.Event(), []
    before = threading.active_count()

    def read():
        yield from problems[:2]
        waited_out.append(not done.wait(20))
        yield problems[2]

    found = cluster._Cluster(Ray(), read(), (1.0, 0, Effort())).outcomes(stop)
    assert sorted(next(found).index for _ in range(2)) == [0, 1]
    stop.set()
    assert list(found) == []
    assert waited_out == []
    done.set()
    assert wait_until(lambda: threading.active_count() == before)  # nobody reads on
    assert waited_out == [False]


def test_what_ends_the_reader_ends_all(problems):
    def read():
        yield problems[0]
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        outcomes(read(), Ray())


def test_who_has_nothing_to_do_is_not_called_silent(problems):
    """A reader may take its time, and machines may leave until then."""
    work = cluster._Cluster(Ray(cores=0), problems, (1.0, 0, Effort()))
    work.last_outcome = work.last_core = time.monotonic() - 1000
    work.require_progress()
    work.out = {1: None}
    work.require_progress()  # from when it was sent out


def test_without_ray_the_extra_is_named(problems, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ChainRouteError, match=r"missing-extra.*chainroute\[ray\]"):
        list(solve_many(problems, 1, cluster="auto"))


def test_no_cluster_at_an_address_is_told_at_once(problems):
    pytest.importorskip("ray")
    with pytest.raises(ChainRouteError, match=r"cluster-failed.*127.0.0.1:1"):
        list(solve_many(problems, 1, cluster="127.0.0.1:1"))


# -- a real one


@pytest.fixture
def two_nodes():
    """A head without cores and two nodes of one core each, in processes of their own."""
    utilities = pytest.importorskip("ray.cluster_utils")
    found = utilities.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [found.add_node(num_cpus=1) for _ in range(2)]
    found.wait_for_nodes()
    yield found, nodes
    found.shutdown()


@pytest.mark.slow
def test_a_node_that_is_killed_in_the_middle_costs_nothing(two_nodes):
    """Twelve problems of a second each; the node dies after the third outcome, and all twelve come, once."""
    ray_cluster, (_, node) = two_nodes
    problems = generate(variant("VRPTW"), 30, 12, seed=0)
    found = []
    for outcome in solve_many(problems, 1.0, cluster=ray_cluster.address):
        found.append(outcome)
        if len(found) == 3:
            ray_cluster.remove_node(node, allow_graceful=False)
    assert sorted(o.index for o in found) == list(range(12))
    assert all(check(problems[o.index], o.result.solution).feasible for o in found)


@pytest.mark.slow
def test_the_command_solves_on_a_cluster_and_resumes(two_nodes, tmp_path):
    """Six problems, of which two are there already; stopping gives up what is under way and exits cleanly."""
    ray_cluster, _ = two_nodes
    run = [Path(sys.executable).parent / "chainroute"]
    subprocess.run([*run, "generate", "CVRP", "-n", "20", "--count", "6", "-o", tmp_path / "in"], check=True)
    names = sorted(path.stem for path in (tmp_path / "in").iterdir())
    arguments = ["solve", tmp_path / "in", "--time-limit", "0.5", "-o", tmp_path / "{name}.sol", "--resume"]
    for name in names[:2]:
        (tmp_path / f"{name}.sol").write_text("there")
    done = subprocess.run(
        [*run, *arguments, "--cluster", ray_cluster.address], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Skipped 2 of 6" in done.stderr
    assert all((tmp_path / f"{name}.sol").exists() for name in names)
