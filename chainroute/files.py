"""Files of every kind: read safely, written whole or not at all."""

import os
from pathlib import Path

from chainroute.errors import fail

MAX_BYTES = 100_000_000

PathLike = str | os.PathLike[str]


def load(path: PathLike) -> bytes:
    """The content of a file that is neither missing, nor empty, nor beyond the cap."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in the path is a ValueError
        raise fail("file-not-found", "there is no such file.", str(path)) from None
    except IsADirectoryError:
        raise fail("file-unreadable", "is a folder; name the files in it.", str(path)) from None
    except OSError as error:
        raise fail("file-unreadable", f"{error.strerror or error}.", str(path)) from None
    if len(data) > MAX_BYTES:
        raise fail("file-too-large", f"has more than {MAX_BYTES // 1_000_000} MB.", str(path))
    if not data.strip():
        raise fail("file-empty", "has no content.", str(path))
    return data


def decode(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fail("not-text", f"byte {error.start}, in line {line}, is not UTF-8 text.", where) from None
    if "\0" in text:
        raise fail("not-text", "is binary, not text.", where)
    if not text.strip():
        raise fail("file-empty", "has no content.", where)
    return text


def save(path: PathLike, data: bytes) -> None:
    """Written beside its place, flushed to the disk and moved there: a half-written file is never seen."""
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise fail("file-unwritable", "is not a regular file.", str(path))
        beside = target.with_name(f".{target.name}.{os.getpid()}.part")  # of this process alone
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
        raise fail("file-unwritable", f"{reason}.", str(path)) from None


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
