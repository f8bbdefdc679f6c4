"""The page as a tool for work: what is opened, saved, shared, printed and told, on one page for all tests."""

import json
import re
from xml.etree import ElementTree

import httpx
import pytest
from browsing import NARROW, WIDE, expect, export, judged, model, pages, reads, solve
from services import application, listening, until

from chainroute import ChainRouteError, formats
from chainroute.formats import json as our_json
from chainroute.formats.tables.grids import Sheet, write_workbook
from chainroute.formats.tables.stops import cells
from chainroute.options import SEEDS
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.problem import Problem


@pytest.fixture(scope="module")
def desk(browser, service):
    """One page for the tests that begin with opening something."""
    with pages(browser, service) as opened:
        yield opened()


def open_file(page, name, content):
    page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": content.encode()})


def pick(page, example):
    page.select_option("#example", example)
    expect(page.locator("#name")).to_have_value(example)


def open_problem(page, **fields):
    """A problem of one depot at the origin, under a name of its own."""
    open_problem.count = getattr(open_problem, "count", 0) + 1
    document = {"name": f"problem {open_problem.count}", "depots": [{"x": 0, "y": 0}], **fields}
    open_file(page, "problem.json", json.dumps(document))
    expect(page.locator("#name")).to_have_value(document["name"])
    return our_json.read(json.dumps(document), "problem", None)


ROW = {  # three customers on a line, of which a vehicle serves two
    "capacity": 2,
    "customers": [{"name": f"c{x}", "x": x, "y": 0, "delivery": 1} for x in (1, 2, 3)],
}


# -- opening


SEEN = """new MutationObserver((_, observer) => {
  if (!document.querySelector("#map g.route")) return;
  window.seen = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });"""


def test_the_page_begins_with_a_solved_example(desk, browser, service, tmp_path):
    """Within two seconds of the page being there, also where the service does not judge yet; its stored
    routes are as good as any that are known."""
    with browser.new_context(viewport=WIDE) as context:
        context.add_init_script(SEEN)
        page = context.new_page()
        page.route("**/v1/check", lambda route: None)  # never answered
        page.goto(service)
        page.wait_for_function("() => window.seen")
        there = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        assert page.evaluate(f"(seen - {there}) / 1000") < 2
    expect(desk.locator("#verdict")).to_have_text("Judged: feasible.")
    assert judged(desk, tmp_path) == pytest.approx(320.1762, abs=1e-4)


def test_a_saved_solution_is_opened_again_with_its_problem(desk, tmp_path):
    """After another problem was opened meanwhile: both are back, judged, at the same cost."""
    problem = open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\nCost 8\n")
    expect(desk.locator("#cost")).to_have_text("8")
    saved = export(desk, "json", tmp_path)
    assert formats.read_solution(saved, problem).cost == 8
    pick(desk, "parcels")
    expect(desk.locator("#map g.route")).to_have_count(0)
    desk.set_input_files("#file", saved)
    expect(desk.locator("#name")).to_have_value(problem.name)
    expect(desk.locator("#map g.route")).to_have_count(2)
    expect(desk.locator("#cost")).to_have_text("8")
    expect(desk.locator("#verdict")).to_have_text("Judged: feasible.")


STOPS = """kind,name,lon,lat,delivery,service (min),opens,closes
depot,hub,10.00,53.50,,,08:00,18:00
customer,Ada,10.01,53.50,6,5,09:15,11:00
customer,Bob,10.02,53.51,3,10,,17:00
"""
VEHICLES = "count,capacity,speed (km/h)\n2,10,36\n"


def test_tables_are_dropped_on_the_page(desk):
    """Those of stops and vehicles together; their times are shown as they were written."""
    desk.evaluate(
        """(files) => {
          const data = new DataTransfer();
          for (const [name, text] of files) data.items.add(new File([text], name));
          const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
          document.body.dispatchEvent(drop);
        }""",
        [["monday-vehicles.csv", VEHICLES], ["monday-stops.csv", STOPS]],
    )
    expect(desk.locator("#name")).to_have_value("monday-stops")
    expect(desk.locator("#variant")).to_have_text("VRPTW")
    expect(desk.locator("#fleet")).to_have_value("2")
    desk.click("#tab-table")
    expect(desk.get_by_label("Opens of Ada")).to_have_value("9:15")
    desk.click("#tab-schedule")
    assert model(desk)["speed"] == pytest.approx(10)


SLOW = """() => {
  const real = window.fetch;
  window.settled = false;
  window.fetch = async (address, options) => {
    const isSlow = options?.body instanceof FormData && options.body.get("file").name === "slow.json";
    if (!isSlow) return real(address, options);
    await new Promise((resolve) => (window.release = resolve));
    window.fetch = real;
    return real(address, options).finally(() => setTimeout(() => (window.settled = true), 300));
  };
}"""  # the answer to one file is held back


