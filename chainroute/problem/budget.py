"""How large an input may be: priced from what it says of itself, before anything of that size is made."""

from chainroute.errors import Fault

MAX_LOCATIONS = 10_100  # 10,000 customers and their depots; a dense matrix of this size takes 820 MB
MAX_TYPES = 1_000  # of vehicles
MAX_MATRIX_BYTES = 4_000_000_000  # of all matrices of a problem: its own, and those of its vehicle types
MAX_TRIPS = 25_000_000  # types of vehicles x their depots x customers, which are all looked at: some 3 GB
MAX_CELLS = 25_000_000  # of a table, or of all sheets of a workbook: a matrix of 5,000 stops


def too_many_matrices(locations: int, matrices: int, field: str, most: int = MAX_MATRIX_BYTES) -> list[Fault]:
    """A fault where so many matrices of so many locations do not fit."""
    needed = 8 * matrices * locations**2
    if needed <= most:
        return []
    sizes = f"{needed / 1e6:,.0f} MB; at most {most / 1e6:,.0f}"
    message = f"{matrices} matrices of {locations} locations need {sizes}."
    remedy = "Let vehicle types have fewer different speeds or matrices, or split the problem."
    return [Fault("too-large", message, field, remedy)]
