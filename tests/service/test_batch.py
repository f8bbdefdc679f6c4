"""service/batch.py: what is decoded together, and what happens to it; the policy does as it is told."""

import threading
import time
from dataclasses import replace

import pytest
from services import each, until

from chainroute import ChainRouteError, check, variant
from chainroute.errors import fail
from chainroute.generate import generate
from chainroute.options.rules import BATCH_STARTS
from chainroute.runtime.deadline import Deadline
from chainroute.service.batch import MAX_BATCHED_CUSTOMERS, Batcher
from chainroute.service.metrics import Metrics
from chainroute.solve import Effort

EFFORT = Effort(polish=False, augmentations=1)


def problems(count, customers=5):
    return generate(variant("CVRP"), customers, count, seed=1)


class Policy:
    """In place of the policy: each batch takes `seconds`, and the names in it are written down."""

    def __init__(self, seconds=0.0, poison=None):
        self.seconds, self.poison, self.batches = seconds, poison, []
        self.failure = fail("solver-failed", "the process died.")
        self.gate = threading.Event()  # no batch goes on before it is open
        self.gate.set()

    def __call__(self, problems, effort, seed, deadline, aside=None):
        if aside:
            return [each(p) for p in problems]
        names = [p.name for p in problems]
        self.batches.append(names)
        self.gate.wait(30)
        time.sleep(self.seconds)
        if self.poison in names:
            raise self.failure
        return [each(p) for p in problems]


def soon(seconds=10.0):
    return Deadline.after(seconds)


class Batches(Batcher):
    """One whose lanes are all busy with a problem of another seed, until it is let go."""

    def __init__(self, policy, most=8, lanes=1):
        super().__init__(most, lanes, policy, Metrics())
        self.policy, policy.gate = policy, threading.Event()
        self.busy = [self.add(p, seed=1000 + i) for i, p in enumerate(problems(lanes))]
        until(lambda: len(policy.batches) == lanes)
        policy.batches.clear()

    def add(self, problem, effort=EFFORT, seed=0, turn=0.0):
        return self.announce(problem, effort, seed, turn)

    def go(self, *tickets):
        """Lets the lanes work, and gives what they find for the tickets."""
        self.policy.gate.set()
        return [self.propose(ticket, ticket.known, soon()) for ticket in tickets]


def test_who_comes_first_is_decoded_at_once_and_those_who_wait_together():
    """Nobody waits for a batch to fill; it is what has gathered while the lane was busy."""
    policy = Policy()
    batches = Batches(policy, most=3)
    tickets = [batches.add(p, turn=i) for i, p in enumerate(problems(4))]
    names = [t.known.name for t in tickets]
    found = batches.go(*tickets)
    assert policy.batches == [names[:3], names[3:]]
    for ticket, solution in zip(tickets, found, strict=True):
        assert solution.problem is ticket.known
        assert check(ticket.known, solution).feasible


def test_whose_turn_is_next_is_decoded_first():
    policy = Policy()
    batches = Batches(policy, most=2)
    tickets = [batches.add(p, turn=turn) for p, turn in zip(problems(4), (3.0, 1.0, 4.0, 2.0), strict=True)]
    batches.go(*tickets)
    assert policy.batches == [[tickets[i].known.name for i in pair] for pair in ((1, 3), (0, 2))]


def test_routes_are_found_before_they_are_asked_for():
    """A job that waits in the queue has them when its turn comes, however little time it has."""
    batches = Batches(Policy(seconds=0.3))
    ticket = batches.add(problems(1)[0])
    batches.policy.gate.set()
    until(lambda: ticket.ready)
    assert batches.propose(ticket, ticket.known, soon(0.0)) is ticket.solution is not None


