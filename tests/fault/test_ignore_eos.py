"""With `ignore_eos` an answer has as many tokens as were asked for, and begins as it would without."""

import asyncio

from tests.support.fake_platform import Driver, FakePlatform, only
from tests.support.tiny_model import encode_tiny_model


def test_the_models_end_is_no_end():
    async def story():
        driver = Driver(FakePlatform({"tiny.gguf": encode_tiny_model(n_layers=1).data}), attention_splits=4)
        await driver.load()
        free = only(await driver.generate(max_tokens=8), "finished")["output_ids"]
        ending = encode_tiny_model(n_layers=1, metadata={"tokenizer.ggml.eos_token_id": free[3]}).data
        driver = Driver(FakePlatform({"tiny.gguf": ending}), attention_splits=4)
        await driver.load()
        end = only(await driver.generate(max_tokens=8), "finished")
        assert (end["reason"], end["output_ids"]) == ("stop", free[: free.index(free[3]) + 1])
        end = only(await driver.generate(max_tokens=8, ignore_eos=True), "finished")
        assert (end["reason"], end["output_ids"]) == ("length", free)

    asyncio.run(story())