@pytest.mark.parametrize("wrong", [False, True], ids=["sound", "broken"])
@pytest.mark.parametrize("later", ["file", "example", "sketch"])
def test_a_file_that_takes_long_does_not_replace_what_was_opened_later(desk, later, wrong):
    """Neither is it told what is wrong with it."""
    desk.evaluate(SLOW)
    slow = {"name": "slow", "capacity": -1 if wrong else 1, "depots": [{"x": 0, "y": 0}], "customers": []}
    slow["customers"] = [{"name": "a", "x": 1, "y": 1}]
    open_file(desk, "slow.json", json.dumps(slow))
    desk.wait_for_function("() => Boolean(window.release)")
    if later == "file":
        open_problem(desk, **ROW)
    elif later == "example":
        pick(desk, "parcels")
    else:
        desk.click("#blank")
        expect(desk.locator("#name")).to_have_value("sketch")
    shown = desk.locator("#name").input_value()
    assert shown != "slow"
    desk.evaluate("window.release()")
    desk.wait_for_function("() => window.settled")
    expect(desk.locator("#name")).to_have_value(shown)
    assert model(desk)["name"] == shown
    expect(desk.locator("#status")).not_to_contain_text("fault")
    desk.evaluate("delete window.release")


def test_columns_that_are_not_read_are_told(desk):
    """Where the page says that the file is open."""
    text = "name,x,y,Cantidad\ndepot,0,0,\nA,3,4,5\n"
    desk.set_input_files("#file", {"name": "lunes.csv", "mimeType": "text/csv", "buffer": text.encode()})
    told = "Opened lunes. row 1: 'Cantidad' is no heading of stops, and not read."
    expect(desk.locator("#status")).to_have_text(told)


def test_tables_are_read_in_the_code_that_excel_writes(desk):
    """Also where there are several, whatever the case of their names."""
    stops, vehicles = (
        "kind,name,x,y,demand\ndepot,Zürich,0,0,\nstop,Müller,0,5,4\nstop,Café,5,0,1\n",
        "capacity,count\n5,\n",
    )
    files = [("vehicles.csv", vehicles), ("Stops Monday.csv", stops)]
    for code in ("cp1252", "utf-16", "utf-8-sig"):
        pick(desk, "dairy")
        desk.set_input_files(
            "#file", [{"name": n, "mimeType": "text/csv", "buffer": text.encode(code)} for n, text in files]
        )
        expect(desk.locator("#name")).to_have_value("Stops Monday")
        assert [c["name"] for c in model(desk)["customers"]] == ["Müller", "Café"], code
    routes = "route,position,name\n1,1,Müller\n1,2,Café\n"
    table = {"name": "routes.csv", "mimeType": "text/csv", "buffer": routes.encode("cp1252")}
    desk.set_input_files("#file", table)
    expect(desk.locator("#status")).to_have_text("Opened routes for Stops Monday.")


def test_routes_in_a_workbook_are_opened(desk, tmp_path):
    """As those are that are text; a workbook without any is told as it was."""
    problem = open_problem(desk, **ROW)
    formats.write_solution(Solution.of(problem, [(0, [1]), (0, [2, 3])]), tmp_path / "routes.xlsx")
    desk.set_input_files("#file", tmp_path / "routes.xlsx")
    expect(desk.locator("#status")).to_have_text(f"Opened routes for {problem.name}.")
    expect(desk.locator("#cost")).to_have_text("8")
    expect(desk.locator("#map g.route")).to_have_count(2)
    (tmp_path / "notes.xlsx").write_bytes(write_workbook([Sheet([["to do"], ["nothing"]], "notes")]))
    desk.set_input_files("#file", tmp_path / "notes.xlsx")
    expect(desk.locator("[data-where=file] .fault")).to_contain_text("not a problem by itself")


def test_every_export_says_that_a_rule_is_broken(desk, tmp_path):
    """Routes that break a rule are opened and told as such, in whatever they are saved as; a file that is
    wrong is told beside the button and changes nothing."""
    open_problem(desk, **ROW)
    open_file(desk, "wrong.sol", "Route #1: 1 2 9\n")
    expect(desk.locator("[data-where=file] .fault")).to_contain_text("unknown-location")
    open_file(desk, "one.sol", "Route #1: 1 2 3\n")
    expect(desk.locator("#verdict")).to_contain_text("capacity-exceeded")
    assert "# Not feasible: capacity-exceeded" in export(desk, "sol", tmp_path).read_text()
    document = json.loads(export(desk, "json", tmp_path).read_text())
    assert document["feasible"] is False
    assert document["violations"][0].startswith("capacity-exceeded")
    assert "Not feasible: capacity-exceeded" in export(desk, "svg", tmp_path).read_text()
    expect(desk.locator("#status")).to_contain_text("not feasible: capacity-exceeded")
    desk.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(desk.locator(".sheet").nth(1)).to_contain_text("Not feasible: capacity-exceeded")
    desk.fill("#capacity", "3")
    desk.locator("#capacity").blur()
    assert "feasible" not in export(desk, "sol", tmp_path).read_text()  # it waits for the judge


def test_a_link_holds_the_work(desk, browser, service):
    """Up to a size: others open problem and routes by their address; a link that was cut off is told."""
    problem = open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    expect(desk.locator("#cost")).to_have_text("8")
    desk.click("[data-export=link]")
    expect(desk.locator("#status")).to_contain_text("it holds problem and routes")
    expect(desk.locator("#link")).to_have_value(re.compile("#."))
    address = desk.locator("#link").input_value()
    with pages(browser, service) as opened:
        other = opened()
        other.goto("about:blank")
        other.goto(address)
        expect(other.locator("#name")).to_have_value(problem.name)
        expect(other.locator("#map g.route")).to_have_count(2)
        assert "#" not in other.url
        other.evaluate(f"location.hash = '{address.split('#')[1][:60]}'")
        expect(other.locator("[data-where=file] .fault")).to_contain_text("unknown-format")
        expect(other.locator("#name")).to_have_value(problem.name)
    pick(desk, "thousand")
    desk.click("[data-export=link]")
    expect(desk.locator("#status")).to_contain_text("too large for a link")


