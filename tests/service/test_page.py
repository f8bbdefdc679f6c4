"""The page, in a real browser against the real service: what a person sees, clicks and types."""

import json
import math
import re
from itertools import pairwise, product
from xml.etree import ElementTree

import pytest
from browsing import NARROW, answer, choose, expect, export, judged, model, pages, solve

from chainroute.formats import json as our_json
from chainroute.plan.check import check
from chainroute.plan.solution import Solution
from chainroute.problem.variants import VARIANTS, Backhaul, Variant

BROKEN = b"NAME : broken\nTYPE : CVRP\nDIMENSION : three\nCAPACITY : 5\nNODE_COORD_SECTION\n1 0 0\n"


@pytest.fixture(scope="module")
def windows(service, browser):
    with pages(browser, service) as opened:
        yield opened


@pytest.fixture
def open_page(windows):
    yield windows
    windows.check()


# -- solving


def test_an_example_is_solved_and_drawn(open_page, tmp_path):
    """As many routes on the map, in the list and in the schedule as the job has; exports are feasible."""
    page = open_page()
    choose(page, "couriers", "MDOVRPL")
    job = solve(page)
    routes = len(job["solution"]["routes"])
    for drawn in ("#map g.route", "#routes > li", "#schedule .lane"):
        expect(page.locator(drawn)).to_have_count(routes)
    assert page.locator("#chart .shot").count() == len(job["history"])
    assert page.locator(".stage").count() >= 1
    assert judged(page, tmp_path) == pytest.approx(job["solution"]["cost"])
    picture = ElementTree.parse(export(page, "svg", tmp_path)).getroot()
    assert len(picture.findall(".//*[@data-route]")) == routes
    assert export(page, "png", tmp_path).read_bytes().startswith(b"\x89PNG")


def test_a_route_shows_its_facts_on_the_map_in_the_list_and_in_the_schedule(open_page):
    page = open_page()
    job = solve(page)
    page.locator("#routes li button").first.hover()
    expect(page.locator("#map g.route.on")).to_have_attribute("data-route", "1")
    first = job["solution"]["routes"][0]
    expect(page.locator("#map-card")).to_contain_text(f"Load{first['max_load']:g} of 80")
    page.locator("#schedule .lane").first.click()
    expect(page.locator("#routes li").first.locator("tbody tr")).to_have_count(len(first["customers"]))
    expect(page.locator("#schedule .stop-lane")).to_have_count(len(first["customers"]))
    expect(page.locator("#schedule .stop-lane .window")).to_have_count(len(first["customers"]))


def test_a_run_is_cancelled(open_page):
    """A thousand customers, drawn without names; Cancel ends the job at once and leaves the page usable."""
    page = open_page()
    choose(page, "thousand", "CVRP")
    expect(page.locator("#map .customer")).to_have_count(1000)
    assert page.locator("#map .labels text").count() <= 1
    page.fill("#time-limit", "50")
    with page.expect_response(lambda response: response.url.endswith("/v1/solve")) as response:
        page.click("#solve")
    expect(page.locator("#scatter")).to_be_disabled()
    page.click("#cancel")
    expect(page.locator("#status")).to_contain_text("Cancelled.")
    assert answer(page, f"v1/jobs/{response.value.json()['id']}")["status"] == "cancelled"
    expect(page.locator("#scatter")).to_be_enabled()


def test_clicked_customers_are_solved(open_page, tmp_path):
    page = open_page()
    page.click("#blank")
    box = page.locator("#map").bounding_box()
    spots = [(0.2, 0.2), (0.8, 0.2), (0.3, 0.7), (0.7, 0.8), (0.5, 0.3)]
    for x, y in spots:
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    expect(page.locator("#map .customer")).to_have_count(len(spots))
    job = solve(page)
    assert judged(page, tmp_path) == pytest.approx(job["solution"]["cost"])
    assert sum(len(route["customers"]) for route in job["solution"]["routes"]) == len(spots)


