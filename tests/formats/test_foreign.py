"""Files of other kinds are told as what they are, as problems and as routes."""

import io
import zipfile

import pytest

from chainroute import ChainRouteError, Problem
from chainroute.formats import read, read_solution

PROBLEM = Problem(capacity=1, delivery=[1], coords=[(0, 0), (3, 4)])


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name in names:
            made.writestr(name, "<xml/>")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (archive("[Content_Types].xml", "word/document.xml"), "is a Word document"),
        (archive("mimetype", "content.xml"), "is an OpenDocument file"),
        (archive("A.vrp", "B.vrp"), "is an archive; unpack it first."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "is a file of an old Excel"),
        (b"\x1f\x8b\x08" + bytes(20), "is compressed with gzip; unpack it first."),
        (b"%PDF-1.4\n", "is a PDF."),
    ],
)
def test_what_it_is(content, told, tmp_path):
    path = tmp_path / "file.vrp"
    path.write_bytes(content)
    for call in (lambda: read(path), lambda: read_solution(path, PROBLEM)):
        with pytest.raises(ChainRouteError) as caught:
            call()
        (fault,) = caught.value.faults
        assert (fault.code, fault.where) == ("unknown-format", str(path))
        assert fault.message.startswith(told)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("colour,shape,taste\n1,2,3\n", "is a table, but has no headings that we know"),
        ("Farbe;Form;Ort\n1;2;3\n", "is a table, but has no headings that we know"),
        ("<?xml version='1.0'?><instance/>", "is XML."),
        ("<!DOCTYPE html>\n<html></html>", "is a web page."),
        ("Dear sir or madam, hello", "begins with 'Dear sir or madam, hello'"),
    ],
)
def test_text_that_no_format_knows(content, told, tmp_path):
    path = tmp_path / "file.vrp"
    path.write_text(content)
    with pytest.raises(ChainRouteError) as caught:
        read(path)
    assert caught.value.faults[0].message.startswith(told)


def test_a_title_with_commas_is_no_table(tmp_path):
    """A Solomon file begins with its name, whatever that is."""
    path = tmp_path / "file.txt"
    rows = "VEHICLE\nNUMBER CAPACITY\n1 5\nCUSTOMER\nCUST NO. XCOORD. YCOORD. DEMAND READY DUE SERVICE\n"
    path.write_text(f"R101, small, two customers\n\n{rows}0 0 0 0 0 99 0\n1 3 4 1 0 99 0\n")
    assert read(path).name == "R101, small, two customers"