# -- a run


def test_a_job_in_the_queue_is_told_as_waiting(desk):
    """Its place in the queue; the bar begins with the run; whoever had no part is named with the reason."""
    problem = open_problem(desk, **ROW)
    place, streams = {"status": "queued", "position": 3}, []
    desk.route("**/v1/solve", lambda route: route.fulfill(json={"id": "x", "status": "queued"}))
    desk.route("**/v1/jobs/x", lambda route: route.fulfill(json=place))
    desk.route("**/v1/jobs/x/events*", lambda route: streams.append(route))  # answered below
    desk.click("#solve")
    expect(desk.locator("#status")).to_have_text("Waiting: 2 before it in the queue.")
    assert desk.locator("#progress").evaluate("bar => bar.value") == 0
    place |= {"status": "running", "position": None}
    expect(desk.locator("#status")).to_have_text("Solving…")
    desk.wait_for_function("() => document.querySelector('#progress').value > 0")
    document = Solution.of(problem, [(0, [1]), (0, [2, 3])]).as_dict()
    job = {
        "status": "done",
        "history": [{"seconds": 0.5, "cost": 8, "source": "construction"}],
        "solution": document,
        "notes": [],
        "without_policy": "it had no routes within its 0.5 s.",
    }
    streams[0].fulfill(body=f"event: end\ndata: {json.dumps(job)}\n\n", content_type="text/event-stream")
    expect(desk.locator(".absent")).to_have_text(
        [
            "Policy (network): it had no routes within its 0.5 s.",
            "Search (PyVRP): it found nothing better.",
        ]
    )
    for pattern in ("**/v1/solve", "**/v1/jobs/x", "**/v1/jobs/x/events*"):
        desk.unroute(pattern)


def test_a_link_in_a_run_is_opened_after_it(desk):
    """It stays in the address bar until then; the routes that were found are an undo away."""
    other = open_problem(desk, **ROW)
    desk.click("[data-export=link]")
    expect(desk.locator("#link")).to_have_value(re.compile("#."))
    link = "#" + desk.locator("#link").input_value().split("#")[1]
    problem, streams = open_problem(desk, **ROW), []
    desk.route("**/v1/solve", lambda route: route.fulfill(json={"id": "x", "status": "running"}))
    desk.route("**/v1/jobs/x/events*", lambda route: streams.append(route))  # answered below
    desk.click("#solve")
    expect(desk.locator("#status")).to_have_text("Solving…")
    desk.evaluate("link => (location.hash = link)", link)
    expect(desk.locator("#status")).to_contain_text("The link is opened when the run has ended")
    assert desk.url.endswith(link)
    document = Solution.of(problem, [(0, [1]), (0, [2, 3])]).as_dict()
    history = [{"seconds": 0.5, "cost": 8, "source": "search"}]
    job = {"status": "done", "history": history, "solution": document, "notes": [], "without_policy": None}
    until(lambda: streams or desk.wait_for_timeout(50))
    streams[0].fulfill(body=f"event: end\ndata: {json.dumps(job)}\n\n", content_type="text/event-stream")
    expect(desk.locator("#name")).to_have_value(other.name)
    assert "#" not in desk.url
    for pattern in ("**/v1/solve", "**/v1/jobs/x/events*"):
        desk.unroute(pattern)
    desk.click("#undo")
    expect(desk.locator("#name")).to_have_value(problem.name)
    expect(desk.locator("#cost")).to_have_text("8")


# -- units


TIMES = (
    "8:30", "08:30", "8:30pm", "12:05:30.5", "0", "8h30", "8h", "25:30", "12am", "12pm", "13pm", "8:75",
    "8:30:60", "90min", "1,5h", "9", "9.5", "-9", "soon", "8:3", "", " 8:30 p.m. ", "1 h 30 min",
    "2 hrs 5 seconds", "2 days", "8 30", "90 min soon", "8:30 9:30",
)  # fmt: skip


def test_times_are_read_as_in_tables(desk):
    """But for dates: one reading for the page and for spreadsheets, which ask for the unit of a number."""
    told = """async (texts) => {
      const { moment } = await import("/assets/units.js");
      return texts.map((text) => String(moment({ day: "any" }, text)));
    }"""
    theirs = dict(zip(TIMES, desk.evaluate(told, TIMES), strict=True))
    for text in TIMES:
        found = cells.moment(text.strip())
        unknown = found is None or (found.bare and found.seconds)
        wanted = "null" if not text else "NaN" if unknown else f"{found.seconds:g}"
        assert theirs[text] == wanted, text