def test_two_stages_are_compared(open_page):
    """Canned progress of a run: the better routes on show, the worse laid over them, with the difference."""
    page = open_page()
    choose(page, "parcels", "CVRP")
    problem = our_json.read(json.dumps(model(page)), "parcels", None)
    alone = Solution.of(problem, [(0, [customer]) for customer in problem.customers])
    pairs = Solution.of(problem, [(0, problem.customers[i : i + 2]) for i in range(0, 30, 2)])
    assert check(problem, alone).feasible
    assert check(problem, pairs).feasible
    documents = [alone.as_dict(), pairs.as_dict()]
    history = [
        {"seconds": i + 0.5, "cost": document["cost"], "source": source}
        for i, (document, source) in enumerate(zip(documents, ("policy", "polish"), strict=True))
    ]
    job = {"id": "x", "status": "done", "history": history, "solution": documents[1], "notes": []}
    events = [("progress", {**point, "solution": d}) for point, d in zip(history, documents, strict=True)]
    body = "".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in [*events, ("end", job)])
    page.route("**/v1/solve", lambda route: route.fulfill(json={"id": "x", "status": "queued"}))
    stream = {"body": body, "content_type": "text/event-stream"}
    page.route("**/v1/jobs/x/events*", lambda route: route.fulfill(**stream))
    page.click("#solve")
    expect(page.locator("#map g.route")).to_have_count(15)
    expect(page.locator(".stage")).to_have_count(2)
    page.select_option("#against", "policy")
    expect(page.locator("#map .against path")).to_have_count(30)
    gap = alone.cost - pairs.cost
    expect(page.locator("#difference")).to_contain_text(f"(−{100 * gap / alone.cost:.3g} %)")
    page.click(".stage[data-source=policy]")
    expect(page.locator("#map g.route")).to_have_count(30)
    expect(page.locator("#difference")).to_contain_text("±0")


# -- opening


