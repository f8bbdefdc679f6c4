"""The archives of `make dist`: what is in them, and that the wheel works where nothing else is installed."""

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from where import PROJECT, ROOT

PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
NAME = f"chainroute-{PROJECT['project']['version']}"
WHEEL = f"{NAME}-py3-none-any.whl"
USES = {  # a command that works with each extra, and without any
    "": "chainroute template . --xlsx",
    "neural": "chainroute solve parcels.vrp --solver neural --augment 1",
    "large": "python -c 'from chainroute.search.own import ruin; ruin.load()'",
    "plot": "chainroute check parcels.vrp parcels.sol --plot parcels.png",
    "evaluate": "chainroute solve parcels.vrp --solver vroom --time-limit 1",
    "serve": "python -c 'from chainroute.service import app, settings; app.create_app(settings.Settings())'",
    "client": "python -c 'import chainroute.service.client as c; c.Client(\"http://127.0.0.1:8000\").close()'",
    "roads": "python -c 'from routingpy import OSRM, Valhalla, ORS'",
    "ray": "python -c 'import chainroute.solve.cluster, ray'",
}


def built(source, place):
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", place], cwd=source, check=True)
    return place


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_has_every_file_of_the_packages(dist):
    """Modules, weights, examples, data and the page's files, as the checkout has them; and nothing else."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PACKAGES]
    try:
        said = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a checkout")
    known = {name for name in said.split("\0") if name and (ROOT / name).is_file()}
    inside = {name for name in contents(dist / WHEEL) if not name.startswith(f"{NAME}.dist-info/")}
    assert inside == known
    for part in (
        "weights/all/model.safetensors",
        "examples/dairy.json",
        "service/page/index.html",
        "py.typed",
    ):
        assert f"chainroute/{part}" in inside


def test_the_sdist_has_what_a_wheel_is_built_from_and_no_more(dist, tmp_path):
    """Neither runs nor tests are in it, and from it comes the same wheel, byte for byte within."""
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / NAME
    assert {path.name for path in source.iterdir()} == {
        *PACKAGES,
        *("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
        *("pyproject.toml", "constraints.txt", "PKG-INFO", ".gitignore"),
    }
    assert contents(built(source, tmp_path / "dist") / WHEEL) == contents(dist / WHEEL)


def test_every_extra_is_tried():
    assert set(USES) == {"", *PROJECT["project"]["optional-dependencies"]} - {"dev", "docs"}


@pytest.fixture
def programs(tmp_path):
    """The folder of a bare environment's programs. It is not kept: with torch it takes gigabytes."""
    venv.create(tmp_path / "venv", with_pip=True)
    yield tmp_path / "venv" / "bin"
    shutil.rmtree(tmp_path / "venv")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("extra", USES)
def test_the_wheel_works_in_a_bare_environment(extra, dist, programs, tmp_path):
    """It installs as users do it, solves, has its plan judged, and does what the extra is for."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(line):
        program, *words = shlex.split(line)
        called = [programs / program, *words]
        done = subprocess.run(called, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    wheel = f"{dist / WHEEL}[{extra}]" if extra else f"{dist / WHEEL}"
    run(shlex.join(["pip", "install", "--quiet", "-c", f"{ROOT / 'constraints.txt'}", wheel]))
    (tmp_path / "parcels.vrp").write_bytes((ROOT / "chainroute/examples/parcels.vrp").read_bytes())
    assert Path(run("python -c 'import chainroute; print(chainroute.__file__)'")).is_relative_to(tmp_path)
    run("chainroute solve parcels.vrp --time-limit 2 -o parcels.sol")
    assert run("chainroute check parcels.vrp parcels.sol").startswith("feasible, cost ")
    assert "--port" in run("chainroute serve --help")
    assert "CVRP" in run("chainroute info parcels.vrp")
    run(USES[extra])