def test_a_problem_on_the_globe_has_kilometres_and_times_of_the_day(desk, tmp_path):
    """Windows that are made up are seconds of a working day; they are shown and typed as times."""
    pick(desk, "lakeside")
    desk.check("#windows")
    desk.click("#tab-table")
    opens = desk.get_by_label("Opens of depot")
    expect(opens).to_have_value("8:00")
    opens.fill("7:45:30")
    opens.blur()
    document = model(desk)
    assert (document["speed"], document["day"]) == (13.9, "any")
    assert document["depots"][0]["window"] == [27_930, 57_600]
    spans = [closing - opening for opening, closing in (c["window"] for c in document["customers"])]
    assert 600 <= min(spans) <= max(spans) <= 4 * 3600
    note = desk.locator("tr:has([aria-label='Opens of depot']) + tr.note")
    for none in ("soon", "8:75", "9"):
        opens.fill(none)
        opens.blur()
        expect(opens).to_have_attribute("aria-invalid", "true")
        expect(note).to_contain_text(f"bad-syntax '{none}' is no time, such as 8:30 or 90 min.")
        assert model(desk)["depots"][0]["window"] == [27_930, 57_600]
    opens.fill("7:45 am")
    opens.blur()
    expect(opens).to_have_value("7:45")
    expect(desk.locator("#table .note")).to_have_count(0)
    desk.click("#undo")
    job = solve(desk)
    expect(desk.locator("#cost")).to_have_text(f"{job['solution']['cost'] / 1000:.6g} km")
    problem = formats.read(export(desk, "problem", tmp_path))
    solution = formats.read_solution(export(desk, "json", tmp_path), problem)
    formats.write_solution(solution, tmp_path / "library.geojson")
    ours = json.loads(export(desk, "geojson", tmp_path).read_text())
    theirs = json.loads((tmp_path / "library.geojson").read_text())
    for feature in theirs["features"]:
        feature["properties"].pop("initial_load", None)  # which the page does not keep
    assert ours == theirs
    desk.click("#tab-schedule")
    expect(desk.locator(".gantt-axis text").first).to_have_text(re.compile(r"^\d+:\d\d$"))


@pytest.mark.parametrize(
    ("road", "day", "cost", "end"),
    [(7000, "any", "14 km", "8:24"), (7000, None, "14 km", "30240"), (7, "2026-11-16", "14", "8:24")],
)
def test_roads_on_the_globe_are_metres_where_they_are_as_long(desk, road, day, cost, end):
    """For 5.56 km along the globe, 7000 are metres and 7 is a number; times are of a day if there is one."""
    open_problem(
        desk,
        capacity=1,
        depots=[{"lon": 0, "lat": 0, "window": [28_800, None]}],
        customers=[{"lon": 0, "lat": 0.05, "delivery": 1}],
        distances=[[0, road], [road, 0]],
        durations=[[0, 720], [720, 0]],
        day=day,
    )
    open_file(desk, "route.sol", "Route #1: 1\n")
    expect(desk.locator("#cost")).to_have_text(cost)
    desk.click("#routes button")
    hint = desk.locator("#routes li .hint")
    digits = "\\s*".join(end)  # a narrow space between thousands
    expect(hint).to_have_text(re.compile(rf"Leaves .*; ends {digits}\.$"))


def test_the_latest_departure_is_the_last_that_ends_at_the_same_time(desk):
    """Two stops with waiting: vehicles leave as late as that; a moment later it is not feasible."""
    stops = [{"x": 10, "y": 0, "window": [50, 52]}, {"x": 20, "y": 0, "window": [70, 71]}]
    open_problem(desk, capacity=2, customers=[{"delivery": 1, **stop} for stop in stops])
    open_file(desk, "route.sol", "Route #1: 1 2\n")
    expect(desk.locator("#cost")).to_have_text("40")
    desk.click("#routes button")
    expect(desk.locator("#routes li .hint")).to_have_text("Leaves 42; ends 90.")
    windows = [[0, 1000], [50, 52], [70, 71]]

    def leaving(at):
        windows[0][0] = at
        problem = Problem(
            capacity=2, delivery=[1, 1], coords=[(0, 0), (10, 0), (20, 0)], time_windows=windows
        )
        solution = Solution.of(problem, [(0, [1, 2])])
        return check(problem, solution).feasible, solution.as_dict()["routes"][0]["end"]

    assert leaving(42) == (True, 90)
    with pytest.raises(ChainRouteError, match="window-unreachable"):
        leaving(42.1)


# -- paper and pictures


def test_printing_gives_a_sheet_for_each_route(desk, tmp_path):
    """Beside one with the map; each with its stops in order, and the pictures with title and legend."""
    problem = open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 3 2\n")
    expect(desk.locator("#cost")).to_have_text("8")
    pdf = desk.pdf()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 3
    assert desk.locator(".sheet").nth(2).locator("tbody td:nth-child(2)").all_text_contents() == ["c3", "c2"]
    picture = ElementTree.parse(export(desk, "svg", tmp_path)).getroot()
    texts = [element.text for element in picture.iter() if element.text]
    assert problem.name in texts
    assert "CVRP · 3 customers · cost 8 · 2 routes" in texts
    assert {"Depot", "Customer", "1: 2", "2: 6"} <= set(texts)
    desk.fill("#name", "a plan with a name " * 8)
    desk.locator("#name").blur()
    title = ElementTree.parse(export(desk, "svg", tmp_path)).getroot().findall("{*}text")[0].text
    assert title.endswith("…")
    assert len(title) < 62  # characters of ten pixels each: they fit into the picture


# -- by hand


