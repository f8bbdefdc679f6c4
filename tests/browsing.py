"""What tests of the page share: the service as a process, Chromium, and what a person does on the page."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from services import until

from chainroute import formats
from chainroute.plan.check import check

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
expect = playwright.expect
expect.set_options(timeout=20_000)  # milliseconds, on a busy machine
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 375, "height": 740}

# Drops files, given as names and texts, on the page.
DROP = """files => {
  const transfer = new DataTransfer();
  for (const [name, text] of files) transfer.items.add(new File([text], name));
  window.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
}"""


@contextmanager
def served(port=0):
    """The address of a service of our own."""
    code = "from chainroute.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", str(port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            found = (re.search(r"http://[\d.]+:\d+", line) for line in process.stdout)
            address = next(match.group() for match in found if match)
            until(lambda: reads(address), 180)
            yield address
        finally:
            process.terminate()
            process.wait(10)


def reads(address):
    """Whether bodies are read, if only to be refused; the processes for that take a while to start."""
    request = urllib.request.Request(f"{address}/v1/check", b"{}", {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        return b"missing-field" in error.read()


@contextmanager
def chromium():
    """A browser without a window."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as p:
        try:
            found = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"Chromium does not start: {error.message.splitlines()[0]}")
        yield found
        found.close()


FRESH = "#fresh"  # at the end of an address: what the browser has kept is forgotten first
FORGET = f"if (location.hash === '{FRESH}') [sessionStorage, localStorage].forEach((kept) => kept.clear());"


class Pages:
    """Opens the page as on the first visit: in one window, or with options in a window of its own. Scripts
    must not fail, and nothing is fetched from elsewhere."""

    def __init__(self, browser, service):
        self.browser, self.service, self.shared = browser, service, None
        self.contexts, self.errors, self.hosts = [], [], set()

    def __call__(self, **options):
        if options:
            page = self._window(options)
        else:
            page = self.shared = self.shared or self._window({})
        page.unroute_all()
        page.goto("about:blank")
        page.goto(f"{self.service}/{FRESH}")
        page.evaluate("history.replaceState(null, '', '/')")
        expect(page.locator("#map g.route")).to_have_count(4)  # of the example that it begins with
        return page

    def _window(self, options):
        context = self.browser.new_context(**{"viewport": WIDE, **options})
        self.contexts.append(context)
        context.add_init_script(FORGET)
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        return page

    def check(self):
        assert self.errors == []
        assert self.hosts - {""} <= {self.service.split("/")[2]}


@contextmanager
def pages(browser, service):
    opened = Pages(browser, service)
    yield opened
    for context in opened.contexts:
        context.close()
    opened.check()


def answer(page, path):
    """The service's own view, past the page."""
    with urllib.request.urlopen(page.url + path, timeout=20) as response:
        return json.load(response)


def choose(page, example, variant):
    page.select_option("#example", example)
    expect(page.locator("#variant")).to_have_text(variant)


def solve(page):
    """Presses Solve, again where a busy machine found nothing in time, and gives the job."""
    page.fill("#time-limit", "1")
    for _ in range(5):
        with page.expect_response(lambda response: "/v1/solve" in response.url) as response:
            page.click("#solve")
        expect(page.locator("#status")).to_contain_text(re.compile("Done|Failed"))
        job = answer(page, f"v1/jobs/{response.value.json()['id']}")
        if job["status"] == "done":
            return job
        assert job["error"]["faults"][0]["code"] == "no-plan-found"
    raise AssertionError("no routes in five attempts")


def export(page, kind, folder):
    with page.expect_download() as download:
        page.click(f"[data-export={kind}]")
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def judged(page, folder):
    """The cost of the exported routes for the exported problem, both read by the library."""
    problem = formats.read(export(page, "problem", folder))
    costs = set()
    for kind in ("json", "sol"):
        solution = formats.read_solution(export(page, kind, folder), problem)
        assert check(problem, solution).violations == ()
        costs.add(solution.cost)
    assert len(costs) == 1
    return costs.pop()


def model(page):
    """The problem on the page, as the document that would be sent."""
    return page.evaluate(
        """async () => {
          const { state } = await import("/assets/state.js");
          const { toDocument } = await import("/assets/problem.js");
          return toDocument(state.model);
        }"""
    )
