"""A share of `make fuzz`, and everything that it once found."""

from itertools import islice

import fuzz
import pytest

MANY = 400  # mutated files


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", sorted(fuzz.FINDS.iterdir()), ids=lambda file: file.name)
def test_what_once_went_wrong(file, tmp_path):
    fuzz.tried(file.read_bytes(), tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_a_share_of_mutated_files(tmp_path, request):
    """More, and others, with --hypothesis-profile thorough."""
    thorough = request.config.getoption("hypothesis_profile") == "thorough"
    for data in islice(fuzz.mutations(1 if thorough else 0), 20 * MANY if thorough else MANY):
        fuzz.tried(data, tmp_path)
