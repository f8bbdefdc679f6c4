"""Takes the pictures of the page and of a plan that the documentation shows, from what is there now.

    python -m website.screenshots        # or: make screenshots

It starts a service of its own, solves the dairy in a browser, and writes docs/images/page*.png; then the
command solves it and draws docs/images/dairy.png.
"""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, expect, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COMMAND = [sys.executable, "-c", "from chainroute.cli import main; main()"]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
COLOURS = 256  # of a picture, so that it is small
PLAN_WIDTH = 1600  # pixels of the picture of a plan
PICTURES = {  # the window of each, as Playwright takes it
    "page": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "page-narrow": {"viewport": {"width": 375, "height": 740}, "color_scheme": "dark"},
}


@contextmanager
def service() -> Iterator[str]:
    """The address of a service that ends with the block."""
    with subprocess.Popen([*COMMAND, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = (re.search(r"http://[\d.]+:\d+", line) for line in process.stdout)
            address = next(match.group() for match in found if match)
            while not _ready(address):
                time.sleep(0.5)
            yield address
        finally:
            process.terminate()


def _ready(address: str) -> bool:
    """Whether the policy is loaded, so that it has a part in the picture."""
    with urllib.request.urlopen(f"{address}/v1/health") as answer:
        return bool(json.load(answer)["ready"])


def take(browser: Browser, address: str, name: str, folder: Path, seconds: int = 10) -> Path:
    """Solves the example that the page opens with, and writes the picture."""
    page = browser.new_context(**PICTURES[name]).new_page()
    page.goto(address)
    page.wait_for_selector("#map g.route")  # the example's, before it is solved
    while not page.request.get(f"{address}/v1/health").json()["ready"]:  # until the network is loaded
        page.wait_for_timeout(500)
    page.fill("#time-limit", str(seconds))
    page.click("#solve")
    expect(page.locator("#status")).to_contain_text("Done", timeout=1000 * (seconds + 30))
    page.evaluate("window.scrollTo(0, 0)")
    file = folder / f"{name}.png"
    page.screenshot(path=file)
    page.context.close()
    with Image.open(file) as picture:
        picture.quantize(COLOURS).save(file, optimize=True)
    return file


def draw(folder: Path, seconds: int = 5) -> Path:
    """Has the command solve and draw the same example."""
    file = folder / "dairy.png"
    example = ROOT / "chainroute" / "examples" / "dairy.json"
    subprocess.run(
        [*COMMAND, "solve", example, "--time-limit", str(seconds), "--plot", file],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with Image.open(file) as picture:
        height = round(picture.height * PLAN_WIDTH / picture.width)
        small = picture.convert("RGB").resize((PLAN_WIDTH, height), Image.Resampling.LANCZOS)
        small.quantize(COLOURS).save(file, optimize=True)
    return file


def main(folder: Path = IMAGES) -> None:
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    with service() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in PICTURES:
            print(take(browser, address, name, folder))
        browser.close()
    print(draw(folder))


if __name__ == "__main__":
    main()
