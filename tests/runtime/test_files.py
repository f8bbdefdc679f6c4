"""Files: pipes, standard input and names that the system refuses are read or told; nothing waits for ever."""

import errno
import io
import os
import subprocess
import sys
import threading
import time

import pytest

from chainroute.errors import ChainRouteError
from chainroute.formats import read
from chainroute.runtime import files
from chainroute.runtime.files import load, save

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
LINE = "NAME : p\nTYPE : CVRP\nDIMENSION : 2\nCAPACITY : 5\nEDGE_WEIGHT_TYPE : EUC_2D\n"
LINE += "NODE_COORD_SECTION\n1 0 0\n2 3 4\nDEMAND_SECTION\n1 0\n2 1\nDEPOT_SECTION\n1\nEOF\n"


def refused(path, code):
    with pytest.raises(ChainRouteError) as caught:
        load(path)
    (fault,) = caught.value.faults
    assert fault.code == code
    return fault


class Stdin:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@needs_pipes
def test_a_pipe_that_nobody_writes_to_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIPE_WAIT_SECONDS", 0.2)
    os.mkfifo(tmp_path / "pipe")
    begin = time.monotonic()
    assert "nobody writes" in refused(tmp_path / "pipe", "file-unreadable").message
    assert time.monotonic() - begin < 5


@needs_pipes
def test_a_slow_writer_is_waited_for(tmp_path, monkeypatch):
    """It opens the pipe at once and writes in two parts, the first long after our patience would end."""
    monkeypatch.setattr(files, "PIPE_WAIT_SECONDS", 0.3)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        with open(pipe, "wb", buffering=0) as file:
            time.sleep(0.6)
            file.write(b"one ")
            time.sleep(0.2)
            file.write(b"two")

    writer = threading.Thread(target=write)
    writer.start()
    assert load(pipe) == b"one two"
    writer.join()


@needs_pipes
def test_a_pipe_without_end_is_read_up_to_the_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"exec cat /dev/zero > '{pipe}'"]) as endless:
        refused(pipe, "file-too-large")
        endless.kill()


def test_a_dash_is_standard_input(monkeypatch):
    """What has no name of its own is called stdin; nothing at all, and a closed stream, are an empty file."""
    monkeypatch.setattr(sys, "stdin", Stdin(LINE.encode()))
    assert read("-").name == "p"
    monkeypatch.setattr(sys, "stdin", Stdin(LINE.replace("NAME : p\n", "").encode()))
    assert read("-").name == "stdin"
    assert refused("-", "file-empty").where == "-"  # it has been read
    monkeypatch.setattr(sys, "stdin", None)
    refused("-", "file-empty")


def test_an_empty_name_is_no_folder():
    assert "empty" in refused("", "file-not-found").message


def test_a_name_too_long_is_told_in_reading_and_writing(tmp_path):
    long = tmp_path / ("n" * 300)
    assert "too long" in refused(long, "file-unreadable").message
    with pytest.raises(ChainRouteError, match=r"file-unwritable.*too long"):
        save(long, b"x")


def test_the_longest_name_can_be_written(tmp_path):
    """What is written beside it on the way has a name of its own length."""
    longest = tmp_path / ("n" * 255)
    save(longest, b"x")
    assert [path.name for path in tmp_path.iterdir()] == [longest.name]


def test_threads_that_write_one_file_do_not_mix(tmp_path):
    """The last one wins; what is there is always whole."""
    target = tmp_path / "file"
    contents = [bytes([65 + i]) * 200_000 for i in range(4)]
    writers = [threading.Thread(target=save, args=(target, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert target.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    save(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ChainRouteError, match=r"file-unwritable.*No space left"):
        save(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
