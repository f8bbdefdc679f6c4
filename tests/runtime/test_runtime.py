"""The machine as runs see it: cores, device, progress, threads, the code's revision."""

import os
import re
import subprocess
import threading
from multiprocessing import Pipe

import misbehaving
import pytest
import torch

from chainroute.errors import ChainRouteError
from chainroute.neural.device import choose_device, device_name
from chainroute.runtime import revision as revisions
from chainroute.runtime import worker
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import Deadline
from chainroute.runtime.progress import StatusLine, clock
from chainroute.runtime.revision import revision
from chainroute.runtime.threads import begun


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    """Where the system says so; elsewhere all there are."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_a_device_is_chosen_and_named():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert device_name(torch.device("cpu")) == f"CPU, {cores()} cores"
    with pytest.raises(ChainRouteError, match=r"\[bad-option\] device: 'warp' cannot be used"):
        choose_device("warp")


def test_the_revision_is_gits_or_unknown(monkeypatch):
    """Outside a checkout, or without git, nobody knows."""
    assert re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?|unknown|.+-g[0-9a-f]+(-dirty)?", revision())

    def missing(*command, **options):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert revisions.revision.__wrapped__() == "unknown"


def test_progress_speaks_seldom_where_lines_stay(capsys):
    """Elsewhere than on a terminal a line is told once in a while, a note always; silence is silent."""
    progress = StatusLine()
    progress.line("first")
    progress.line("second")
    progress.note("done")
    StatusLine(silent=True).note("nothing")
    assert capsys.readouterr().err == "first\ndone\n"
    assert [clock(seconds) for seconds in (-1, 59.6, 3661)] == ["0:00", "1:00", "1:01:01"]


def test_work_that_is_begun_goes_on_until_somebody_asks_for_it():
    """What it returns is there as often as it is asked for, and what it raises is raised there."""
    going, over = threading.Event(), threading.Event()

    def work():
        going.set()
        assert over.wait(60)
        return 7

    result = begun(work)
    assert going.wait(60)
    over.set()
    assert [result(), result()] == [7, 7]
    failed = begun(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed()


def test_a_pipe_that_is_closed_while_it_is_read_has_hung_up(monkeypatch):
    """Between the length of a message and the message, as when the process ends; other faults stay."""
    ours, theirs = Pipe()
    with ours, theirs:
        reader = object.__new__(worker._Worker)
        reader.pipe, reader.pending = ours, 1
        read = ours._recv

        def closing(size):
            found = read(size)
            ours.close()
            return found

        monkeypatch.setattr(ours, "_recv", closing)
        theirs.send(("ready", None))
        with pytest.raises(EOFError):
            reader.receive(Deadline.after(5), None)
    ours, theirs = Pipe()
    with ours, theirs:
        reader.pipe = ours
        theirs.send_bytes(b"cbuiltins\nlen\n(tR.")  # a message that cannot be made: len()
        with pytest.raises(TypeError, match="exactly one argument"):
            reader.receive(Deadline.after(5), None)


def test_a_worker_that_wants_too_much_memory_fails_alone():
    """It hears of it as a fault, and goes on with the next task; this process has no bound."""
    sizes = []

    def grow(megabytes):
        args, until = (megabytes,), Deadline.after(30)
        return worker.run(misbehaving.grow, args, until, sizes.append, kind="bounded", memory=600_000_000)

    with pytest.raises(ChainRouteError, match=r"\[solver-failed\].*MemoryError"):
        grow(2000)
    assert grow(50)
    assert sizes == [50_000_000]
    assert worker.memory_of_machine() > 600_000_000
