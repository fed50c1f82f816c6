"""The runner: sequences in slots do not touch each other, and pages are copied, saved and wiped whole."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

from clutch.config import KV_FORMATS, EngineConfig
from clutch.formats.gguf import parse_header
from clutch.gpu.ledger import Ledger
from clutch.model.choices import Choices
from clutch.model.loader import Loader
from clutch.model.spec_reader import read_spec
from clutch.sampling.params import SamplingParams
from clutch.stages import Stages
from tests.support.fake_choice_store import FakeChoiceStore
from tests.support.fake_device import FakeDevice, Script
from tests.support.fake_platform import FakeSource
from tests.support.tiny_model import encode_tiny_model

DATA = encode_tiny_model(n_layers=2).data
CONTEXT, N_PAGES, N_LAYERS = 64, 8, 2
PROMPTS = {0: [1, 60, 75], 3: [2, 117, 40, 41, 90], 15: [1, 200] * 9}
PAGES = {0: [5, 2], 3: [7, 0], 15: [1, 6]}
PARAMS = {0: SamplingParams(), 3: SamplingParams(temperature=0.9, seed=7), 15: SamplingParams(temperature=1.2, top_k=9)}


class World:
    """A loaded model and its buffers by label."""

    def __init__(self, device, model):
        self.device = device
        self.runner = model.runner
        self.memory = model.memory
        self.buffers = {buffer.label: buffer for buffer in device.buffers}
        self.layers = [self.buffers[f"KV pages of layer {i}"].data.reshape(N_PAGES, -1) for i in range(N_LAYERS)]

    def fill(self):
        """Write something else into every page."""
        for i, layer in enumerate(self.layers):
            layer[:] = (np.arange(N_PAGES)[:, None] + 1) * (i + 1)

    async def prefill(self, slot):
        self.runner.begin(slot, PARAMS[slot])
        self.runner.write_table(slot, 0, PAGES[slot])
        return await self.runner.prefill(slot, PROMPTS[slot], 0, is_last=True)

    async def write(self, slots, n_tokens):
        """Return the first tokens that the sequences of `slots` write, all in the same steps."""
        results = {slot: [await self.prefill(slot)] for slot in slots}
        for _ in range(n_tokens - 1):
            sequences = [(slot, found[-1].position) for slot, found in results.items()]
            for slot, result in zip(slots, await self.runner.decode(sequences), strict=True):
                results[slot].append(result)
        return {slot: [result.token_id for result in found] for slot, found in results.items()}


class WatchedDevice(FakeDevice):
    def __init__(self):
        super().__init__(Script())
        self.buffers = []

    async def allocate(self, label, size_bytes, usage):
        self.buffers.append(await super().allocate(label, size_bytes, usage))
        return self.buffers[-1]


def run(story, kv_format="f16"):
    async def whole():
        header, device = parse_header(DATA, len(DATA)), WatchedDevice()
        config = EngineConfig(context_length=CONTEXT, pool_positions=N_PAGES * 16, kv_format=kv_format, tuning_ms=0)
        source = FakeSource(DATA)
        file = SimpleNamespace(source=source, header=header, spec=read_spec(header))
        choices = Choices(FakeChoiceStore())
        model = await Loader(file, device, Ledger(), config, choices, lambda *_: None, Stages()).load()
        return await story(World(device, model))

    return asyncio.run(whole())


@pytest.mark.parametrize("kv_format", KV_FORMATS)
def test_sequences_that_write_together_write_what_each_writes_alone(kv_format):
    together = run(lambda world: world.write([3, 15, 0], 14), kv_format)
    for slot, token_ids in together.items():
        assert run(lambda world, slot=slot: world.write([slot], 14), kv_format)[slot] == token_ids
    assert len({tuple(token_ids) for token_ids in together.values()}) == len(together)


def test_a_slot_keeps_how_it_samples_until_it_is_told_otherwise():
    async def story(world):
        first = await world.write([3], 8)
        await world.write([0, 15], 2)
        return first, await world.write([3], 8)

    first, second = run(story)
    assert first == second


def test_as_many_decode_steps_as_it_says_and_a_chunk_beside_them_may_be_in_flight():
    async def story(world):
        position = (await world.prefill(0)).position
        runner = world.runner
        decoding = [runner.decode([(0, position + i)]) for i in range(runner.steps_in_flight)]
        await world.prefill(3)
        results = [await step for step in decoding]
        assert [result.position - position for [result] in results] == [*range(1, runner.steps_in_flight + 1)]
        world.device.n_in_flight = runner.steps_in_flight + 1
        with pytest.raises(AssertionError):
            runner.decode([(0, position)])

    run(story)


@pytest.mark.parametrize("kv_format", KV_FORMATS)
def test_a_copied_page_goes_on_like_the_original(kv_format):
    async def story(world):
        [first] = (await world.write([0], 6)).values()
        world.runner.copy_page(PAGES[0][0], 4)
        world.runner.begin(3, PARAMS[0])
        world.runner.write_table(3, 0, [4, 3])
        position = len(PROMPTS[0])
        world.runner.write_token(3, first[0], position)
        for token_id in first[1:]:
            [result] = await world.runner.decode([(3, position)])
            assert result.token_id == token_id
            position = result.position

    run(story, kv_format)


@pytest.mark.parametrize("kv_format", KV_FORMATS)
def test_pages_are_copied_and_put_back_in_every_layer_and_nothing_beside_them(kv_format):
    async def story(world):
        world.fill()
        runner, before = world.runner, [layer.copy() for layer in world.layers]
        assert runner.page_bytes == world.memory.kv_bytes // N_PAGES
        data = await runner.read_page(6)
        assert data == b"".join(layer[6].tobytes() for layer in world.layers)
        assert len(data) == runner.page_bytes
        runner.copy_page(6, 1)
        runner.write_page(3, data)
        for layer, old in zip(world.layers, before, strict=True):
            changed = (layer != old).any(axis=1)
            assert np.flatnonzero(changed).tolist() == [1, 3]
            assert (layer[[1, 3]] == old[6]).all()

    run(story, kv_format)


def test_wiping_takes_the_pages_and_the_tokens_of_one_slot():
    async def story(world):
        world.fill()
        tokens = world.buffers["tokens"].data.reshape(-1, CONTEXT * 4)
        tokens[:] = 1
        cleared = []
        world.device.clear = lambda *arguments: cleared.append(arguments) or FakeDevice.clear(world.device, *arguments)
        world.runner.wipe([7, 2, 0, 1], slot=3)
        for layer in world.layers:
            assert np.flatnonzero((layer == 0).all(axis=1)).tolist() == [0, 1, 2, 7]
            assert layer[3:7].all()
        assert np.flatnonzero((tokens == 0).any(axis=1)).tolist() == [3]
        # Pages that follow each other go together: two runs in each layer, and the tokens.
        assert len(cleared) == 2 * N_LAYERS + 1

    run(story)
