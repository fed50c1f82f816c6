"""Runs the steps of a loaded model: a chunk of a prompt, or the next token of each of several sequences."""

import struct
from collections.abc import Awaitable, Iterable, Sequence

from clutch.gpu import step
from clutch.gpu.device import Buffer, Device, Dispatch, Move, Plan, StepResult
from clutch.gpu.kernels import Kernel
from clutch.gpu.step import MAX_SEQUENCES
from clutch.kv.pool import PAGE_POSITIONS
from clutch.model.llama import Llama
from clutch.model.memory import MemoryPlan
from clutch.model.recipe import Recipe
from clutch.model.state import State
from clutch.sampling.params import SamplingParams


class Runner:
    """The plans of a model, recorded once; a step creates nothing.

    A sequence has a slot: its row of the block table and of the tokens, and its settings in the step uniform.

    Args:
        device: where the model lives; its kernels are compiled.
        state: the model's buffers.
        plans: the dispatches of each kind of step.
        memory: sizes of the state.
        hidden_size, vocab_size: of the model.
    """

    def __init__(
        self,
        device: Device,
        state: State,
        plans: "StepPlans",
        memory: MemoryPlan,
        *,
        hidden_size: int,
        vocab_size: int,
    ) -> None:
        self._device = device
        self._state = state
        self._hidden_size = hidden_size
        self._vocab_size = vocab_size
        self._context_length = memory.context_length
        self._layer_page_bytes = memory.kv.page_bytes
        # What a benchmark measures piece by piece.
        self.decode_dispatches = plans.decode
        self.prefill_dispatches = plans.last[-1][1]
        device.prepare_steps(state.step_uniforms, state.result, state.readbacks)
        self._prefill: Plan = device.record(plans.prefill)
        self._decode: Plan = device.record(plans.decode)
        # The last chunk of a prompt, by the most tokens that each plan should take; the shortest first.
        self._last = [
            (most_tokens, self._decode if dispatches is plans.decode else device.record(dispatches))
            for most_tokens, dispatches in plans.last
        ]

    @property
    def steps_in_flight(self) -> int:
        """Most decode steps that may be submitted and not yet read; a prefill step may be beside them."""
        return len(self._state.readbacks) - 1

    @property
    def page_bytes(self) -> int:
        """Of a page in all layers."""
        return self._layer_page_bytes * len(self._state.kv)

    def begin(self, slot: int, params: SamplingParams) -> None:
        """Set how the next steps of a sequence sample."""
        table_offset = slot * self._table_length
        self._device.configure(slot, step.settings(params, table_offset, slot * self._context_length))

    def write_table(self, slot: int, first_entry: int, pages: Sequence[int]) -> None:
        """Tell the GPU the pages of a sequence's block table from `first_entry` on."""
        if pages:
            offset = (slot * self._table_length + first_entry) * 4
            self._device.write(self._state.block_table, struct.pack(f"<{len(pages)}I", *pages), offset)

    @property
    def ways(self) -> int:
        """In how many ways the last chunk of a prompt can be read."""
        return len(self._last)

    async def prefill(
        self, slot: int, token_ids: Sequence[int], position: int, *, is_last: bool, way: int | None = None
    ) -> StepResult:
        """Read `token_ids` (as many as the activations have room for) at `position`; the last chunk also samples.

        Args:
            slot, token_ids, position, is_last: as above.
            way: 0 to `ways` - 1, to try one; None: the one for so many tokens.

        Returns:
            The step's result; it has a meaning only for the last chunk.
        """
        self._write_tokens(slot, token_ids, position)
        plan = self._prefill
        if way is not None:
            _, plan = self._last[way]
        elif is_last:
            plan = next(plan for most_tokens, plan in self._last if len(token_ids) <= most_tokens)
        [result] = await self._device.step(plan, [(slot, position)], len(token_ids))
        return result

    def decode(self, sequences: Sequence[tuple[int, int]]) -> Awaitable[list[StepResult]]:
        """Submit the step of one token each of (slot, position), and return the next tokens to await.

        The GPU knows the tokens: it has sampled them, or `write_token` has told.
        """
        return self._device.step(self._decode, sequences, 1)

    def write_token(self, slot: int, token_id: int, position: int) -> None:
        """Tell the GPU the token at `position`, where no step has sampled it."""
        self._write_tokens(slot, [token_id], position)

    def copy_page(self, source: int, target: int) -> None:
        """Copy the keys and values of a page, in every layer; by a detour, for WebGPU copies within no buffer."""
        size = self._layer_page_bytes
        moves: list[Move] = []
        for layer in self._state.kv:
            moves.append((layer, source * size, self._state.page, 0, size))
            moves.append((self._state.page, 0, layer, target * size, size))
        self._device.copy(moves)

    async def read_page(self, page: int) -> bytes:
        """Return the keys and values of a page, one layer behind the other."""
        size = self._layer_page_bytes
        pieces = [(layer, page * size, size) for layer in self._state.kv]
        return await self._device.read(pieces, self._state.row_readback)

    def write_page(self, page: int, data: bytes) -> None:
        """Put back what `read_page` has returned."""
        size = self._layer_page_bytes
        assert len(data) == self.page_bytes, len(data)
        for i, layer in enumerate(self._state.kv):
            self._device.write(layer, data[i * size : (i + 1) * size], page * size)

    def wipe(self, pages: Iterable[int], slot: int) -> None:
        """Overwrite the keys and values of pages, and the tokens of a slot, with zeros."""
        for first, count in _runs(pages):
            for layer in self._state.kv:
                self._device.clear(layer, first * self._layer_page_bytes, count * self._layer_page_bytes)
        row_bytes = self._context_length * 4
        self._device.clear(self._state.tokens, slot * row_bytes, row_bytes)

    async def hidden(self) -> "memoryview[float]":
        """Return the last layer's `x` of the last decode step: (hidden_size,) f32, sequence 0."""
        return await self._row(self._state.x, self._hidden_size)

    async def logits(self) -> "memoryview[float]":
        """Return the logits of the last step that had a head: (vocab_size,) f32, sequence 0."""
        return await self._row(self._state.logits, self._vocab_size)

    @property
    def _table_length(self) -> int:
        return self._context_length // PAGE_POSITIONS

    def _write_tokens(self, slot: int, token_ids: Sequence[int], position: int) -> None:
        data = struct.pack(f"<{len(token_ids)}I", *token_ids)
        self._device.write(self._state.tokens, data, (slot * self._context_length + position) * 4)

    async def _row(self, buffer: Buffer, length: int) -> "memoryview[float]":
        data = await self._device.read([(buffer, 0, length * 4)], self._state.row_readback)
        return memoryview(data).cast("f")