def test_a_stop_is_moved_by_hand_and_judged_at_once(desk):
    """Stops are moved by keyboard to another route and place, by mouse onto a route; what breaks a rule is
    told."""
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    desk.locator("#routes button").nth(1).click()
    desk.get_by_label("Move c2").select_option("To route 1")
    stops = desk.locator("#routes tbody th")
    expect(stops).to_have_text(["c2", "c1"])  # as near before c1 as after it
    desk.get_by_label("Move c2").select_option("Later")
    expect(stops).to_have_text(["c1", "c2"])
    expect(desk.locator("#cost")).to_have_text("10")
    expect(desk.locator("#verdict")).to_have_text("Edited, and still feasible.")
    desk.locator("#routes tbody tr").nth(0).drag_to(desk.locator("#routes > li > button").nth(1))
    expect(stops).to_have_text(["c1", "c3"])
    expect(desk.locator("#cost")).to_have_text("10")
    desk.get_by_label("Move c3").select_option("To route 1")
    expect(desk.locator("#verdict")).to_contain_text("still feasible")
    desk.get_by_label("Move c3").select_option("To a new route")
    expect(desk.locator("#map g.route")).to_have_count(3)
    desk.locator("#routes button").nth(0).click()
    desk.get_by_label("Move c2").select_option("To route 3")
    expect(desk.locator("#map g.route")).to_have_count(2)
    desk.locator("#routes button").nth(0).click()
    desk.get_by_label("Move c1").select_option("To route 2")
    expect(desk.locator("#verdict")).to_contain_text("capacity-exceeded")
    desk.click("#undo")
    expect(desk.locator("#map g.route")).to_have_count(2)
    expect(desk.locator("#verdict")).to_have_text("Edited, and still feasible.")


def test_moves_are_made_one_after_the_other(desk):
    """Also those that are made before the judge has answered the one before."""
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    later = "new Promise((done) => setTimeout(done, 500))"
    desk.evaluate(f"() => {{ const now = fetch; fetch = (...given) => {later}.then(() => now(...given)); }}")
    desk.locator("#routes button").nth(1).click()
    desk.get_by_label("Move c2").select_option("To route 1")
    desk.get_by_label("Move c3").select_option("To route 1")
    expect(desk.locator("#map g.route")).to_have_count(1)


# -- what the judge has not seen


def moved_far(page, *places):
    """Types places into c3's row, one after the other, faster than the judge answers."""
    page.click("#tab-table")
    page.get_by_label("x of c3").evaluate(
        """async (_, places) => {
          for (const x of places) {
            const input = document.querySelector("[aria-label='x of c3']");
            input.value = x;
            input.dispatchEvent(new Event("change"));
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
          }
        }""",
        places,
    )


def test_undo_and_reload_bring_back_no_figures_of_another_problem(desk):
    """What was edited again, or left, before the judge had seen it is judged when it comes back."""
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    expect(desk.locator("#cost")).to_have_text("8")
    moved_far(desk, 4, 5)
    expect(desk.locator("#cost")).to_have_text("12")
    desk.click("#undo")
    expect(desk.locator("#cost")).to_have_text("10")
    desk.click("#undo")
    expect(desk.locator("#cost")).to_have_text("8")
    expect(desk.locator("#verdict")).to_have_text("Judged: feasible.")
    moved_far(desk, 6)
    desk.reload()
    expect(desk.locator("#cost")).to_have_text("14")


