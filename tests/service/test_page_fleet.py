"""The page beyond the 48 variants: vehicle types as a table, prizes, skills and windows in a stop's row."""

import json
import urllib.request

import pytest
from browsing import DROP, expect, export, model, pages, solve
from fleets import NAMES
from services import listening

from chainroute.formats import read, read_solution
from chainroute.formats.geojson import write as write_geojson
from chainroute.formats.json import to_problem
from chainroute.formats.tables.grids import write_csv
from chainroute.formats.tables.template import SHEETS
from chainroute.plan.check import check
from chainroute.service.app import create_app
from chainroute.service.settings import Settings


@pytest.fixture(scope="module")
def service():
    """The real one in this process, without the network, which knows none of this and takes long to load."""
    app = create_app(Settings(), decode=lambda problems, *_: [None] * len(problems))
    with listening(app) as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture(scope="module")
def desk(browser, service):
    with pages(browser, service) as opened:
        yield opened()


def type_into(page, table, row, title, text):
    """Types into the cell of a table, and leaves it."""
    cell = page.get_by_label(f"{title} of {row}", exact=True).and_(page.locator(f"#{table} input"))
    cell.fill(text)
    cell.press("Tab")


def test_examples_are_sent_as_they_came(desk, service):
    """Whatever a dispatcher has survives the page, and the badge names it as the service does."""
    for name in NAMES:
        with urllib.request.urlopen(f"{service}/v1/examples/{name}", timeout=60) as response:
            problem = to_problem(json.load(response), name)
        desk.select_option("#example", name)
        expect(desk.locator("#variant")).to_have_text(problem.kind)
        assert to_problem(model(desk), name) == problem


def test_vehicle_types_prizes_and_skills_are_typed_in_and_solved(desk, tmp_path):
    """A cheap bike for all but the piano, which needs the van's lift; the far one is not worth its prize."""
    text = "kind,name,x,y,demand\ndepot,hub,0,0,\nstop,piano,0,5,4\nstop,book,5,0,1\nstop,far,-50,0,1\n"
    desk.evaluate(DROP, [["stops.csv", f"{text}\ncapacity,count\n4,\n"]])
    expect(desk.locator("#variant")).to_have_text("CVRP")
    desk.click("#tab-vehicles")
    for row, cells in (
        ("van", {"Count": "1", "Fixed cost": "10", "Skills": "lift"}),
        ("truck", {"Capacity": "1", "Name": "bike"}),
    ):
        desk.click("text=Add vehicle type")
        for title, value in cells.items():
            type_into(desk, "vehicles", row, title, value)
    desk.click("#tab-table")
    desk.click("text=All columns")
    type_into(desk, "table", "piano", "Skills", "lift")
    type_into(desk, "table", "far", "Prize", "20")
    expect(desk.locator("#variant")).to_have_text("CVRP + mixed fleet + optional + skills + money")
    job = solve(desk)
    assert job["solution"]["cost"] == 50  # 10 + 10 for the van, 10 for the bike, 20 for leaving out
    expect(desk.locator("#parts")).to_have_text("distance 20 + fixed 10 + prizes 20")
    expect(desk.locator("#left-out li")).to_have_text(
        "far: on the routes as they are it costs 100 more, and its prize is 20."
    )
    expect(desk.locator("#routes")).to_contain_text("1 stop · bike")
    problem = read(export(desk, "problem", tmp_path))
    plan = read_solution(export(desk, "json", tmp_path), problem)
    assert check(problem, plan).feasible
    assert plan.cost == 50
    expect(desk.locator("[data-export=sol]")).to_be_disabled()


def test_a_fault_of_a_vehicle_is_told_in_its_row(desk):
    desk.select_option("#example", "relay")
    expect(desk.locator("#variant")).to_contain_text("MDVRPLTW")
    desk.click("#tab-vehicles")
    type_into(desk, "vehicles", "courier", "Capacity", "-1")
    expect(desk.locator("#vehicles .note")).to_contain_text("not-positive")
    desk.click("#tab-schedule")
    desk.click("#faults li button")
    expect(desk.get_by_label("Capacity of courier")).to_be_focused()
    desk.click("#undo")
    expect(desk.locator("#faults")).to_be_hidden()


def test_who_begins_at_a_customer_is_drawn_so(desk):
    """Two routes of two stops and the way home: no line leaves the office."""
    desk.select_option("#example", "technicians")
    expect(desk.locator("#variant")).to_have_text("CVRP + free start")
    assert solve(desk)["cost"] == 80
    expect(desk.locator("#map g.route")).to_have_count(2)
    for route in desk.locator("#map g.route path.hit").all():
        assert route.get_attribute("d").count("L") == 2
    desk.click("#tab-vehicles")
    desk.get_by_label("Starts at depot of technician").select_option("yes")
    expect(desk.locator("#variant")).to_have_text("CVRP")
    expect(desk.locator("#cost")).to_have_text("160")


