"""service/: whatever is sent, the answer is coded, and tells nothing of the machine."""

import json
import re
import socket

import pytest
from hypothesis import HealthCheck, settings
from services import TWO_STOPS, application, listening
from where import ROOT

TOKEN = {"Authorization": "Bearer sesame"}


@pytest.fixture(scope="module")
def client():
    with listening(application(max_bytes=100_000, max_customers=50, max_time_limit=1.0)) as client:
        yield client


def order(**changes):
    return {"problem": TWO_STOPS, "time_limit": 0.1, **changes}


def with_problem(**changes):
    return order(problem={**TWO_STOPS, **changes})


def refused(answer, status, *expected):
    """The status, and (code, where) of each fault; and nothing of the machine in the text."""
    assert answer.status_code == status, answer.text
    faults = answer.json()["error"]["faults"]
    assert [(fault["code"], fault["where"]) for fault in faults] == list(expected)
    assert all(fault["message"] and fault["remedy"] for fault in faults)
    discreet(answer.text)


def discreet(text):
    assert not re.search(r"Traceback|\.py\b|pydantic|starlette|site-packages|0x[0-9a-f]{6}", text)
    assert str(ROOT) not in text


# -- bodies


def test_no_json_is_told_the_line(client):
    answer = client.post(
        "/v1/solve", content='{"problem":\n oops}', headers={"Content-Type": "application/json"}
    )
    refused(answer, 422, ("bad-syntax", "line 2, column 2"))


@pytest.mark.parametrize("body", ["[]", "3", '"text"', "null"])
def test_a_body_must_be_an_object(client, body):
    answer = client.post("/v1/solve", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 422, ("wrong-type", "body"))


@pytest.mark.parametrize("body", [b"", b"  ", b"\xff\xfe{}", b"\x00"])
def test_a_body_must_be_text(client, body):
    answer = client.post("/v1/check", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["error"]["faults"][0]["code"] in ("file-empty", "not-text")
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
)
def test_other_kinds_of_bodies_are_refused(client, kind):
    answer = client.post(
        "/v1/solve", content=json.dumps(order()), headers={"Content-Type": kind} if kind else {}
    )
    refused(answer, 415, ("unknown-content-type", "Content-Type"))
    refused(client.post("/v1/read", json={}), 415, ("unknown-content-type", "Content-Type"))
    table = {"content": "name,x,y\ndepot,0,0\n", "headers": {"Content-Type": "text/csv"}}
    answers = [client.post("/v1/check", **table), client.post("/v1/read", json={}), answer]
    remedies = [answer.json()["error"]["faults"][0]["remedy"] for answer in answers]
    assert remedies[0] == "Send application/json."
    assert ["application/json" in remedy for remedy in remedies] == [True, False, True]
    refused(client.post("/v1/check", **table), 415, ("unknown-content-type", "Content-Type"))
    refused(client.post("/v1/read", **table), 422, ("no-customer", "stops"))