def test_only_the_same_effort_seed_and_size_go_together():
    policy = Policy()
    batches = Batches(policy)
    five, other, seeded, gone = problems(4)
    (eleven,), (ten,), (large,) = problems(1, 11), problems(1, 10), problems(1, MAX_BATCHED_CUSTOMERS + 1)
    ticket = batches.add(five)
    rest = [
        batches.add(other, replace(EFFORT, starts=1), turn=1),
        batches.add(seeded, seed=1, turn=2),
        batches.add(eleven, turn=3),  # more than twice as many customers
    ]
    batches.add(ten, turn=4)
    batches.add(large, turn=5)
    batches.withdraw(batches.add(gone, turn=6))
    batches.go(ticket, *rest)
    assert policy.batches == [[five.name, ten.name], [other.name], [seeded.name], [eleven.name]]


def test_lanes_share_those_who_wait():
    """Six problems and two lanes: half of them for the first, half of what is left for the second."""
    policy = Policy(seconds=0.3)
    batches = Batches(policy, lanes=2)
    tickets = [batches.add(p, turn=i) for i, p in enumerate(problems(6))]
    assert all(batches.go(*tickets))
    assert [len(batch) for batch in policy.batches[:2]] == [3, 2]
    assert sum(map(len, policy.batches)) == 6


def test_large_problems_make_small_batches():
    """A batch holds up the lane for a second or two, not for as long as many large problems take."""
    policy = Policy()
    batches = Batches(policy)
    tickets = [batches.add(p, turn=i) for i, p in enumerate(problems(4, 120))]
    batches.go(*tickets)
    assert [len(batch) for batch in policy.batches] == [2, 2]


@pytest.mark.parametrize("failure", [fail("solver-failed", "the process died."), OSError("too many files")])
def test_one_problem_that_breaks_the_policy_takes_no_other_with_it(failure):
    """The batch with it fails; then each is decoded alone, and only the bad one has none."""
    policy = Policy()
    policy.failure = failure
    batches = Batches(policy)
    tickets = [batches.add(p, turn=i) for i, p in enumerate(problems(3))]
    policy.poison = tickets[1].known.name
    assert all(batches.go(tickets[0], tickets[2]))
    with pytest.raises(ChainRouteError):
        batches.propose(tickets[1], tickets[1].known, soon())
    assert [len(batch) for batch in policy.batches] == [3, 1, 1, 1]


def test_who_asks_in_vain_goes_on_without_and_is_not_decoded_any_more():
    batches = Batches(Policy())
    ticket = batches.add(problems(1)[0])
    begin = time.monotonic()
    assert batches.propose(ticket, ticket.known, soon(0.1)) is None
    assert time.monotonic() - begin < 5
    batches.go(*batches.busy)
    assert batches.policy.batches == []


def test_who_is_cancelled_waits_no_longer():
    batches = Batches(Policy())
    ticket = batches.add(problems(1)[0])
    thread = threading.Thread(target=batches.propose, args=(ticket, ticket.known, soon(60)))
    thread.start()
    batches.withdraw(ticket)
    thread.join(10)
    assert not thread.is_alive()
    batches.go()


@pytest.mark.parametrize(
    ("customers", "effort"),
    [(MAX_BATCHED_CUSTOMERS + 1, Effort()), (5, Effort(starts=1)), (5, Effort(augmentations=1, samples=9))],
    ids=["large", "eight maps", "samples"],
)
def test_what_takes_long_holds_up_nobody(customers, effort):
    """It is decoded aside, with the effort as given, even while a batch is under way."""
    asked = []

    class Noted(Policy):
        def __call__(self, problems, effort, seed, deadline, aside=None):
            if aside:
                asked.append((effort, seed, aside))
            return super().__call__(problems, effort, seed, deadline, aside)

    batches = Batches(Noted())
    ticket = batches.add(problems(1, customers)[0], effort, seed=7)
    assert ticket.ready
    assert batches.propose(ticket, ticket.known, soon()) is not None
    assert asked == [(effort, 7, ticket.stop)]
    batches.withdraw(ticket)
    assert ticket.stop.is_set()
    batches.go()


def test_an_effort_left_open_is_light():
    """So that those who wait can go along; what is said is kept."""
    batches = Batches(Policy())
    ticket = batches.add(problems(1)[0], Effort(polish=False))
    batches.go(ticket)
    assert ticket.effort == Effort(polish=False, starts=BATCH_STARTS, augmentations=1, recombine=True)
