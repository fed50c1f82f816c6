"""What a token costs at the boundary to JavaScript: the worker's whole Python over a browser that counts the calls.

A call costs about 30 us (measured, Pyodide in Chromium), so this number is what a token costs Python.
"""

import asyncio
import importlib
import itertools
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from clutch.kv.pool import PAGE_POSITIONS
from clutch.protocol import REQUESTS, encode
from tests.support.fake_js import TOKEN_ID, FakeJs
from tests.support.tiny_model import encode_tiny_model

WGSL = Path(__file__).parents[2] / "wgsl"
N_TOKENS = 64
# Read the mark before a token is shown and before the next step, submit it, fetch its result, post the delta; and a
# page now and then.
BUDGET = 5 + 1 / PAGE_POSITIONS


@pytest.fixture
def fake(monkeypatch):
    """The browser, with `clutch.main` imported over it and over nothing else."""
    fake = FakeJs(encode_tiny_model(n_layers=1).data)
    for name, module in fake.modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    _forget()
    main = importlib.import_module("clutch.main")
    monkeypatch.setattr(main, "WGSL_ROOT", WGSL)
    # This GPU computes nothing, and would be refused for it.
    monkeypatch.setattr("clutch.model.loader.self_test", passed)
    # A second a look: every token has an animation frame of its own, the worst case.
    seconds = itertools.count()
    monkeypatch.setattr(main.BrowserPlatform, "clock", lambda _: float(next(seconds)))
    fake.main = main
    yield fake
    _forget()


async def passed(*_, **__):
    return {"verdict": "passed", "checks": 0}


def _forget():
    for name in [name for name in sys.modules if name == "clutch.main" or name.startswith("clutch.browser")]:
        del sys.modules[name]


class Page:
    """Sends requests and waits for what ends them."""

    def __init__(self, fake):
        self.fake = fake
        self.n_requests = 1

    async def until(self, last, **fields):
        """Send a request and return the events up to the one of kind `last`; none may be an error."""
        first = len(self.fake.posted)
        self.fake.send(encode(REQUESTS, **fields))
        for _ in range(100_000):
            events = [json.loads(message["json"]) for message in self.fake.posted[first:]]
            assert "error" not in [event["kind"] for event in events], events
            if any(e["kind"] == last and e.get("state") not in ("loading", "generating") for e in events):
                return events
            await asyncio.sleep(0)
        raise AssertionError(f"no {last} came")

    async def generate(self, max_tokens):
        """Return the calls that an answer took, without the looks at the pool: those go by the clock."""
        self.n_requests += 1
        before = Counter(self.fake.calls)
        events = await self.until(
            "state",
            kind="generate",
            request_id=self.n_requests,
            epoch=0,
            prompt="Hello",
            params={"max_tokens": max_tokens},
            reuse=False,
        )
        (finished,) = [event for event in events if event["kind"] == "finished"]
        assert finished["output_ids"] == [TOKEN_ID] * max_tokens
        looks = [event["kind"] for event in events].count("pool")
        return Counter(self.fake.calls) - before - Counter(postMessage=looks)


def run(fake, story):
    async def whole():
        serving = fake.main.start("http://localhost/", fake.early())
        try:
            page = Page(fake)
            await page.until("state", kind="load", request_id=1, url="tiny.gguf")
            await story(page)
        finally:
            serving.cancel()

    asyncio.run(whole())


def test_what_a_token_costs(fake):
    async def story(page):
        await page.generate(1)
        # What a request costs once is in both and drops out.
        short = await page.generate(N_TOKENS)
        long = await page.generate(2 * N_TOKENS)
        a_token = {name: count / N_TOKENS for name, count in (long - short).items()}
        assert a_token["step"] == 1
        assert a_token == {"mark": 2, "step": 1, "to_bytes": 1, "postMessage": 1, "writeBuffer": 1 / PAGE_POSITIONS}
        assert sum(a_token.values()) <= BUDGET

    run(fake, story)


def test_nothing_is_created_after_loading(fake):
    async def story(page):
        created = fake.created()
        assert created["createBuffer"] > 10
        assert created["createBindGroup"] > 10
        await page.generate(N_TOKENS)
        await page.until("state", kind="reset", epoch=1)
        assert fake.created() == created

    run(fake, story)


def test_the_shared_mark_stops_without_a_message(fake):
    async def story(page):
        fake.mark = 2
        page.n_requests += 1
        events = await page.until(
            "state", kind="generate", request_id=2, epoch=0, prompt="Hello", params={"max_tokens": 9}
        )
        (finished,) = [event for event in events if event["kind"] == "finished"]
        assert (finished["reason"], finished["output_ids"]) == ("abort", [])
        await page.generate(3)

    run(fake, story)
