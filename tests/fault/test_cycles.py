"""Hundreds of stops, resets and lost GPUs on one engine leave nothing behind; at night, ten thousand."""

import asyncio
import gc
import random
import sys

import pytest

from clutch.engine.recovery import WITHIN_SECONDS
from tests.support.fake_platform import only

N_WARM_UP = 200
# Containers are counted exactly. Of plain blocks CPython's type cache keeps up to three a request: the name
# "search" that every `re.finditer` makes anew (3.11, tracemalloc); a kept answer would be dozens.
MOST_CONTAINERS = 24
MOST_BLOCKS_A_CYCLE = 5


class Growth:
    """What is alive, looked at now and then."""

    def __init__(self):
        self.containers, self.blocks = [], []

    def look(self):
        gc.collect()
        self.containers.append(len(gc.get_objects()))
        self.blocks.append(sys.getallocatedblocks())

    def check(self, n_cycles, *, blocks_a_cycle=MOST_BLOCKS_A_CYCLE):
        assert max(self.containers) - self.containers[0] < MOST_CONTAINERS
        assert self.blocks[-1] - self.blocks[0] < blocks_a_cycle * n_cycles


@pytest.mark.parametrize("n_cycles", [300, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_stops_and_resets_leave_nothing_behind(new_driver, golden, n_cycles):
    chance = random.Random(20)

    async def cycle(driver):
        """Ask, stop somewhere or not at all, reset now and then; the answers are always the same."""
        script = driver.platform.script
        stopped = driver.next_request_id
        script.act_at = script.n_counted + chance.randrange(1, 25)
        script.act = lambda: driver.engine.sessions[0].mark.raise_to(stopped)
        finished = only(await driver.generate(max_tokens=6), "finished")
        assert finished["output_ids"] == golden[1][: len(finished["output_ids"])]
        if finished["reason"] == "abort" and chance.random() < 0.3:
            assert only(await driver.continue_(), "finished")["output_ids"] == golden[1][:6]
        if chance.random() < 0.5:
            await driver.reset()
            assert driver.engine.host.placement.pool.n_free == driver.engine.host.placement.pool.n_pages
        return finished["reason"]

    async def story():
        driver = new_driver()
        await driver.load()
        ledger = driver.engine.ledger.to_wire()
        reasons, growth = set(), Growth()
        for n in range(n_cycles):
            reasons.add(await cycle(driver))
            assert driver.engine.ledger.to_wire() == ledger
            assert asyncio.all_tasks() == {asyncio.current_task()}
            driver.platform.events.clear()
            if n >= N_WARM_UP and n % 10 == 0:
                growth.look()
        assert reasons == {"abort", "length"}
        growth.check(n_cycles - N_WARM_UP)
        await driver.reset()
        assert only(await driver.generate(max_tokens=12), "finished")["output_ids"] == golden[1]

    asyncio.run(story())


@pytest.mark.parametrize("n_cycles", [10, pytest.param(50, marks=pytest.mark.nightly)])
def test_lost_gpus_leave_nothing_behind(new_driver, golden, n_cycles):
    chance = random.Random(21)
    n_warm_up = 4

    async def cycle(driver):
        """Lose the GPU somewhere in an answer, which is whole all the same."""
        platform = driver.platform
        script = platform.script
        script.act_at = script.n_counted + chance.randrange(1, 20)
        script.act = platform.devices[-1].lose
        # So long after the last that it is not one too many.
        platform._now += WITHIN_SECONDS
        events = await driver.generate(max_tokens=12)
        await driver.engine.idle()
        assert only(events, "finished")["output_ids"] == golden[1]
        assert only(platform.events, "notice")["code"] == "E500"
        await driver.reset()

    async def story():
        driver = new_driver()
        await driver.load()
        ledger, growth = driver.engine.ledger.to_wire(), Growth()
        for n in range(n_cycles):
            await cycle(driver)
            assert driver.engine.ledger.to_wire() == ledger
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert [device.is_destroyed for device in driver.platform.devices] == [True, False]
            # What the fake itself keeps.
            del driver.platform.devices[:-1]
            for source in driver.platform.sources:
                assert all(stream.is_closed for stream in source.streams)
                source.streams.clear()
            driver.platform.events.clear()
            if n >= n_warm_up:
                growth.look()
        # A model is hundreds of blocks.
        growth.check(n_cycles - n_warm_up, blocks_a_cycle=60)
        await driver.send("unload")
        assert driver.engine.ledger.to_wire() == {"buffers": 0, "bytes": 0}

    asyncio.run(story())
