"""Runs the steps of a loaded model: a chunk of the prompt, or one token of the answer."""

import struct
from collections.abc import Awaitable, Sequence

from clutch.gpu import step
from clutch.gpu.device import Device, Dispatch, Plan, StepResult
from clutch.gpu.kernels import Kernel
from clutch.model.llama import Llama
from clutch.model.state import State
from clutch.sampling.params import SamplingParams

# Tokens that one thread of a matrix kernel takes through a weight it has read; the kernels' private arrays hold 8.
PREFILL_TOKENS_PER_THREAD = 8


class Runner:
    """The three plans of a model, recorded once; a step creates nothing.

    Args:
        device: where the model lives; its kernels are compiled.
        state: the model's buffers.
        plans: as `plan_steps` made them.
        prefill_tokens: most tokens of one prefill step.
        hidden_size, vocab_size: of the model.
    """

    def __init__(
        self,
        device: Device,
        state: State,
        plans: "StepPlans",
        *,
        prefill_tokens: int,
        hidden_size: int,
        vocab_size: int,
    ) -> None:
        self._device = device
        self._state = state
        self._hidden_size = hidden_size
        self._vocab_size = vocab_size
        self.prefill_tokens = prefill_tokens
        device.prepare_steps(state.step_uniforms, state.result, state.readbacks)
        self._prefill: Plan = device.record(plans.prefill)
        self._prefill_last: Plan = device.record(plans.prefill_last)
        self._decode: Plan = device.record(plans.decode)

    @property
    def steps_in_flight(self) -> int:
        """Most decode steps that may be submitted and not yet read."""
        return len(self._state.readbacks)

    def begin(self, params: SamplingParams) -> None:
        """Set how the next steps sample."""
        self._device.configure(step.settings(params, table_offset=0))

    def write_table(self, first_entry: int, pages: Sequence[int]) -> None:
        """Tell the GPU the pages of the block table from `first_entry` on."""
        if pages:
            self._device.write(self._state.block_table, struct.pack(f"<{len(pages)}I", *pages), first_entry * 4)

    async def prefill(self, token_ids: Sequence[int], position: int, *, is_last: bool) -> StepResult:
        """Read `token_ids` (at most `prefill_tokens`) at `position`; the last chunk also samples.

        Returns:
            The step's result; it has a meaning only for the last chunk.
        """
        data = struct.pack(f"<{len(token_ids)}I", *token_ids)
        self._device.write(self._state.tokens, data, position * 4)
        plan = self._prefill_last if is_last else self._prefill
        return await self._device.step(plan, position, len(token_ids))

    def decode(self, position: int) -> Awaitable[StepResult]:
        """Submit the step of the token at `position` (the GPU knows which) and return the next token to await."""
        return self._device.step(self._decode, position, 1)

    def write_token(self, token_id: int, position: int) -> None:
        """Tell the GPU the token at `position`, where no step has sampled it."""
        self._device.write(self._state.tokens, struct.pack("<I", token_id), position * 4)

    def wipe(self) -> None:
        """Overwrite every key and value, and the tokens, with zeros."""
        for buffer in (*self._state.kv, self._state.tokens):
            self._device.clear(buffer)

    async def hidden(self) -> "memoryview[float]":
        """Return what the last decode step multiplied with the output matrix: (hidden_size,) f32."""
        data = await self._device.read(self._state.h, self._state.row_readback, self._hidden_size * 4)
        return memoryview(data).cast("f")

    async def logits(self) -> "memoryview[float]":
        """Return the logits of the last step that had a head: (vocab_size,) f32."""
        data = await self._device.read(self._state.logits, self._state.row_readback, self._vocab_size * 4)
        return memoryview(data).cast("f")


class StepPlans:
    """The dispatches of the three kinds of step."""

    def __init__(self, model: Llama) -> None:
        self.prefill: list[Dispatch] = model.layers(PREFILL_TOKENS_PER_THREAD)
        self.prefill_last: list[Dispatch] = self.prefill + model.head()
        self.decode: list[Dispatch] = model.layers(1) + model.head()

    @property
    def kernels(self) -> list[Kernel]:
        """What must be compiled before they are recorded."""
        return [dispatch.kernel for dispatch in self.prefill_last + self.decode]
