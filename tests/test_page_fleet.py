"""The page beyond the 48 variants: vehicle types as a table, prizes, skills and windows in a stop's row."""

import json
import urllib.request

import pytest
from browsing import DROP, expect, export, model, pages, solve
from services import listening
from test_solve_fleet import NAMES

from chainroute.check import check
from chainroute.formats import read, read_solution
from chainroute.formats.grids import write_csv
from chainroute.formats.json import to_problem
from chainroute.formats.template import SHEETS
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
        ("van", {"Number": "1", "Fixed cost": "10", "Skills": "lift"}),
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
    expect(desk.locator("#left-out li")).to_have_text("far: to serve it costs 100 more, and its prize is 20.")
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
    desk.get_by_label("Starts of technician").select_option("at its depot")
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
    type_into(desk, "table", "museum", "More windows", "late")
    expect(desk.get_by_label("More windows of museum")).to_have_value("700-710, 720-730")


def test_the_tables_of_the_template_are_dropped(desk):
    """Types, shifts, trips, costs, prizes, skills and windows, all at once."""
    desk.evaluate(DROP, [[f"{sheet.name}.csv", write_csv([sheet]).decode()] for sheet in SHEETS])
    expect(desk.locator("#name")).to_have_value("stops")
    expect(desk.locator("#variant")).to_contain_text("mixed fleet + own roads + shifts + several trips")
    assert [v["name"] for v in model(desk)["vehicles"]] == ["van", "cargo bike"]
    desk.click("#tab-vehicles")
    expect(desk.get_by_label("Shift from of van")).to_have_value("4:00")
