"""Options, guards and the browser that all lanes share."""

import os

import pytest
from hypothesis import settings

from tests.runner.lanes import LANES, lane_of
from tests.runner.roll_call import RollCall, SkipGuard
from tests.support.flags import SWIFTSHADER

# A test never depends on the clock, nor on luck: hypothesis tries the same cases each time.
settings.register_profile("clutch", deadline=None, derandomize=True, database=None)
settings.load_profile("clutch")


def pytest_addoption(parser):
    group = parser.getgroup("clutch")
    group.addoption("--chromium", help="path of the browser")
    group.addoption("--adapter", default=SWIFTSHADER, help="vendor/architecture of the GPU to run on")
    group.addoption("--roll-call", metavar="LANES", help="compare these whole lanes with tests/tests.txt")
    group.addoption("--update-list", action="store_true", help="write tests/tests.txt instead of comparing")


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: too long for every commit; run with -m nightly")
    config.pluginmanager.register(SkipGuard())
    lanes = config.getoption("--roll-call")
    if lanes:
        config.pluginmanager.register(RollCall(lanes.split(","), config.getoption("--update-list")))


def pytest_collection_modifyitems(items):
    # tests/runner/lanes.py says why the order matters.
    items.sort(key=lambda item: LANES.index(lane_of(item.nodeid) or LANES[0]))


def pytest_terminal_summary(terminalreporter):
    failed = os.environ.get("CLUTCH_FAILED_CHECKS")
    if failed:
        terminalreporter.write_line(f"Before pytest these checks FAILED: {failed}", red=True)


@pytest.fixture(scope="session")
def playwright():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium_path(pytestconfig):
    from tests.runner.chromium import ensure

    return ensure(pytestconfig.getoption("--chromium"))


@pytest.fixture(scope="session")
def adapter(pytestconfig):
    return pytestconfig.getoption("--adapter")


@pytest.fixture(scope="session")
def chromium(playwright, chromium_path, adapter):
    from tests.support.browser import launch

    with launch(playwright, chromium_path, adapter=adapter) as browser:
        yield browser
