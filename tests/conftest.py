"""Settings that all tests share."""

import gc
import os
import signal

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is loaded: test workers run side by side

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is loaded: kernels are tested without a GPU too

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, which its children inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("chainroute", derandomize=True, deadline=None, max_examples=20)
settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=200)  # of make test-slow
settings.load_profile("chainroute")

gc.disable()  # during collection: what is loaded stays, and looking for garbage took a fifth of the time


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def service():
    """The address of a service for the tests of pages."""
    from browsing import served

    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    from browsing import chromium

    with chromium() as found:
        yield found


@pytest.fixture
def counted_loops(monkeypatch):
    """Interpreted, a number that a kernel was given can be the end of a loop: Triton makes an integer of an
    array for it, which NumPy has refused since 2.4."""
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    patch = interpreter._patch_lang_tensor

    def counting(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", counting)


@pytest.fixture
def one_route(monkeypatch):
    """A solver that visits all customers in order from the first depot, whatever the rules say."""
    from chainroute import Solution
    from chainroute.cli import policies
    from chainroute.cli import solve as solving
    from chainroute.solve import Outcome, Progress, Result

    def front_door(time_limit, seed, effort, cluster, problems, start, on_progress, stop):
        for i, problem in enumerate(problems):
            solution = Solution.of(problem, [(0, problem.customers)])
            history = (Progress(0.1, solution, "search"),)
            yield Outcome(i, problem, Result(solution, 0.1, history, ("All is well.",)))

    monkeypatch.setattr(policies, "ready", lambda effort: None)
    monkeypatch.setattr(solving, "_front_door", front_door)