def test_a_file_is_dropped(open_page):
    """A problem without coordinates: it is laid out by its distances, and none can be added by a click."""
    page = open_page()
    matrix = [[abs(i - j) * 3 for j in range(5)] for i in range(5)]
    document = {
        "capacity": 9,
        "depots": [{}],
        "customers": [{"delivery": 4}] * 4,
        "distances": matrix,
    }
    page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.items.add(new File([text], "line.json"));
          const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
          document.body.dispatchEvent(drop);
        }""",
        json.dumps(document),
    )
    expect(page.locator("#name")).to_have_value("line")
    expect(page.locator("#map .customer")).to_have_count(4)
    marks = page.locator("#map .customer").all()
    places = [(box["x"], box["y"]) for box in (mark.bounding_box() for mark in marks)]
    gaps = [math.dist(a, b) for a, b in pairwise(places)]
    assert gaps == pytest.approx([gaps[0]] * 3, rel=0.05)  # as far apart as the matrix says
    page.locator("[name=tool][value=customer]").check(force=True)
    page.locator("#map").click(position={"x": 30, "y": 30})
    expect(page.locator("#map .customer")).to_have_count(4)
    expect(page.locator("#map-hint")).to_contain_text("none can be added")
    job = solve(page)
    problem = our_json.read(json.dumps(model(page)), "line", None)
    solution = our_json.read_solution(json.dumps(job["solution"]), problem)
    assert check(problem, solution).feasible
    assert solution.cost == 2 * 12 + 2 * 6  # two by two, the far ones together


def test_a_token_is_asked_for(browser, service):
    """Where the service refuses, the settings open with its words; with the token, the page begins."""
    with browser.new_context() as context:
        page = context.new_page()
        fault = {
            "code": "unauthorized",
            "where": "Authorization",
            "path": "Authorization",
            "message": "the token is missing or wrong.",
        }

        def guarded(route):
            if route.request.headers.get("authorization") == "Bearer secret":
                route.continue_()
            else:
                route.fulfill(status=401, json={"error": {"faults": [fault]}})

        page.route("**/v1/**", guarded)
        page.goto(service)
        expect(page.locator("#settings .fault code")).to_have_text("unauthorized")
        page.fill("#token", "secret")
        page.click("#settings button")
        expect(page.locator("#variant")).to_have_text("VRPMBTW")


# -- faults


def test_a_broken_file_is_told_beside_the_button(open_page):
    page = open_page()
    page.set_input_files("#file", {"name": "broken.vrp", "mimeType": "text/plain", "buffer": BROKEN})
    told = page.locator("[data-where=file] .fault").first
    expect(told).to_contain_text("bad-syntax")
    expect(told).to_contain_text("line 3")
    expect(page.locator("#name")).to_have_value("dairy")  # what was open stays open


def test_faults_stand_beside_their_fields(open_page):
    """They stand in the form beside the input, in the table under the row, elsewhere above the map."""
    page = open_page()
    page.fill("#time-limit", "0")
    page.click("#solve")
    expect(page.locator("#solving .fault code")).to_have_text("bad-option")
    expect(page.locator("#time-limit")).to_have_attribute("aria-invalid", "true")
    page.fill("#capacity", "-1")
    page.locator("#capacity").blur()
    expect(page.locator("#capacity")).to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#status")).to_contain_text("2 faults")
    note = "document.getElementById(document.querySelector('#capacity').getAttribute('aria-describedby'))"
    page.wait_for_function(f"{note}?.querySelector('code').textContent === 'not-positive'")
    page.fill("#capacity", "80")
    page.click("#tab-table")
    closes = page.get_by_label("Closes of Barrow")
    closes.fill("1")
    closes.blur()
    expect(page.locator("#faults")).to_contain_text("window-reversed")
    note = page.locator("tr:has([aria-label='Closes of Barrow']) + tr.note")
    expect(note).to_contain_text("window-reversed")
    closes.fill("270")
    closes.blur()
    expect(page.locator("#faults")).to_be_hidden()


def test_an_edit_is_judged_at_once_and_can_be_undone(open_page):
    page = open_page()
    solve(page)
    before = page.locator("#cost").text_content()
    page.click("#tab-table")
    page.get_by_label("Delete Alder").click()
    expect(page.locator("#verdict")).to_contain_text("still feasible")
    expect(page.locator("#cost")).not_to_have_text(before)
    page.get_by_label("Demand of Ashby").fill("80")
    page.get_by_label("Demand of Ashby").blur()
    expect(page.locator("#verdict")).to_contain_text("capacity-exceeded")
    page.click("#undo")
    page.click("#undo")
    expect(page.locator("#cost")).to_have_text(before)  # Alder is back, and so is the solution


# -- variants


def test_all_variants_are_made_by_switches(open_page):
    """Each mix of switches shows its name, and the values made up for it are accepted by the library."""
    page = open_page()
    page.click("#blank")
    box = page.locator("#map").bounding_box()
    for x, y in [(0.3, 0.3), (0.7, 0.3), (0.2, 0.8), (0.9, 0.6)]:
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])
    made = page.evaluate(
        """async () => {
          const { state } = await import("/assets/state.js");
          const { toDocument } = await import("/assets/problem.js");
          const frame = () => new Promise(requestAnimationFrame);
          const turn = (id, on) => {
            const box = document.getElementById(id);
            if (box.checked !== on) box.click();
          };
          const made = [];
          for (let i = 0; i < 16; i++) {
            for (const rule of ["none", "linehauls-first", "mixed"]) {
              const switches = ["open-routes", "limited", "windows", "several"];
              switches.forEach((id, bit) => turn(id, Boolean(i >> bit & 1)));
              document.querySelector(`[name=backhaul][value=${rule}]`).click();
              await frame();
              await frame();
              made.push([document.querySelector("#variant").textContent, toDocument(state.model)]);
            }
          }
          return made;
        }"""
    )
    bits = product((False, True), repeat=4)  # several, windows, limited, open: the last turns fastest
    expected = [
        Variant(open=o, backhaul=rule, limit=limit, time_windows=windows, multi_depot=several).name
        for several, windows, limit, o in bits
        for rule in Backhaul
    ]
    assert [name for name, _ in made] == expected
    assert set(expected) == {variant.name for variant in VARIANTS}
    for name, document in made:
        assert our_json.read(json.dumps(document), "sketch", None).variant.name == name


@pytest.mark.parametrize(("example", "variant"), [("lakeside", "CVRP"), ("thousand", "CVRP")])
def test_switches_fit_any_scale(open_page, example, variant):
    """Metres along the globe, or the unit square: what is made up can be met from the first depot."""
    page = open_page()
    choose(page, example, variant)
    for switch in ("limited", "windows", "several"):
        page.locator(f"#{switch}").check()
    page.locator("[name=backhaul][value=mixed]").check(force=True)
    expect(page.locator("#variant")).to_have_text("MDVRPMBLTW")
    if example == "lakeside":
        page.fill("#speed", "12.5")
        page.locator("#speed").blur()
        expect(page.locator("#faults")).to_be_hidden()
        assert model(page)["speed"] == 12.5
    assert our_json.read(json.dumps(model(page)), example, None).variant.name == "MDVRPMBLTW"


# -- for everybody


def test_the_keyboard_is_enough(open_page):
    """Tab, Enter and arrows suffice: to Solve, to a route, and to add a customer and move it on the map."""
    page = open_page()
    page.fill("#time-limit", "3")

    def tab_to(selector):
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none"
                return
        raise AssertionError(f"Tab does not reach {selector}")

    tab_to("#solve")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Done")
    tab_to("#routes button")
    expect(page.locator("#map g.route.on")).to_have_attribute("data-route", "1")
    page.keyboard.press("Enter")
    expect(page.locator("#routes button").first).to_have_attribute("aria-expanded", "true")
    page.locator("[name=tool][value=customer]").focus()
    page.keyboard.press("Space")
    tab_to("#map")
    page.keyboard.press("Enter")
    expect(page.locator("#map .customer")).to_have_count(35)
    before = model(page)["customers"][-1]
    page.keyboard.press("ArrowRight")
    after = model(page)["customers"][-1]
    assert after["x"] > before["x"]
    assert after["y"] == pytest.approx(before["y"], abs=0.1)
    page.keyboard.press("Delete")
    expect(page.locator("#map .customer")).to_have_count(34)


def test_a_telephone_needs_no_sideways_scrolling(open_page):
    page = open_page(viewport=NARROW)
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) == NARROW["width"]
    solve(page)
    page.locator("#routes button").first.click()
    assert page.evaluate(width) == NARROW["width"]
    page.click("#tab-table")
    assert page.evaluate(width) == NARROW["width"]
    assert page.locator("#map").bounding_box()["height"] > 200


def test_light_and_dark(open_page):
    """The system's wish decides, until the user has one of their own; that is remembered."""
    page = open_page(color_scheme="dark")

    def brightness():
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    assert brightness() < 60
    page.click("#theme")
    assert brightness() > 200
    page.reload()
    assert brightness() > 200