class StepPlans:
    """The dispatches of each kind of step.

    `last` are those for the last chunk of a prompt, each with the most tokens that it should take.
    """

    def __init__(self, model: Llama, recipe: Recipe) -> None:
        self.decode: list[Dispatch] = model.decode()
        self.prefill: list[Dispatch] = model.prefill(recipe.prefill)
        self.last = [(recipe.prefill.most_tokens, model.prefill_last(recipe.prefill))]
        if recipe.short != recipe.prefill:
            self.last.insert(0, (recipe.short.most_tokens, model.prefill_last(recipe.short)))
        if recipe.decode.attention is not None:
            # A few tokens of one sequence go as well through the step of one token of several.
            self.last.insert(0, (MAX_SEQUENCES, self.decode))

    @property
    def kernels(self) -> list[Kernel]:
        """What must be compiled before they are recorded."""
        every = (self.decode, self.prefill, *(dispatches for _, dispatches in self.last))
        return [dispatch.kernel for dispatches in every for dispatch in dispatches]


def _runs(pages: Iterable[int]) -> list[tuple[int, int]]:
    """Return (first, count) of every run of consecutive numbers."""
    runs: list[tuple[int, int]] = []
    for page in sorted(pages):
        if runs and sum(runs[-1]) == page:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((page, 1))
    return runs
