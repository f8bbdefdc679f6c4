"""Writes docs/errors.md from the codes: python -m website.errors"""

from pathlib import Path

from chainroute.errors import CODES
from chainroute.runtime.files import encode, save

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"

VIOLATIONS = {
    "customer-missing": "A customer is on no route.",
    "customer-repeated": "A customer is visited more than once; the amount counts the visits too many.",
    "fleet-exceeded": "A depot sends out more vehicles than it has.",
    "capacity-exceeded": "Deliveries still on board plus pickups so far are more than the vehicle holds.",
    "linehaul-after-backhaul": "A delivery follows a pickup on a route where linehauls come first.",
    "no-road": "A route goes where there is no road.",
    "window-missed": "Service would start after the customer's window has closed.",
    "depot-closed": "A closed route is back after its depot has closed.",
    "shift-exceeded": "A route ends after the shift of its vehicle.",
    "duration-exceeded": "A route takes more time than its vehicle may be out.",
    "skill-missing": "A vehicle has not the skills that a customer needs.",
    "wrong-depot": "A vehicle starts or reloads at a depot where its type does not.",
    "trips-exceeded": "A vehicle goes out more often than its type may.",
    "limit-exceeded": "A route is longer than the distance limit.",
}


def table(heading: str, rows: dict[str, str]) -> str:
    return "\n".join(
        [f"| code | {heading} |", "| --- | --- |", *(f"| `{c}` | {t} |" for c, t in rows.items())]
    )


def page() -> str:
    """docs/errors.md, made from the codes themselves."""
    return f"""\
# Errors

Everything you can get wrong ends in one message that lists all faults found. Each fault has a code that stays
the same between versions, the place (field, customer, section or line), what is wrong and how to fix it:

    [negative] delivery[3]: is -1. Give a value of at least zero.

In Python it is a `ChainRouteError` with `.faults`. The command prints it to stderr and exits with 2 (with
1 for `no-solution`, where it is proven that there is none; with 3 for `no-plan-found`, where there was none
in time; with 70 for `solver-failed` and `internal-error`, where a solver or the program broke
off); with `--json` it prints `{{"error": {{"faults": [...]}}}}` to stdout instead.

## Faults

{table("how to fix it", CODES)}

## Violations

A well-formed solution that breaks a rule of its problem is no error: the judge (`chainroute check`) answers
with every broken rule, the route, the customer or depot, and by how much. The command exits with 1.

{table("the broken rule", VIOLATIONS)}
"""


if __name__ == "__main__":
    save(PAGE, encode(page()))