def test_tiles_come_only_from_the_server_that_the_user_names(open_page):
    page = open_page()
    choose(page, "lakeside", "CVRP")
    assert page.locator("#map image").count() == 0
    page.click("#settings-open")
    page.fill("#tiles", f"{page.url}assets/icon.svg?{{z}}/{{x}}/{{y}}")
    page.click("#settings button")
    expect(page.locator("#map image").first).to_be_attached()
    address = page.locator("#map image").first.get_attribute("href")
    assert re.search(r"\?\d+/\d+/\d+$", address)


# -- nothing is lost


def capacity(page):
    return page.locator("#capacity")


def test_work_survives_a_reload_with_its_routes(open_page):
    """An edit and a solution: both are there again, and the routes are not judged to be someone else's."""
    page = open_page()
    capacity(page).fill("93")
    capacity(page).press("Tab")
    solve(page)
    drawn = page.locator("#map g.route").count()
    page.wait_for_timeout(500)  # milliseconds, more than the pause before it is kept
    page.reload()
    expect(capacity(page)).to_have_value("93")
    expect(page.locator("#map g.route")).to_have_count(drawn)
    page.goto("about:blank")
    page.go_back()
    expect(capacity(page)).to_have_value("93")
    page.fill("#count", "30")
    page.press("#count", "Enter")
    expect(page.locator("#map g.route")).to_have_count(0)
    page.fill("#time-limit", "50")
    page.click("#solve")
    expect(page.locator("#map g.route").first).to_be_attached()
    expect(page.locator("#status")).to_have_text("Solving…")
    page.reload()  # in the midst of a run, which ends with it
    expect(page.locator("#status")).to_have_text("Your work on random 30 is back.")
    expect(page.locator("#map g.route").first).to_be_attached()
    expect(page.locator("#scatter")).to_be_enabled()


def test_undo_brings_back_what_an_example_took_the_place_of(open_page):
    """Problem and routes alike; and redo goes the other way."""
    page = open_page()
    capacity(page).fill("93")
    capacity(page).press("Tab")
    expect(page.locator("#verdict")).to_have_text("Edited, and still feasible.")
    solve(page)
    drawn = page.locator("#map g.route").count()
    page.select_option("#example", "parcels")
    expect(page.locator("#variant")).to_have_text("CVRP")
    expect(page.locator("#map g.route")).to_have_count(0)
    page.click("#undo")
    expect(capacity(page)).to_have_value("93")
    expect(page.locator("#map g.route")).to_have_count(drawn)
    expect(page.locator("#status")).to_have_text("Undone: dairy as it was.")
    expect(page.locator("#example")).to_have_value("")  # so that the same can be chosen again
    page.click("#redo")
    expect(page.locator("#variant")).to_have_text("CVRP")
    page.click("#undo")
    page.click("#undo")  # before it was solved: the stored routes, which the judge has accepted
    expect(page.locator("#verdict")).to_have_text("Edited, and still feasible.")
    expect(capacity(page)).to_have_value("93")


def test_the_map_zooms_within_bounds(open_page):
    """Between a point and a plain: two neighbours never fall together, and numbers stay finite."""
    page = open_page()

    def width():
        boxes = [page.locator("#map .places > *").nth(i).bounding_box() for i in range(2)]
        return math.hypot(boxes[0]["x"] - boxes[1]["x"], boxes[0]["y"] - boxes[1]["y"])

    fitted = width()
    for _ in range(40):
        page.click("#zoom-out")
    assert fitted / 30 < width() < fitted / 10
    page.click("#fit")
    assert width() == pytest.approx(fitted, abs=1)


def test_enter_makes_as_many_customers_as_the_service_takes(open_page):
    """It does not solve what is there; and the page's bound is the service's own."""
    page = open_page()
    expect(page.locator("#count")).to_have_attribute("max", "2000")
    expect(page.locator("#time-limit")).to_have_attribute("max", "60")
    page.fill("#count", "7")
    page.press("#count", "Enter")
    expect(page.locator("#variant")).to_have_text("CVRP")
    expect(page.locator("#map .customer")).to_have_count(7)
    assert page.locator("#map g.route").count() == 0
