"""service/batch.py: what is decoded together, and what happens to it; the policy does as it is told."""

import threading
import time
from dataclasses import replace

import pytest
from services import each

from chainroute import ChainRouteError, check, variant
from chainroute.errors import fail
from chainroute.generate import generate
from chainroute.service.batch import LARGEST, Batcher
from chainroute.service.metrics import Metrics
from chainroute.solve import Effort

EFFORT = Effort(polish=False, augmentations=1)


def problems(count, customers=5):
    return generate(variant("CVRP"), customers, count, seed=1)


class Policy:
    """In place of the policy: each batch takes `seconds`, and the names in it are written down."""

    def __init__(self, seconds=0.0, poison=None):
        self.seconds, self.poison, self.batches = seconds, poison, []

    def __call__(self, problems, effort, seed, deadline, aside=None):
        if aside:
            return [each(p) for p in problems]
        self.batches.append([p.name for p in problems])
        time.sleep(self.seconds)
        if self.poison in self.batches[-1]:
            raise fail("solver-failed", "the process died.")
        return [each(p) for p in problems]


def soon(seconds=10.0):
    return time.monotonic() + seconds


def batcher(policy, most=8, lanes=1):
    """One that knows its pace: it has decoded a problem before."""
    found = Batcher(most, lanes, policy, Metrics())
    (first,) = problems(1)
    found.propose(found.announce(first, EFFORT, 0), soon())
    policy.batches.clear()
    return found


def test_those_who_wait_are_decoded_with_the_first_who_asks():
    policy = Policy()
    batches = batcher(policy, most=3)
    tickets = [batches.announce(p, EFFORT, 0) for p in problems(4)]
    names = [t.problem.name for t in tickets]
    found = [batches.propose(t, soon()) for t in tickets]
    assert policy.batches == [names[:3], names[3:]]
    for ticket, solution in zip(tickets, found, strict=True):
        assert solution.problem is ticket.problem
        assert check(ticket.problem, solution).feasible


def test_only_the_same_effort_seed_and_size_go_together():
    policy = Policy()
    batches = batcher(policy)
    five, other, seeded, gone = problems(4)
    (eleven,), (ten,), (large,) = problems(1, 11), problems(1, 10), problems(1, LARGEST + 1)
    ticket = batches.announce(five, EFFORT, 0)
    batches.announce(other, replace(EFFORT, starts=1), 0)
    batches.announce(seeded, EFFORT, 1)
    batches.announce(eleven, EFFORT, 0)  # more than twice as many customers
    batches.announce(ten, EFFORT, 0)
    batches.announce(large, EFFORT, 0)
    batches.withdraw(batches.announce(gone, EFFORT, 0))
    batches.propose(ticket, soon())
    assert policy.batches == [[five.name, ten.name]]


def test_a_batch_gathers_while_the_one_before_is_decoded():
    """Four ask at the same time: the first alone, for nothing waits for others; the rest together."""
    policy = Policy(seconds=0.2)
    batches = batcher(policy)
    tickets = [batches.announce(p, EFFORT, seed) for seed, p in enumerate(problems(1))]
    answers = {}

    def ask(ticket):
        answers[ticket] = batches.propose(ticket, soon())

    threads = [threading.Thread(target=ask, args=tickets)]
    threads[0].start()
    time.sleep(0.05)
    tickets += [batches.announce(p, EFFORT, 0) for p in problems(3, 6)]
    threads += [threading.Thread(target=ask, args=(ticket,)) for ticket in tickets[1:]]
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(batch) for batch in policy.batches] == [1, 3]
    assert all(answers[t].problem is t.problem for t in tickets)


def test_two_lanes_share_those_who_wait():
    policy = Policy(seconds=0.2)
    batches = batcher(policy, lanes=2)
    tickets = [batches.announce(p, EFFORT, 0) for p in problems(6)]
    threads = [threading.Thread(target=batches.propose, args=(t, soon())) for t in (tickets[0], tickets[5])]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(batch) for batch in policy.batches] == [3, 2]  # half of six; then half of the other three
    assert time.monotonic() - begin < 0.38


def test_a_batch_grows_only_as_far_as_the_time_of_its_first_allows():
    """Each problem takes 0.1 s; of the 0.65 s that there are, a batch is to take half."""

    class Slow(Policy):
        def __call__(self, problems, *rest):
            time.sleep(0.1 * len(problems))
            return super().__call__(problems, *rest)

    policy = Slow()
    batches = batcher(policy)
    tickets = [batches.announce(p, EFFORT, 0) for p in problems(8)]
    assert batches.propose(tickets[0], soon(0.65)) is not None
    assert [len(batch) for batch in policy.batches] in ([3], [2])  # the latter on a busy machine


def test_one_problem_that_breaks_the_policy_takes_no_other_with_it():
    policy = Policy()
    batches = batcher(policy)
    tickets = [batches.announce(p, EFFORT, 0) for p in problems(3)]
    policy.poison = tickets[1].problem.name
    for ticket in tickets[:2]:  # the first in a batch with the bad one, which then fails alone
        with pytest.raises(ChainRouteError):
            batches.propose(ticket, soon())
    assert batches.propose(tickets[2], soon()) is not None
    assert [len(batch) for batch in policy.batches] == [3, 1, 1]


def test_who_waits_in_vain_goes_on_without():
    policy = Policy(seconds=0.5)
    batches = Batcher(8, 1, policy, Metrics())
    first, second = (batches.announce(p, EFFORT, 0) for p in problems(2))
    thread = threading.Thread(target=batches.propose, args=(first, soon()))
    thread.start()
    time.sleep(0.05)
    begin = time.monotonic()
    assert batches.propose(second, begin + 0.1) is None
    assert time.monotonic() - begin < 0.4
    thread.join()


@pytest.mark.parametrize(
    ("customers", "effort"),
    [(LARGEST + 1, Effort()), (5, Effort(starts=1)), (5, Effort(augmentations=1, samples=9))],
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

    batches = batcher(Noted(seconds=0.6))
    busy = batches.announce(problems(1)[0], EFFORT, 0)
    thread = threading.Thread(target=batches.propose, args=(busy, soon()))
    thread.start()
    time.sleep(0.05)
    ticket = batches.announce(problems(1, customers)[0], effort, 7)
    begin = time.monotonic()
    assert batches.propose(ticket, soon()) is not None
    assert time.monotonic() - begin < 0.5
    assert asked == [(effort, 7, ticket.stop)]
    batches.withdraw(ticket)
    assert ticket.stop.is_set()
    thread.join()


def test_an_effort_left_open_is_light():
    """So that those who wait can go along; what is said is kept."""
    ticket = batcher(Policy()).announce(problems(1)[0], Effort(polish=False), 0)
    assert ticket.effort == Effort(polish=False, starts=32, augmentations=1, recombine=True)
