"""The ledger: every buffer is counted while a scope owns it, and none longer."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clutch.errors import OutOfMemory
from clutch.gpu.device import Usage
from clutch.gpu.ledger import Ledger
from tests.support.fake_device import FakeDevice, Script


def zero(ledger):
    return ledger.to_wire() == {"buffers": 0, "bytes": 0}


@given(st.lists(st.integers(0, 1000), max_size=20))
def test_it_counts_what_is_held(sizes):
    ledger = Ledger()

    async def story():
        with ledger.scope(FakeDevice()) as scope:
            buffers = [await scope.buffer(f"b{i}", size) for i, size in enumerate(sizes)]
            for buffer, size in zip(buffers, sizes, strict=True):
                assert buffer.size_bytes % 16 == 0
                assert max(size, 16) <= buffer.size_bytes < max(size, 1) + 16
            held = {"buffers": len(sizes), "bytes": sum(buffer.size_bytes for buffer in buffers)}
            assert ledger.to_wire() == held
        assert all(buffer._data is None for buffer in buffers)

    asyncio.run(story())
    assert zero(ledger)


def test_scopes_are_counted_together_and_closed_apart():
    ledger = Ledger()

    async def story():
        one, other = ledger.scope(FakeDevice()), ledger.scope(FakeDevice())
        await one.buffer("a", 16)
        await other.buffer("b", 32, Usage.UNIFORM)
        assert ledger.to_wire() == {"buffers": 2, "bytes": 48}
        one.close()
        assert ledger.to_wire() == {"buffers": 1, "bytes": 32}
        one.close()
        assert ledger.to_wire() == {"buffers": 1, "bytes": 32}
        other.close()

    asyncio.run(story())
    assert zero(ledger)


def test_buffers_are_destroyed_in_reverse_order():
    destroyed = []

    class Noted:
        def __init__(self, label, size_bytes):
            self.label, self.size_bytes = label, size_bytes

        def destroy(self):
            destroyed.append(self.label)

    class Device:
        async def allocate(self, label, size_bytes, usage):
            return Noted(label, size_bytes)

    async def story():
        with Ledger().scope(Device()) as scope:
            for label in "abc":
                await scope.buffer(label, 16)

    asyncio.run(story())
    assert destroyed == ["c", "b", "a"]


def test_a_refused_buffer_is_not_counted_and_the_scope_still_closes():
    ledger = Ledger()

    async def story():
        with ledger.scope(FakeDevice(Script(fail_at=3, error=OutOfMemory))) as scope:
            await scope.buffer("a", 16)
            await scope.buffer("b", 16)
            with pytest.raises(OutOfMemory):
                await scope.buffer("c", 16)
            assert ledger.to_wire() == {"buffers": 2, "bytes": 32}
            raise KeyError("whatever happens")

    with pytest.raises(KeyError):
        asyncio.run(story())
    assert zero(ledger)


def test_what_the_gpu_refuses_is_given_up_with_all_that_came_after():
    ledger = Ledger()
    device = FakeDevice(room_bytes=100)

    async def story():
        with ledger.scope(device) as scope:
            for label, size in (("a", 32), ("b", 48), ("large", 64), ("c", 16)):
                await scope.buffer(label, size)
            with pytest.raises(OutOfMemory) as refused:
                await scope.settle()
            assert refused.value.data["buffer"] == "large"
            assert ledger.to_wire() == {"buffers": 2, "bytes": 80}
            await scope.settle()

    asyncio.run(story())
    assert zero(ledger)
    assert device.room_bytes == 100