@pytest.mark.parametrize("depth", [100, 500, 5_000, 40_000])
@pytest.mark.parametrize("place", ['{"a": %s}', '{"problem": %s}', '{"problem": {"customers": %s}}'])
def test_deep_nesting_is_refused(client, depth, place):
    deep = "[" * depth + "]" * depth
    answer = client.post("/v1/solve", content=place % deep, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    discreet(answer.text)


def test_a_large_body_is_refused_before_it_is_read_whole(client):
    """A gigabyte is announced and sent in pieces; the answer comes long before its end."""
    address = client.base_url
    sent = 0
    with socket.create_connection((address.host, address.port), timeout=10) as line:
        head = ["POST /v1/solve HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        line.sendall("\r\n".join([*head, "Content-Length: 1000000000", "", ""]).encode())
        line.settimeout(0.05)
        answer = b""
        while not answer and sent < 50_000_000:
            try:
                line.sendall(b" " * 10_000)
                sent += 10_000
                answer = line.recv(10_000)
            except TimeoutError:
                continue
            except OSError:
                break
    assert answer.startswith(b"HTTP/1.1 413")
    assert sent < 10_000_000


@pytest.mark.parametrize("place", ["/v1/solve", "/v1/check", "/v1/read"])
def test_every_address_bounds_its_body(client, place):
    if place != "/v1/read":
        answer = client.post(place, content=b" " * 200_000, headers={"Content-Type": "application/json"})
        refused(answer, 413, ("file-too-large", "body"))
    if place != "/v1/check":
        refused(client.post(place, files={"file": b" " * 200_000}), 413, ("file-too-large", "body"))


# -- what is in them


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"time_limit": 1e9}, [("bad-option", "time_limit")]),
        ({"time_limit": 0}, [("bad-option", "time_limit")]),
        ({"time_limit": -1}, [("bad-option", "time_limit")]),
        ({"time_limit": "2"}, [("wrong-type", "time_limit")]),
        ({"time_limit": None}, [("wrong-type", "time_limit")]),
        ({"time_limit": True}, [("wrong-type", "time_limit")]),
        ({"seed": -1}, [("bad-option", "seed")]),
        ({"seed": 2**32}, [("bad-option", "seed")]),
        ({"seed": 10**30}, [("bad-option", "seed")]),
        ({"seed": 1.5}, [("wrong-type", "seed")]),
        ({"sed": 1}, [("unknown-field", "sed")]),
        ({"effort": {"samples": 1000}}, [("bad-option", "effort.samples")]),
        ({"effort": {"weights": "/etc/passwd"}}, [("unknown-field", "effort.weights")]),
        ({"effort": {"device": "cuda"}}, [("unknown-field", "effort.device")]),
        ({"effort": []}, [("wrong-type", "effort")]),
        ({"problem": None}, [("missing-field", "problem")]),
        ({"problem": []}, [("wrong-type", "problem")]),
        ({"initial": []}, [("wrong-type", "initial")]),
        ({"initial": {}}, [("missing-field", "initial.routes")]),
        ({"initial": {"routes": [{"customers": ["Eve"]}]}}, [("unknown-location", "initial.routes[0]")]),
    ],
    ids=str,
)
def test_wrong_options_are_named(client, changes, faults):
    refused(client.post("/v1/solve", json=order(**changes)), 422, *faults)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_must_be_finite(client, number):
    for text, where in (
        (json.dumps(order()).replace("0.1", number), "time_limit"),
        (json.dumps(order()).replace('"capacity": 10', f'"capacity": {number}'), "capacity"),
    ):
        answer = client.post("/v1/solve", content=text, headers={"Content-Type": "application/json"})
        refused(answer, 422, ("not-finite", where))


def test_all_faults_come_at_once(client):
    customers = [{"x": 1, "y": 1, "delivery": "much"}, {"x": 1}]
    body = {"problem": {"depots": [{"x": 0, "y": 0, "z": 0}], "customers": customers}, "seed": -1}
    answer = client.post("/v1/solve", json=body)
    refused(
        answer,
        422,
        ("missing-field", "capacity"),
        ("unknown-field", "depots[0].z"),
        ("wrong-type", "customers[0].delivery"),
        ("bad-option", "seed"),
    )


def test_a_customer_who_cannot_be_served_is_named(client):
    answer = client.post("/v1/solve", json=with_problem(capacity=5))
    refused(answer, 422, ("demand-above-capacity", "customer 'Ada' (customers[0])"))


def test_too_many_customers_are_refused(client):
    many = [{"x": i, "y": 0, "delivery": 1} for i in range(51)]
    refused(client.post("/v1/solve", json=with_problem(customers=many)), 422, ("too-large", "customers"))
    files = {"file": ("many.json", json.dumps({**TWO_STOPS, "customers": many}))}
    refused(client.post("/v1/read", files=files), 422, ("too-large", "customers"))


def test_keys_given_twice_are_refused(client):
    text = '{"problem": {}, "seed": 1, "seed": 2}'
    answer = client.post("/v1/solve", content=text, headers={"Content-Type": "application/json"})
    refused(answer, 422, ("duplicate-section", "seed"))


