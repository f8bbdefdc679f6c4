"""Coded errors, and the page that explains them (`make docs` writes it)."""

import pickle
import re
from pathlib import Path

import pytest

from chainroute import Problem, Solution, check
from chainroute.errors import CODES, ChainRouteError, Fault, Place, fail, printable
from website.errors import PAGE, VIOLATIONS, page


def test_page_lists_every_code():
    assert PAGE.read_text() == page(), "run `make docs`"


def test_page_lists_every_violation():
    source = Path(check.__code__.co_filename).read_text()
    assert set(re.findall(r'Violation\(\s*"([a-z-]+)"', source)) == set(VIOLATIONS)


@pytest.mark.parametrize("code", CODES)
def test_code_is_kebab_case_and_remedy_a_sentence(code):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)
    assert CODES[code][0].isupper()
    assert CODES[code].endswith(".")


def test_fault_shows_code_place_message_and_remedy():
    fault = Fault("negative", "is -1.", Place("delivery", (3,), 4))
    assert str(fault) == "[negative] delivery[3]: is -1. Give a value of at least zero."
    assert fault.as_dict() == {
        "code": "negative",
        "where": "delivery[3]",
        "path": "delivery[3]",
        "field": "delivery",
        "location": 4,
        "message": "is -1.",
        "remedy": "Give a value of at least zero.",
    }


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place(), ""),
        (Place("capacity"), "capacity"),
        (Place("distance_matrix", (1, 2), 1), "distance_matrix[1, 2]"),
        (Place("customer", location=3, name="Ada"), "customer 'Ada'"),
        (Place("delivery", (2,), 3, within="line 12"), "line 12"),
        (Place("customer", location=3, name="Ada", within="line 12"), "customer 'Ada' (line 12)"),
        (Place("capacity", file="a.vrp"), "a.vrp: capacity"),
        (Place(file="a.vrp"), "a.vrp"),
    ],
)
def test_a_place_in_words(place, words):
    """They are in the file's own words where it has some, with a customer's name in any case."""
    assert str(place) == words == Fault("negative", "is -1.", place).where


def test_a_text_is_a_field_and_a_path_a_file():
    assert Fault("negative", "is -1.", "capacity").at == Place("capacity")
    assert Fault("file-empty", "is empty.", Path("a.vrp")).at == Place(file="a.vrp")


def test_a_remedy_fits_the_fault_and_stays_with_it():
    """Wherever the fault is moved to, and in another process."""
    fault = fail("bad-option", "is taken.", "port", "Choose another.").faults[0]
    assert fault.remedy == fault.moved(field="--port").remedy == "Choose another."
    assert pickle.loads(pickle.dumps(fault)) == fault
    assert Fault("bad-option", "is 9.", "starts").remedy == CODES["bad-option"]


def test_fault_without_place_has_no_empty_prefix():
    assert str(Fault("file-empty", "nothing in it.")) == (
        "[file-empty] nothing in it. Give a file with content."
    )


def test_fault_refuses_a_code_that_is_not_documented():
    with pytest.raises(KeyError, match="no-such-code"):
        Fault("no-such-code", "...")


def test_error_lists_all_faults_one_per_line():
    faults = [Fault("negative", "is -1.", "a"), Fault("not-finite", "is nan.", "b")]
    error = ChainRouteError(iter(faults))
    assert error.faults == tuple(faults)
    assert str(error).splitlines() == [str(f) for f in faults]


def test_what_a_terminal_would_act_on_is_shown_as_escapes():
    """A name from a file can neither colour the screen, set its title, break a line nor turn its direction;
    letters, accents, emoji and the joiners that some scripts need stay as they are."""
    hostile = "\x1b[31mred\x07\r\n\x9b\x7f\u202e\u2028"
    assert printable(hostile) == r"\x1b[31mred\x07\r\n\x9b\x7f\u202e\u2028"
    assert printable("Zoë \u200c 東京 👩‍🚒 [b]:smile:") == "Zoë \u200c 東京 👩‍🚒 [b]:smile:"
    fault = Fault("unknown-location", f"there is no '{hostile}'.", hostile)
    problem = Problem(
        capacity=1, delivery=[1], coords=[(0, 0), (3, 4)], name=hostile, names=[f"d{hostile}", f"c{hostile}"]
    )
    solution = Solution.of(problem, [(0, [1, 1])])
    texts = [str(fault), str(problem), repr(problem), str(solution), str(check(problem, solution))]
    for text in texts:
        assert "red" in text
        assert all(line == printable(line) for line in text.split("\n"))
    assert [len(text.split("\n")) for text in texts] == [1, 1, 1, 2, 3]


def test_error_crosses_process_borders_whole():
    error = pickle.loads(pickle.dumps(fail("bad-option", "is -1.", "time_limit")))
    assert isinstance(error, ChainRouteError)
    assert error.faults == (Fault("bad-option", "is -1.", "time_limit"),)
