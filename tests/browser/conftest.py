"""Pages for the stories; whatever a page does that it must not do fails the test in which it happened."""

from contextlib import ExitStack

import pytest

from tests.support.browser import launch
from tests.support.page import ClutchPage
from tests.support.site import serve
from tests.support.tiny_model import write_tiny_model

TINY = "models/tiny.gguf"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="session")
def site(tiny_model):
    with serve([tiny_model]) as url:
        yield url


@pytest.fixture(scope="session")
def watches():
    return []


@pytest.fixture
def allowed_faults():
    """Patterns of the faults that a test provokes; it appends them."""
    return []


@pytest.fixture(autouse=True)
def nothing_unexpected(watches, allowed_faults):
    yield
    faults = [fault for watch in watches for fault in watch.take(allowed_faults)]
    assert faults == []


@pytest.fixture(scope="module")
def new_page(chromium, site, watches):
    """Make a page in a fresh context; `browser` and `url` default to the lane's."""
    with ExitStack() as stack:

        def make(browser=chromium, url=site):
            page = stack.enter_context(ClutchPage(browser, url))
            watches.append(page.watch)
            return page

        yield make


@pytest.fixture(scope="module")
def open_page(new_page, adapter):
    """Open a page and check that it is ready, on the adapter that the lane is about."""

    def make(model=None, **settings):
        page = new_page()
        assert page.open(model, **settings) == "ready", page.error()
        (_, capabilities), *_ = page.events("capabilities")
        found = capabilities["adapter"]
        assert f"{found['vendor']}/{found['architecture']}" == adapter
        return page

    return make


@pytest.fixture(scope="module")
def tiny_page(open_page):
    """One page with the tiny model, greedy, for the tests of a module."""
    return open_page(TINY, temperature=0, max_tokens=64, seed=1)


@pytest.fixture(scope="module")
def default_page(open_page):
    """One page with the default model, greedy."""
    return open_page(temperature=0, max_tokens=64, top_logits=16)


@pytest.fixture(scope="module")
def other_chromium(playwright, chromium_path):
    """Launch a browser for another adapter or with other flags."""
    with ExitStack() as stack:

        def make(adapter, *extra_flags):
            return stack.enter_context(launch(playwright, chromium_path, adapter=adapter, extra_flags=extra_flags))

        yield make
