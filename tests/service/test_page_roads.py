"""The page on roads: a switch where the service has a routing server, and routes drawn along streets."""

import json
import re

import pytest
from browsing import DROP, expect, export, model, pages, solve
from road_servers import METRES, PROBLEM, Roads, serving
from services import application, listening

from chainroute.formats.road_server import RoadServer

TABLE = """name,lon,lat,delivery,opens,closes
depot,0,0,,08:00,12:00
A,0.02,0,4,08:10,09:00

count,capacity
1,9
"""


@pytest.fixture(scope="module")
def roads():
    return Roads()


@pytest.fixture(scope="module")
def desk(browser, roads, tmp_path_factory):
    """The page of a service with a routing server, whose solver finds a route for all."""
    with serving(roads) as url:
        server = RoadServer("osrm", url, cache=tmp_path_factory.mktemp("roads"))
        app = application(roads=server)
        with listening(app) as client, pages(browser, str(client.base_url).rstrip("/")) as opened:
            yield opened()


def expect_legs(desk, count):
    """The only route on the map is drawn by so many straight legs."""
    legs = re.compile(rf"^[^L]*(L[^L]*){{{count}}}$")
    expect(desk.locator("#map g.route path.hit")).to_have_attribute("d", legs)


def test_routes_are_measured_and_drawn_along_streets(desk, roads, tmp_path):
    """Eight streets of 700 m, from crossing to crossing; straight without the switch, and where the server
    tells no lines."""
    expect(desk.locator("#roads-label")).to_be_hidden()  # the example is on a plane
    desk.evaluate(DROP, [["streets.json", json.dumps(PROBLEM)]])
    expect(desk.locator("#name")).to_have_value("streets")
    assert solve(desk)["cost"] > 8 * METRES  # along the globe, which has longer streets than the server
    expect_legs(desk, 3)

    desk.locator("#roads").set_checked(True, force=True)
    expect(desk.locator("#verdict")).to_contain_text("Edited, and still feasible.")
    job = solve(desk)
    assert job["cost"] == 8 * METRES
    expect(desk.locator("#cost")).to_have_text("5.6 km")
    expect_legs(desk, 8)
    saved = json.loads(export(desk, "geojson", tmp_path).read_text())
    (line,) = (f for f in saved["features"] if f["properties"]["kind"] == "route")
    assert len(line["geometry"]["coordinates"]) == 9

    work = export(desk, "json", tmp_path)
    roads.tells_lines = False
    try:
        desk.evaluate(DROP, [["work.json", work.read_text()]])
        expect(desk.locator("#straight")).to_contain_text("Lines are straight: does not answer as osrm does")
    finally:
        roads.tells_lines = True
    expect(desk.locator("#roads")).to_be_checked()
    expect(desk.locator("#cost")).to_have_text("5.6 km")  # judged on roads all the same
    expect_legs(desk, 3)
    assert model(desk)["day"] == "any"


def test_a_link_of_what_is_not_solved_keeps_the_roads(desk):
    desk.evaluate(DROP, [["unsolved.json", json.dumps({**PROBLEM, "name": "unsolved"})]])
    expect(desk.locator("#name")).to_have_value("unsolved")
    desk.locator("#roads").set_checked(True, force=True)
    expect(desk.locator("#roads")).to_be_checked()
    desk.click("[data-export=link]")
    expect(desk.locator("#link")).to_have_value(re.compile("#."))
    link = "#" + desk.locator("#link").input_value().split("#")[1]
    desk.evaluate(DROP, [["another.json", json.dumps({**PROBLEM, "name": "another"})]])
    expect(desk.locator("#name")).to_have_value("another")
    expect(desk.locator("#roads")).not_to_be_checked()
    desk.evaluate("link => (location.hash = link)", link)
    expect(desk.locator("#name")).to_have_value("unsolved")
    expect(desk.locator("#roads")).to_be_checked()
    expect(desk.locator("#faults")).to_be_hidden()
    assert "distances" not in model(desk)


def test_a_table_without_a_speed_is_opened_on_roads(desk):
    """Its times are those of a day, for which straight lines have no speed; its stops can still be moved."""
    desk.evaluate(DROP, [["stops.csv", TABLE]])
    expect(desk.locator("#name")).to_have_value("stops")
    expect(desk.locator("#roads")).to_be_checked()
    assert "distances" not in model(desk)
    assert solve(desk)["cost"] == 4 * METRES


def test_a_place_off_the_map_is_told_beside_the_switch(desk):
    away = {**PROBLEM, "name": "away", "customers": [{"name": "A", "lon": 5.5, "lat": 5.5, "delivery": 1}]}
    desk.evaluate(DROP, [["away.json", json.dumps(away)]])
    expect(desk.locator("#name")).to_have_value("away")
    desk.locator("#roads").set_checked(True, force=True)
    expect(desk.locator(".faults[data-where=roads]")).to_contain_text("roads-refused")
    expect(desk.locator(".faults[data-where=roads]")).to_contain_text("which is 5.5, 5.5")
