"""Files of other kinds, told as what they are: a spreadsheet is not a broken archive."""

import io
import re
import zipfile

from chainroute.errors import Place, fail

# How files of other kinds begin.
BEGINNINGS = {
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "a file of an old Excel or Word (.xls, .doc); save it as .xlsx",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"SQLite format 3": "a database",
    b"PAR1": "a table in Parquet",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"BZh": "compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "compressed with xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first",
    b"7z\xbc\xaf": "an archive; unpack it first",
}
# What the names of the files in a zip archive begin with.
ZIPPED = {
    "word/": "a Word document (.docx)",
    "content.xml": "an OpenDocument file",
}


def refuse(data: bytes, where: str) -> None:
    """Raises what the content of the file is, if it is of a kind that is known and not read."""
    kind = next((kind for start, kind in BEGINNINGS.items() if data.startswith(start)), "")
    if kind := kind or _zipped(data):
        raise fail("unknown-format", f"is {kind}.", Place(file=where))


def _zipped(data: bytes) -> str:
    if not data.startswith(b"PK"):
        return ""
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError):  # for the reader of .npz to tell
        return ""
    if not names or any(name.endswith(".npy") or name == "xl/workbook.xml" for name in names):
        return ""
    kinds = (kind for start, kind in ZIPPED.items() if any(name.startswith(start) for name in names))
    return next(kinds, "an archive; unpack it first")


def of_text(line: str) -> str:
    """What a text that begins with such a line is, where no format knows it."""
    if re.match(r"\s*<(!doctype html|html)\b", line, re.IGNORECASE):
        return "is a web page."
    if line.lstrip().startswith("<"):
        return "is XML."
    if re.fullmatch(r"([^,;\t]*[,;\t]){2,}[^,;\t]*", line.strip()):
        return "is a table, but has no headings that we know, such as name, x, y, delivery."
    return f"begins with '{line.strip()[:40]}', as no known format does."
