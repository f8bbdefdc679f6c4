"""The benchmark's .npz files: many problems of one size and variant, stacked (chainroute.arrays)."""

import io
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainroute.arrays import Arrays, arrays_from_problems, problems_from_arrays
from chainroute.errors import fail
from chainroute.files import MAX_BYTES
from chainroute.formats.common import Faults
from chainroute.measure import Rounding
from chainroute.problem import Problem


def recognises(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def read(data: bytes, name: str, rounding: Rounding | None) -> list[Problem]:
    problems = problems_from_arrays(_unpack(data, name), name)
    return problems if rounding is None else [p.replace(rounding=rounding) for p in problems]


def _unpack(data: bytes, name: str) -> Arrays:
    """The arrays of the archive, which may hold nothing else."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_BYTES:
                message = f"has more than {MAX_BYTES // 1_000_000} MB when unpacked."
                raise fail("file-too-large", message, name)
            files = {m.filename.removesuffix(".npy"): io.BytesIO(archive.read(m)) for m in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise fail("bad-syntax", f"is not a sound archive: {error}.", name) from None
    faults, arrays = Faults(), {}
    if len(files) != len(members):
        faults.add("duplicate-section", "holds two arrays of one name.", name)
    for key, file in files.items():
        try:
            arrays[key] = np.lib.format.read_array(file, allow_pickle=False)
        except (ValueError, MemoryError) as error:  # the latter by what the header claims
            faults.add("bad-syntax", f"is not an array of numbers: {str(error)[:200]}.", key)
    faults.stop()
    return arrays


def write(problems: Sequence[Problem]) -> bytes:
    buffer = io.BytesIO()
    arrays: Any = arrays_from_problems(problems)
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
