"""Files of every kind: read safely, written whole or not at all."""

import glob
import os
import platform
import re
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from chainroute.errors import ChainRouteError, Fault, Place, fail

USE_ENDING = "Let the path end in one of these: the ending says the format."
NAMED_ALIKE = "Give each problem a name of its own, or write them to different folders."
MAX_BYTES = 100_000_000
STDIN = "-"  # the path that stands for standard input
PIPE_WAIT_SECONDS = 2.0  # for somebody to open the other end of a pipe

HOST = re.sub(r"[^\w.]", "_", platform.node())  # in names, since machines may share a folder

PathLike = str | os.PathLike[str]


def load(path: PathLike) -> bytes:
    """The content of a file that is neither missing, nor empty, nor beyond the cap; `-` is standard input."""
    if os.fspath(path) == "":
        raise fail("file-not-found", "the name of the file is empty.", "path")
    try:
        data = _content(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in the path is a ValueError
        raise fail("file-not-found", "there is no such file.", Path(path)) from None
    except IsADirectoryError:
        raise fail("file-unreadable", "is a folder; name the files in it.", Path(path)) from None
    except OSError as error:
        raise fail("file-unreadable", f"{error.strerror or error}.", Path(path)) from None
    if len(data) > MAX_BYTES:
        raise fail("file-too-large", f"has more than {MAX_BYTES // 1_000_000} MB.", Path(path))
    if not data.strip():
        raise fail("file-empty", "has no content.", Path(path))
    return data


def _content(path: PathLike, most: int) -> bytes:
    if os.fspath(path) == STDIN:
        return sys.stdin.buffer.read(most) if sys.stdin else b""
    if stat.S_ISFIFO(os.stat(path).st_mode):
        return _piped(path, most)
    with open(path, "rb") as file:
        return file.read(most)


def _piped(path: PathLike, most: int) -> bytes:
    """What somebody writes to a named pipe, however slowly; nobody is waited for only so long."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        deadline = time.monotonic() + PIPE_WAIT_SECONDS
        while (first := pipe.read(1)) == b"":  # nobody has opened it for writing; None: nothing written yet
            if time.monotonic() > deadline:
                raise fail("file-unreadable", "is a pipe that nobody writes to.", Path(path))
            time.sleep(PIPE_WAIT_SECONDS / 100)
        os.set_blocking(pipe.fileno(), True)
        data = bytearray(first or b"")
        while len(data) < most and (more := pipe.read(most - len(data))):
            data += more
        return bytes(data)


def decode(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fail(
            "not-text", f"byte {error.start}, in line {line}, is not UTF-8 text.", Place(file=where)
        ) from None
    if "\0" in text:
        raise fail("not-text", "is binary, not text.", Place(file=where))
    if not text.strip():
        raise fail("file-empty", "has no content.", Place(file=where))
    return text


def save(path: PathLike, data: bytes) -> None:
    """Written beside its place, flushed to the disk and moved there: a half-written file is never seen."""
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise fail("file-unwritable", "is not a regular file.", Path(path))
        # Of this thread alone; `tidy` goes by the host and the process.
        beside = target.with_name(f".{HOST}-{os.getpid()}-{threading.get_ident()}.part")
        try:
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
            _flush_folder(target.parent)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise fail("file-unwritable", f"{reason}.", Path(path)) from None


def tidy(folders: Iterable[Path]) -> None:
    """Removes what processes of this machine that were killed had half written there."""
    for folder in folders:
        with suppress(OSError):
            for part in folder.glob(f".{glob.escape(HOST)}-*-*.part"):
                process = part.name.removeprefix(f".{HOST}-").partition("-")[0]
                if process.isdigit() and not _is_alive(int(process)):
                    part.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _flush_folder(folder: Path) -> None:
    """Makes the move itself durable, where the system can open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def identity(path: PathLike) -> object:
    """What all names of one file have in common: links, other spellings, other cases where the file system
    takes them for the same."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # not there yet
        return os.path.abspath(path) if "\0" in os.fspath(path) else os.path.realpath(path)
    return found.st_dev, found.st_ino


def encode(text: str) -> bytes:
    return text.encode("utf-8")


# -- places to write to


def folder(path: PathLike) -> None:
    """Makes the folder where it is not there yet."""
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as error:
        raise fail("file-unwritable", f"{getattr(error, 'strerror', None) or error}.", str(path)) from None


def paths(
    pattern: str,
    names: Sequence[str],
    option: str,
    endings: Sequence[str] = (),
    keep: Sequence[Path] = (),
) -> list[Path]:
    """Where to write for each name: {name} in the pattern stands for it. Never to a file to `keep`: an input
    is not written over, however it is named."""
    found = expanded(pattern, names)
    faults = []
    if endings and Path(pattern).suffix.lower() not in endings:
        faults.append(
            Fault("bad-option", f"'{pattern}' does not end in {', '.join(endings)}.", option, USE_ENDING)
        )
    if len(names) > 1 and "{name}" not in pattern:
        message = f"there are {len(names)} problems; put {{name}} into '{pattern}'."
        faults.append(Fault("bad-option", message, option, "It stands for the name of each."))
    elif twice := [path for path, times in Counter(found).items() if times > 1]:
        faults.append(
            Fault("bad-option", f"two problems would be written to '{twice[0]}'.", option, NAMED_ALIKE)
        )
    kept = {identity(path): path for path in keep}
    if over := [(path, kept[key]) for path in found if (key := identity(path)) in kept]:
        path, source = over[0]
        same = "" if path == source else f", which is '{path}'"
        more = f", and {len(over) - 1} more" * (len(over) > 1)
        message = f"would write over the input '{source}'{same}{more}; choose another name."
        faults.append(Fault("bad-option", message, option, "Inputs are kept."))
    if reasons := [reason for path in found if (reason := _obstacle(path))]:
        faults.append(Fault("file-unwritable", reasons[0], option))
    if faults:
        raise ChainRouteError(faults)
    return found


def expanded(pattern: str, names: Sequence[str]) -> list[Path]:
    """The path for each name, which takes the place of {name} in the pattern."""
    return [Path(pattern.replace("{name}", _file_name(name))) for name in names]


def _obstacle(path: Path) -> str:
    """Why the path cannot be written to, as far as can be seen beforehand."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # such as a name that is too long
        return f"'{path}': {getattr(error, 'strerror', None) or error}."
    if not path.parent.is_dir():
        return f"there is no folder '{path.parent}'."
    if path.is_dir():
        return f"'{path}' is a folder."
    if _is_printed_to(path):
        return f"'{path}' is what this command prints to."
    folder = Path(os.path.realpath(path)).parent  # of what a link leads to
    return "" if os.access(folder, os.W_OK) else f"the folder '{folder}' may not be written to."


def _is_printed_to(path: Path) -> bool:
    """Whether the path is standard output or error, such as /dev/stdout in a log: another file in its place
    would lose what stands there."""
    for stream in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream), os.stat(path)):
                return True
    return False


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.+\[\]-]+", "_", name).lstrip(".") or "_"
