"""The tiny model, its reference, and a way to run a story in an event loop."""

import asyncio

import pytest

from tests.support.fake_platform import Driver, FakePlatform, only
from tests.support.model_reference import ReferenceModel
from tests.support.tiny_model import encode_tiny_model, write_tiny_model

TINY = {"context_length": 64, "n_layers": 1}


@pytest.fixture(scope="session")
def tiny():
    """The bytes of a tiny model of one layer."""
    return encode_tiny_model(**TINY).data


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    return ReferenceModel(write_tiny_model(tmp_path_factory.mktemp("reference") / "tiny.gguf", **TINY))


@pytest.fixture
def new_driver(tiny):
    """Make a driver on a fresh engine; small budgets, so that chunks, pieces and pages have ends to trip over."""

    def make(script=None, **options):
        platform = FakePlatform({"tiny.gguf": tiny}, script, **options)
        return Driver(
            platform, context_length=64, prefill_tokens=8, attention_splits=4, steps_in_flight=2, upload_bytes=1 << 16
        )

    return make


@pytest.fixture(scope="session")
def golden(tiny):
    """Prompt ids and greedy answer to "Hello" of an engine nothing happened to."""

    async def story():
        platform = FakePlatform({"tiny.gguf": tiny})
        driver = Driver(
            platform, context_length=64, prefill_tokens=8, attention_splits=4, steps_in_flight=2, upload_bytes=1 << 16
        )
        await driver.load()
        events = await driver.generate(max_tokens=12)
        return only(events, "started")["prompt_ids"], only(events, "finished")["output_ids"]

    return asyncio.run(story())


async def alone(new_driver, messages, **params):
    driver = new_driver()
    await driver.load()
    return only(await driver.generate(messages, **params), "finished")["output_ids"]


@pytest.fixture
def asked(new_driver):
    """Return the answers of engines with one session only."""

    def make(*questions, **params):
        async def story():
            return [await alone(new_driver, question, **params) for question in questions]

        return asyncio.run(story())

    return make
