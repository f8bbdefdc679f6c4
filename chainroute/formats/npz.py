"""The benchmark's .npz files: many problems of one size and variant, stacked (chainroute.problem.arrays)."""

import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from chainroute.errors import fail
from chainroute.formats.common import Faults, short
from chainroute.problem import Problem
from chainroute.problem.arrays import Arrays, arrays_from_problems, problems_from_arrays
from chainroute.problem.measure import Rounding
from chainroute.runtime.files import MAX_BYTES


def recognises(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def read(data: bytes, name: str, rounding: Rounding | None, index: int | None = None) -> list[Problem]:
    """All problems of the archive; or that at the index of several, and no other is unpacked."""
    problems = problems_from_arrays(_unpack(data, name, index), name if index is None else f"{name}[{index}]")
    return problems if rounding is None else [p.replace(rounding=rounding) for p in problems]


def count(data: bytes, name: str) -> int:
    """How many problems there are, as the header of the demands says; 0 where nothing does."""
    try:
        with _opened(data, name) as archive, archive.open("demand_linehaul.npy") as file:
            return _header(file)[0][0]
    except (KeyError, IndexError, ValueError):  # without demands, without problems, without sense
        return 0


def _unpack(data: bytes, name: str, index: int | None) -> Arrays:
    """The arrays of the archive, which may hold nothing else; with an index, their rows of that problem."""
    faults, arrays = Faults(), {}
    rows = None if index is None else count(data, name)
    with _opened(data, name) as archive:
        for member in archive.infolist():
            key = member.filename.removesuffix(".npy")
            if key in arrays:
                faults.add("duplicate-section", "holds two arrays of one name.", name)
            try:
                with archive.open(member) as file:
                    arrays[key] = _array(file, index, rows)
            except (ValueError, MemoryError) as error:  # the latter by what the header claims
                faults.add("bad-syntax", f"is not an array of numbers: {str(error)[:200]}.", short(key))
    faults.stop()
    return arrays


@contextmanager
def _opened(data: bytes, name: str) -> Iterator[zipfile.ZipFile]:
    """The archive, of bounded size; whatever is wrong with it, then or later, is a fault of the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                message = f"has more than {MAX_BYTES // 1_000_000} MB when unpacked."
                raise fail("file-too-large", message, name)
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise fail("bad-syntax", f"is not a sound archive: {error}.", name) from None


def _array(file: IO[bytes], index: int | None, rows: int | None) -> NDArray[Any]:
    """The array in the file; with an index, its row there alone, of so many, read without the others."""
    shape, columns_first, dtype = _header(file)
    if index is not None and shape[:1] != (rows,):
        raise ValueError(f"it has shape {shape}, where there are {rows} problems")
    if index is None or columns_first or dtype.hasobject:
        file.seek(0)
        whole: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return whole if index is None else whole[index : index + 1]
    size = dtype.itemsize * math.prod(shape[1:])
    file.seek(index * size, io.SEEK_CUR)
    return np.frombuffer(file.read(size), dtype).reshape(1, *shape[1:])


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of the array that follows, whether its columns come first, and the type of its numbers."""
    older = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if older else np.lib.format.read_array_header_2_0
    try:
        return read(file)
    except (SyntaxError, TokenError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"its header makes no sense: {error}") from None


def write(problems: Sequence[Problem]) -> bytes:
    buffer = io.BytesIO()
    arrays: Any = arrays_from_problems(problems)
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