def test_undo_brings_back_what_was_known_before_a_slow_drag(desk):
    """The judge answers while a stop is held."""
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    expect(desk.locator("#cost")).to_have_text("8")
    last = "[...document.querySelectorAll('#map circle.customer')].at(-1)"
    box = desk.evaluate(f"{last}.getBoundingClientRect().toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    desk.mouse.move(x, y)
    desk.mouse.down()
    desk.mouse.move(x - 10, y - 40, steps=4)
    expect(desk.locator("#verdict")).to_contain_text("Edited")
    desk.mouse.move(x - 20, y - 80, steps=4)
    desk.mouse.up()
    desk.click("#undo")
    expect(desk.locator("#cost")).to_have_text("8")
    expect(desk.locator("#verdict")).to_have_text("Judged: feasible.")


def test_routes_go_with_the_last_customer(desk):
    open_problem(desk, capacity=2, customers=ROW["customers"][:1])
    open_file(desk, "one.sol", "Route #1: 1\n")
    expect(desk.locator("#cost")).to_have_text("2")
    desk.click("#tab-table")
    desk.get_by_label("Delete c1").click()
    expect(desk.locator("#headline")).to_contain_text("Not solved yet")
    expect(desk.locator("#map g.route")).to_have_count(0)


def test_a_service_that_is_back_judges_what_was_edited_without_it(desk):
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    expect(desk.locator("#cost")).to_have_text("8")
    desk.route("**/v1/check", lambda route: route.abort())
    desk.fill("#capacity", "1")
    desk.locator("#capacity").blur()
    expect(desk.locator("#verdict")).to_contain_text("The edit is not judged yet")
    expect(desk.locator("#faults")).to_contain_text("does not answer")
    desk.unroute_all()
    expect(desk.locator("#verdict")).to_contain_text("capacity-exceeded")
    expect(desk.locator("#faults")).to_be_hidden()


def test_places_that_are_gone_are_in_no_export(desk, tmp_path):
    """Though the judge has said nothing of the routes without them, since the problem has a fault."""
    places = [{"name": f"c{i}", "lon": 8.5 + i / 100, "lat": 47.4, "delivery": 1} for i in (1, 2, 3)]
    open_problem(desk, capacity=2, depots=[{"lon": 8.5, "lat": 47.4}], customers=places)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    expect(desk.locator("#map g.route")).to_have_count(2)
    desk.fill("#capacity", "")
    desk.locator("#capacity").blur()
    expect(desk.locator("#verdict")).to_contain_text("has a fault")
    desk.click("#tab-table")
    desk.get_by_label("Delete c2").click()
    expect(desk.get_by_label("Delete c2")).to_have_count(0)
    exported = json.loads(export(desk, "geojson", tmp_path).read_text())
    stops = [f["properties"].get("customers") for f in exported["features"]]
    assert stops == [["c1"], ["c3"], None, None, None]
    solution = json.loads(export(desk, "json", tmp_path).read_text())
    assert [route["customers"] for route in solution["routes"]] == [["c1"], ["c3"]]
    assert export(desk, "sol", tmp_path).read_text().startswith("Route #1: 1\nRoute #2: 2\n")
    desk.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(desk.locator("#sheets .sheet")).to_have_count(3)


# -- runs


def scatter(page):
    """So many customers that none of them is proven best at once."""
    page.fill("#count", "60")
    page.click("#scatter")
    expect(page.locator("#name")).to_have_value("random 60")


def test_the_settings_are_closed_without_an_end_of_the_run(desk):
    scatter(desk)
    desk.fill("#time-limit", "60")
    desk.click("#solve")
    expect(desk.locator("#cancel")).to_be_enabled()
    cancelled = []
    desk.on("request", lambda request: request.method == "DELETE" and cancelled.append(request))
    desk.click("#settings-open")
    desk.keyboard.press("Escape")
    expect(desk.locator("#settings")).to_be_hidden()
    expect(desk.locator("#map g.route")).not_to_have_count(0)
    assert not cancelled
    expect(desk.locator("#cancel")).to_be_enabled()
    desk.keyboard.press("Escape")
    expect(desk.locator("#status")).to_contain_text("Cancelled")


def test_routes_are_not_taken_for_those_of_a_problem_that_was_edited_meanwhile(desk):
    open_problem(desk, **ROW)
    held = []
    desk.route("**/v1/solve", lambda route: held.append(route))
    with desk.expect_request("**/v1/solve"):
        desk.click("#solve")
    desk.fill("#capacity", "1")
    desk.locator("#capacity").blur()
    held[0].continue_()
    expect(desk.locator("#status")).to_have_text("The problem was edited meanwhile: solve it again.")
    expect(desk.locator("#cancel")).to_be_disabled()
    desk.unroute_all()


# The stream breaks off after the first plan; before that it may only say that it is alive.
CUT = """() => {
  const now = fetch;
  let cut = false;
  window.fetch = async (url, options) => {
    if (cut) throw new TypeError("nobody is there");
    const response = await now(url, options);
    if (!url.includes("/events")) return response;
    const reader = response.body.getReader(), heard = [];
    while (!heard.some((chunk) => new TextDecoder().decode(chunk).includes("data: ")))
      heard.push((await reader.read()).value);
    cut = true;
    return new Response(new Blob(heard));
  };
}"""


def test_what_was_found_stays_where_the_service_goes_away(desk):
    """The stages and the cost against time stay, too."""
    scatter(desk)
    desk.evaluate(CUT)
    desk.fill("#time-limit", "5")
    desk.click("#solve")
    expect(desk.locator("#status")).to_contain_text("Failed. Cost")
    expect(desk.locator("#faults")).to_contain_text("does not answer")
    expect(desk.locator("#stages button")).not_to_have_count(0)
    desk.reload()  # with a `fetch` of its own


def test_a_cost_of_nothing_is_drawn(desk):
    open_problem(desk, capacity=2, customers=[{"name": "here", "x": 0, "y": 0, "delivery": 1}])
    solve(desk)
    expect(desk.locator("#cost")).to_have_text("0")
    assert "NaN" not in desk.locator("#chart").inner_html()


# -- what is seen


def inside(page, selector):
    """Whether nothing of an element lies beyond its scrolling edge."""
    return page.locator(selector).first.evaluate(
        "e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight"
    )


LONG = "Alderley Edge and Wilmslow, by the station"


def test_nothing_is_cut_off_in_a_window_of_1280_by_800(desk):
    """With every constraint switched on, long names, and the routes of a solution, one of them opened."""
    stops = [{"name": f"{LONG} {i}", "x": i, "y": i, "delivery": 1} for i in range(1, 4)]
    open_problem(desk, capacity=2, customers=stops)
    for switch in ("limited", "windows", "several"):
        desk.check(f"#{switch}")
    desk.locator("[name=backhaul][value=mixed]").check(force=True)
    open_file(desk, "two.sol", "Route #1: 3\nRoute #2: 4 5\n# Depots: 0 0\n")
    desk.locator("#routes button").nth(1).click()
    desk.click("#tab-table")
    expect(desk.locator("#routes tbody tr")).to_have_count(2)
    for part in ("html", "#setup", "#results", "#table .scroll", "#routes table"):
        assert inside(desk, part), part
    edge = desk.locator("#route-card").bounding_box()
    for cell in desk.locator("#routes tbody tr >> nth=0 >> td").all():
        box = cell.bounding_box()
        assert box["x"] + box["width"] <= edge["x"] + edge["width"]
    desk.click("#tab-schedule")
    desk.fill("#capacity", "0.5")
    desk.locator("#capacity").blur()
    expect(desk.locator("#faults li")).to_have_count(3)
    assert apart(desk)


def apart(page):
    """Whether the details lie below the map, whatever stands above it, and end within the window."""
    plan, dock = (page.locator(part).bounding_box() for part in ("#plan", "#dock"))
    return plan["y"] + plan["height"] <= dock["y"] and dock["y"] + dock["height"] <= WIDE["height"]


def test_the_details_grow_by_mouse_and_keyboard(desk, service):
    """And are as high after a reload."""
    height = "document.querySelector('#dock').clientHeight"
    before = desk.evaluate(height)
    box = desk.locator("#divider").bounding_box()
    desk.mouse.move(box["x"] + 50, box["y"] + 4)
    desk.mouse.down()
    desk.mouse.move(box["x"] + 50, box["y"] - 56)
    desk.mouse.up()
    assert desk.evaluate(height) == pytest.approx(before + 60, abs=8)
    desk.locator("#divider").press("ArrowDown")
    now = desk.evaluate(height)
    assert now == pytest.approx(before + 36, abs=8)
    assert apart(desk)
    for _ in range(12):
        desk.locator("#divider").press("ArrowUp")
    assert apart(desk)
    now = desk.evaluate(height)
    desk.reload()
    expect(desk.locator("#map .customer").first).to_be_attached()
    assert desk.evaluate(height) == now
    desk.evaluate("localStorage.removeItem('dock')")


def test_the_map_says_which_way_and_which_route(desk):
    """An arrow on each long leg points from stop to stop; each route's number stands on its way out."""
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 3 2\n")
    expect(desk.locator("#map .badge-mark text")).to_have_text(["1", "2"])
    arrows = desk.locator("#map g.route[data-route='2'] .arrows").get_attribute("d")
    tips = [float(x) for x in re.findall(r"M[\d.]+ [\d.]+L([\d.]+)", arrows)]
    tails = [float(x) for x in re.findall(r"M([\d.]+)", arrows)]
    assert [tip > tail for tip, tail in zip(tips, tails, strict=True)] == [True, False, False]


def test_a_sketch_on_the_globe_and_whose_tiles_lie_under_it(desk, service):
    """Customers are clicked in degrees; the tiles' owner is named on the map."""
    desk.click("#globe")
    expect(desk.locator("#name")).to_have_value("map")
    desk.locator("#map").click(position={"x": 100, "y": 100})
    expect(desk.locator("#map .customer")).to_have_count(1)
    customer = model(desk)["customers"][0]
    assert 8 < customer["lon"] < 8.54
    assert 47.37 < customer["lat"] < 48
    desk.click("#settings-open")
    desk.fill("#tiles", f"{service}/assets/icon.svg?{{z}}/{{x}}/{{y}}")
    desk.fill("#credit-text", "© the mappers")
    desk.click("#settings button")
    expect(desk.locator("#credit")).to_have_text("© the mappers")
    desk.evaluate("localStorage.removeItem('tiles'); localStorage.removeItem('credit')")
    desk.locator("[name=tool][value=move]").check(force=True)


# With a route chosen, also where what was still being opened has let go of it.
STAND_WITHIN = """(pairs) => {
  if (!document.querySelector("#map-card").offsetWidth) document.querySelector("#routes button").click();
  return pairs.every((parts) => {
    const [inner, outer] = parts.map((part) => document.querySelector(part).getBoundingClientRect());
    return inner.width > 0 && inner.left >= outer.left && inner.right <= outer.right;
  });
}"""


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_longest_names_push_nothing_aside(desk, size):
    """Of a route the length stands beside them, the map's card on the map, and the reasons on their card."""
    name = "W" * 199
    places = [{"name": f"{name}{i}", "x": i, "y": 1, "delivery": 1, "prize": 1} for i in range(2)]
    depots = [{"name": f"{name}d", "x": 0, "y": 0}, {"name": f"{name}e", "x": 9, "y": 0}]
    route = {"depot": f"{name}d", "vehicle": f"{name}v", "customers": [f"{name}0"]}
    called = f"{name}{'wn'[size is NARROW]}"  # another than before, so that what is looked at is this one
    problem = {"name": called, "capacity": 2, "depots": depots, "customers": places}
    problem["vehicles"] = [{"name": f"{name}v"}]
    desk.set_viewport_size(size)
    open_file(desk, "long.json", json.dumps({"problem_document": problem, "routes": [route]}))
    expect(desk.locator("#name")).to_have_value(called)
    expect(desk.locator("#left-out li")).to_have_count(1)
    pairs = [("#routes meter", "#route-card"), ("#left-out", "#solution"), ("#map-card", "#map")]
    desk.wait_for_function(STAND_WITHIN, arg=pairs)
    assert desk.evaluate("document.documentElement.scrollWidth") <= size["width"]
    desk.set_viewport_size(WIDE)


def test_no_number_of_a_table_is_cut(desk):
    far = {"name": "far", "x": 1234567.25, "y": 1, "delivery": 98765432}
    open_problem(desk, capacity=1e9, customers=[far])
    desk.click("#tab-table")
    for title in ("x", "Demand"):
        cell = desk.get_by_label(f"{title} of far")
        expect(cell).to_be_visible()
        assert cell.evaluate("e => e.scrollWidth <= e.clientWidth"), title


def test_a_name_of_symbols_is_drawn_whole(desk, tmp_path):
    """Each takes two places of a text; none is cut in two, which no picture could hold."""
    open_problem(desk, capacity=1, customers=[{"name": "\N{SLICE OF PIZZA}" * 60, "x": 1, "y": 1}])
    assert export(desk, "png", tmp_path).read_bytes().startswith(b"\x89PNG")


def test_names_hold_no_invisible_characters_and_no_more_than_the_service_takes(desk, tmp_path):
    """Neither typed nor in a file, as far as pictures go, which could not be read with them."""
    open_problem(desk, capacity=2, customers=[{"name": "a\0b", "x": 1, "y": 1, "delivery": 1}])
    ElementTree.parse(export(desk, "svg", tmp_path))
    desk.click("#tab-table")
    name = desk.locator("#table tbody tr").nth(1).locator("input").first
    name.evaluate("input => { input.value = 'c\\0d'; input.dispatchEvent(new Event('change')); }")
    assert model(desk)["customers"][0]["name"] == "cd"
    expect(desk.locator("#table input[type=text]").first).to_have_attribute("maxlength", "200")
    expect(desk.locator("#name")).to_have_attribute("maxlength", "200")
    expect(desk.locator("#seed")).to_have_attribute("max", str(SEEDS - 1))
    desk.click("#tab-schedule")


def test_no_view_keeps_anyone_out(desk):
    """axe-core finds nothing, in no view, light or dark, wide or narrow."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is not installed"
    ).Axe()

    def look(view):
        found = axe.run(desk).response["violations"]
        assert [(view, v["id"], v["nodes"][0]["html"]) for v in found] == []

    pick(desk, "parcels")
    look("unsolved")
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    desk.locator("#routes button").nth(1).click()
    expect(desk.locator("#routes tbody tr")).to_have_count(2)
    look("solved")
    desk.click("#tab-vehicles")
    desk.get_by_text("Add vehicle type").click()
    expect(desk.locator("#vehicles tbody tr")).to_have_count(1)
    look("vehicles")
    desk.click("#undo")
    desk.click("#tab-table")
    desk.emulate_media(color_scheme="dark")
    look("table")
    desk.fill("#capacity", "-1")
    desk.locator("#capacity").blur()
    expect(desk.locator("#capacity")).to_have_attribute("aria-invalid", "true")
    desk.set_viewport_size(NARROW)
    look("faults")
    desk.emulate_media(color_scheme="light")
    desk.click("#settings-open")
    look("settings")
    desk.keyboard.press("Escape")
    desk.set_viewport_size(WIDE)
    desk.click("#tab-schedule")


def test_the_result_stands_below_solve_on_a_telephone(desk):
    """The order is map, Solve, result, routes; then the rest."""
    desk.set_viewport_size(NARROW)
    parts = ["#plan", "#solving", "#solution", "#route-card", "#example", "#exports"]
    tops = [desk.locator(part).bounding_box()["y"] for part in parts]
    assert tops[:5] == sorted(tops[:5])
    assert tops[5] > tops[3]
    pencil = desk.locator("#name").evaluate("e => parseFloat(getComputedStyle(e).paddingRight)")
    assert pencil >= 20  # pixels, so that a long name ends before it
    desk.set_viewport_size(WIDE)


def test_work_is_kept_without_the_course_of_the_run_where_room_is_short(desk):
    """And if even that does not fit, the page says so rather than lose it in silence."""
    open_problem(desk, **ROW)
    open_file(desk, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
    expect(desk.locator("#cost")).to_have_text("8")
    kept = """async (room) => {
      const { change, state } = await import("/assets/state.js");
      const put = Storage.prototype.setItem;
      const length = JSON.stringify({ model: state.model, run: state.run, shown: state.shown }).length;
      Storage.prototype.setItem = function (key, text) {
        if (text.length > room * length) throw new DOMException("full", "QuotaExceededError");
        put.call(this, key, text);
      };
      const [shot] = state.run.snapshots;
      change({ run: { ...state.run, snapshots: Array(20).fill(shot) } });
      await new Promise((resolve) => setTimeout(resolve, 800));
      Storage.prototype.setItem = put;
      return JSON.parse(sessionStorage.getItem("work"))?.run.snapshots.length ?? 0;
    }"""
    assert desk.evaluate(kept, 2) == 1
    assert desk.evaluate(kept, 0.1) == 0
    expect(desk.locator("#status")).to_contain_text("too large for the browser to keep")


# -- a restart


def test_work_survives_a_restart_of_the_service(browser):
    """Sketch and routes are there while it is away, and after it is back under the same address."""
    with listening(application()) as client:
        address = str(client.base_url)
        until(lambda: reads(address))
        with pages(browser, address) as opened:
            page = opened()
            open_problem(page, **ROW)
            open_file(page, "two.sol", "Route #1: 1\nRoute #2: 2 3\n")
            expect(page.locator("#cost")).to_have_text("8")
            client.end()
            until(lambda: gone(address))
            page.fill("#capacity", "5")
            page.locator("#capacity").blur()
            expect(page.locator("#faults")).to_contain_text("does not answer")
            page.wait_for_timeout(500)  # milliseconds, more than the pause before it is kept
            with listening(application(), int(address.rpartition(":")[2])):
                page.reload()
                expect(page.locator("#capacity")).to_have_value("5")
                expect(page.locator("#map g.route")).to_have_count(2)
                page.fill("#capacity", "1")
                page.locator("#capacity").blur()
                expect(page.locator("#verdict")).to_contain_text("capacity-exceeded")


def gone(address):
    try:
        httpx.get(f"{address}/v1/health", timeout=5)
    except httpx.TransportError:
        return True