def test_windows_beside_the_first_are_typed_in(desk):
    desk.select_option("#example", "lunch")
    expect(desk.locator("#variant")).to_contain_text("several windows")
    desk.click("#tab-table")
    type_into(desk, "table", "museum", "More windows", "700-710, 720-730")
    expect(desk.get_by_label("More windows of museum")).to_have_value("700-710, 720-730")
    museum = next(c for c in model(desk)["customers"] if c["name"] == "museum")
    assert museum["windows"][1:] == [[700, 710], [720, 730]]
    note = desk.locator("tr:has([aria-label='More windows of museum']) + tr.note")
    for none in ("late", "700-710-720", "700"):
        type_into(desk, "table", "museum", "More windows", none)
        expect(note).to_contain_text(f"bad-syntax '{none}' are no windows, such as 28800-36000, ")
        expect(desk.get_by_label("More windows of museum")).to_have_attribute("aria-invalid", "true")
    assert next(c for c in model(desk)["customers"] if c["name"] == "museum") == museum
    type_into(desk, "table", "museum", "More windows", "700 to 710")
    expect(desk.get_by_label("More windows of museum")).to_have_value("700-710")
    expect(note).to_have_count(0)


def test_windows_beside_the_first_are_drawn_and_stand_alone(desk):
    """Each has its bar in the schedule; and they count where the first is emptied."""
    desk.select_option("#example", "lunch")
    expect(desk.locator("#variant")).to_contain_text("several windows")
    solve(desk)
    desk.click("#tab-schedule")
    desk.locator("#routes button").first.click()
    names = desk.locator("#routes tbody th").all_text_contents()
    windows = {c["name"]: c.get("windows", [c.get("window")]) for c in model(desk)["customers"]}
    assert any(len(windows[name]) > 1 for name in names)
    expect(desk.locator(".stop-lane rect.window")).to_have_count(sum(len(windows[name]) for name in names))
    desk.click("#tab-table")
    type_into(desk, "table", "museum", "More windows", "700-710")
    type_into(desk, "table", "museum", "Closes", "")
    expect(desk.get_by_label("Closes of museum")).to_have_value("")
    type_into(desk, "table", "museum", "Opens", "")
    expect(desk.get_by_label("Opens of museum")).to_have_value("")
    museum = next(c for c in model(desk)["customers"] if c["name"] == "museum")
    assert museum.get("window") == [700, 710], museum


AT_ONCE = """cells => cells.forEach(([label, text]) => {
  const cell = document.querySelector(`[aria-label="${label}"]`);
  cell.value = text;
  cell.dispatchEvent(new Event("change"));
})"""


def test_two_cells_of_a_row_may_change_before_it_is_drawn_again(desk):
    """The second does not bring back what the first replaced: a slow machine draws after both."""
    desk.select_option("#example", "lunch")
    expect(desk.locator("#variant")).to_contain_text("several windows")
    desk.click("#tab-table")
    expect(desk.get_by_label("Closes of museum")).to_be_visible()
    desk.evaluate(AT_ONCE, [["Closes of museum", "650"], ["Opens of museum", "600"]])
    expect(desk.get_by_label("Closes of museum")).to_have_value("650")
    museum = next(c for c in model(desk)["customers"] if c["name"] == "museum")
    assert [*museum.get("windows", []), museum.get("window")][0] == [600, 650]
    desk.click("#tab-vehicles")
    desk.click("text=Add vehicle type")
    expect(desk.get_by_label("Shift start of van")).to_be_visible()
    desk.evaluate(AT_ONCE, [["Shift start of van", "500"], ["Shift end of van", "900"]])
    expect(desk.get_by_label("Shift start of van")).to_have_value("500")
    assert model(desk)["vehicles"][0]["shift"] == [500, 900]


def test_an_end_of_its_own_where_the_others_are_open(desk):
    """It is no fault that a type comes home, or ends at a depot, where the form says open."""
    places = [{"name": "hub", "x": 0, "y": 0}, {"name": "yard", "x": 9, "y": 0}]
    document = {"capacity": 2, "open": True, "depots": places, "customers": [{"x": 4, "y": 0, "delivery": 1}]}
    desk.evaluate(DROP, [["open.json", json.dumps({"name": "open", **document})]])
    expect(desk.locator("#name")).to_have_value("open")
    desk.click("#tab-vehicles")
    desk.click("text=Add vehicle type")
    for end, cost in (("anywhere", 4), ("yard", 9), ("where it started", 8)):
        desk.get_by_label("End depot of van").select_option(end)
        assert solve(desk)["cost"] == cost
    assert model(desk)["vehicles"] == [{"name": "van", "open": False}]


