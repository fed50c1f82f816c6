"""Hundreds of stops and resets on one engine leave nothing behind."""

import asyncio
import gc
import random
import sys

from tests.support.fake_platform import only

N_CYCLES = 300
N_WARM_UP = 200


def test_stops_and_resets_leave_nothing_behind(new_driver, golden):
    chance = random.Random(20)

    async def cycle(driver):
        """Ask, stop somewhere or not at all, reset now and then; the answers are always the same."""
        script = driver.platform.script
        stopped = driver.next_request_id
        script.act_at = script.n_counted + chance.randrange(1, 25)
        script.act = lambda: driver.engine._mark.raise_to(stopped)
        finished = only(await driver.generate(max_tokens=6), "finished")
        assert finished["output_ids"] == golden[1][: len(finished["output_ids"])]
        if chance.random() < 0.5:
            await driver.reset()
            assert driver.engine._placement.pool.n_free == driver.engine._placement.pool.n_pages
        return finished["reason"]

    async def story():
        driver = new_driver()
        await driver.load()
        ledger = driver.engine.ledger.to_wire()
        reasons, objects, blocks = set(), [], []
        for n in range(N_CYCLES):
            reasons.add(await cycle(driver))
            assert driver.engine.ledger.to_wire() == ledger
            driver.platform.events.clear()
            if n >= N_WARM_UP and n % 10 == 0:
                gc.collect()
                objects.append(len(gc.get_objects()))
                blocks.append(sys.getallocatedblocks())
        assert reasons == {"abort", "length"}
        # Containers are counted exactly. Of plain blocks CPython's type cache keeps up to three a request: the name
        # "search" that every `re.finditer` makes anew (3.11, tracemalloc); a kept answer would be dozens.
        assert max(objects) - objects[0] < 10
        assert blocks[-1] - blocks[0] < 5 * (N_CYCLES - N_WARM_UP)
        await driver.reset()
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())