def test_text_that_is_no_unicode_is_refused(client):
    text = json.dumps(with_problem(name="?")).replace("?", "\\ud800")
    answer = client.post("/v1/solve", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    discreet(answer.text)


# -- files


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "file-empty"),
        (b"\x89PNG\r\n\x1a\n\x00", "unknown-format"),
        (b"once upon a time", "unknown-format"),
        (b"PK\x03\x04 and nothing", "bad-syntax"),
        (b'{"routes": []}', "not-a-problem"),
        (b"NAME : x\nTYPE : CVRP\nDIMENSION : -3\nEOF", None),
    ],
    ids=["empty", "picture", "prose", "archive", "solution", "vrplib"],
)
def test_broken_files_are_coded(client, content, code):
    for place in ("/v1/read", "/v1/solve"):
        answer = client.post(place, files={"file": ("../../etc/shadow", content)})
        assert answer.status_code == 422
        assert code in (None, answer.json()["error"]["faults"][0]["code"])
        assert "../" not in answer.text
        discreet(answer.text)


def test_broken_forms_are_coded(client):
    refused(client.post("/v1/read", files={"other": b"x"}), 422, ("unknown-field", "other"))
    refused(client.post("/v1/read", files={"file": (None, "text")}), 422, ("missing-field", "file"))
    two = [("file", b"a"), ("file", b"b")]
    assert client.post("/v1/read", files=two).status_code == 422
    for kind in ("multipart/form-data", "multipart/form-data; boundary=x"):
        answer = client.post("/v1/read", content=b"nothing of the kind", headers={"Content-Type": kind})
        assert answer.status_code == 422
        discreet(answer.text)
    answer = client.post("/v1/solve", files={"file": json.dumps(TWO_STOPS)}, data={"time_limit": "soon"})
    refused(answer, 422, ("wrong-type", "time_limit"))


# -- addresses


@pytest.mark.parametrize(
    "place",
    ["/v1/jobs/x", "/v1/jobs/x/events", "/v1/jobs/..%2f..%2fetc", "/v1/examples/..%2fdairy", "/v2", "/%00"],
)
def test_unknown_places_are_coded(client, place):
    answer = client.get(place)
    assert answer.status_code == 404
    assert answer.json()["error"]["faults"][0]["code"] in ("unknown-job", "unknown-address")
    discreet(answer.text)


def test_queries_are_checked(client):
    refused(client.post("/v1/solve?wait=maybe", json=order()), 422, ("wrong-type", "wait"))


def test_after_all_that_it_still_solves(client):
    assert client.post("/v1/solve?wait=true", json=order()).json()["status"] == "done"


# -- whatever the description allows, and does not


def test_every_answer_is_as_described(subtests):
    """Problems that fit the schema may still be unsound, so accepting them all is not asked for.

    Schemathesis is loaded and makes its cases here, not by its decorator: that takes seconds, and every test
    worker would do it to find the names of the tests."""
    import requests
    import schemathesis
    from schemathesis.pytest.lazy import get_all_tests
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    def as_described(case, address, line):
        answer = case.call_and_validate(
            address, session=line, headers=TOKEN, excluded_checks=[positive_data_acceptance]
        )
        discreet(answer.text)

    options = {"token": "sesame", "max_time_limit": 0.2, "running": 4}
    description = schemathesis.openapi.from_dict(application(**options).openapi())
    few = settings(max_examples=settings.default.max_examples // 4, suppress_health_check=list(HealthCheck))
    asked = get_all_tests(schema=description, test_func=as_described, settings=few, given_kwargs=None)
    addresses = set()
    with listening(application(**options)) as client, requests.Session() as line:
        line.trust_env = False  # looks for proxies, at every request
        for operation, ask in (made.ok() for made in asked):
            addresses.add(operation.path)
            with subtests.test(operation.label):
                ask(address=str(client.base_url), line=line)
    assert addresses == set(description.raw_schema["paths"])