TRIPS = [["A", "hub", "B", "hub", "C"], ["D", "hub", "E", "hub", "F"]]


def test_stops_are_moved_between_routes_that_reload_at_one_depot(desk):
    """They go to the route that was meant, reloads stay where they are, and trips of nobody end."""
    places = {"A": (10, 0), "B": (20, 0), "C": (30, 0), "D": (0, 10), "E": (0, 20), "F": (0, 30)}
    document = {
        "name": "trips",
        "capacity": 10,
        "depots": [{"name": "hub", "x": 0, "y": 0}],
        "customers": [{"name": name, "x": x, "y": y, "delivery": 6} for name, (x, y) in places.items()],
        "vehicles": [{"name": "van", "count": 3, "max_trips": 4}],
    }
    routes = [{"depot": "hub", "vehicle": "van", "customers": visits} for visits in TRIPS]
    desk.evaluate(DROP, [["trips.json", json.dumps({"problem_document": document, "routes": routes})]])
    expect(desk.locator("#name")).to_have_value("trips")
    opener, stops = desk.locator("#routes > li > button"), desk.locator("#routes tbody th")
    opener.nth(0).click()
    expect(stops).to_have_text(TRIPS[0])
    expect(desk.get_by_label("Move hub")).to_have_count(0)
    desk.get_by_label("Move A").select_option("To route 2")
    expect(stops).to_have_text(["D", "hub", "E", "hub", "A", "F"])
    opener.nth(0).click()
    expect(stops).to_have_text(["B", "hub", "C"])
    desk.get_by_label("Move C").select_option("To a new route")
    expect(stops).to_have_text(["C"])
    opener.nth(0).click()
    expect(stops).to_have_text(["B"])
    desk.click("#undo")
    desk.click("#undo")
    opener.nth(1).click()
    expect(stops).to_have_text(TRIPS[1])


def test_exports_hold_what_lies_beyond_the_variants(desk, tmp_path):
    """Vehicles, where they end, all windows, and who is left out: as the library has them."""
    document = {
        "name": "beyond",
        "capacity": 9,
        "speed": 10,
        "depots": [{"name": "hub", "lon": 8.54, "lat": 47.37}, {"name": "yard", "lon": 8.6, "lat": 47.37}],
        "customers": [
            {"name": "Ann", "lon": 8.55, "lat": 47.38, "delivery": 6, "windows": [[0, 900], [2000, 9000]]},
            {"name": "Bob", "lon": 8.52, "lat": 47.39, "delivery": 3, "prize": 5},
        ],
        "vehicles": [{"name": "van", "depot": "hub", "end": "yard"}],
    }
    routes = [{"depot": "hub", "vehicle": "van", "customers": ["Ann"]}]
    desk.evaluate(DROP, [["beyond.json", json.dumps({"problem_document": document, "routes": routes})]])
    expect(desk.locator("#name")).to_have_value("beyond")
    expect(desk.locator("#left-out li")).to_contain_text("Bob: on the routes as they are it costs")
    problem = read(export(desk, "problem", tmp_path))
    saved = json.loads(export(desk, "json", tmp_path).read_text())
    plan = read_solution(export(desk, "json", tmp_path), problem)
    ours = json.loads(export(desk, "geojson", tmp_path).read_text())
    theirs = json.loads(write_geojson(plan))
    for feature in theirs["features"]:
        for key in ("initial_load", "duration"):  # which the page does not keep
            feature["properties"].pop(key, None)
    assert ours == theirs
    assert saved["parts"] == plan.as_dict()["parts"]
    assert [left["customer"] for left in saved["left_out"]] == plan.as_dict()["left_out"]
    assert saved["routes"][0]["end_depot"] == "yard"


def test_the_tables_of_the_template_are_dropped(desk):
    """Types, shifts, trips, costs, prizes, skills and windows, all at once."""
    desk.evaluate(DROP, [[f"{sheet.name}.csv", write_csv([sheet]).decode()] for sheet in SHEETS])
    expect(desk.locator("#name")).to_have_value("stops")
    expect(desk.locator("#variant")).to_contain_text("mixed fleet + own roads + shifts + several trips")
    assert [v["name"] for v in model(desk)["vehicles"]] == ["van", "cargo bike"]
    desk.click("#tab-vehicles")
    expect(desk.get_by_label("Shift start of van")).to_have_value("4:00")
    type_into(desk, "vehicles", "van", "Shift start", "5")
    note = desk.locator("#vehicles tr:has([aria-label='Shift start of van']) + tr.note")
    expect(note).to_contain_text("'5' is no time, such as 8:30 or 90 min. What stood here still counts.")
    type_into(desk, "vehicles", "van", "Shift start", "5 h")
    expect(desk.get_by_label("Shift start of van")).to_have_value("5:00")
    expect(note).to_have_count(0)
