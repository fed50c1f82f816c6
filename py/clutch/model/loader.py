"""Loads a model: header -> plans -> buffers -> kernels -> weights -> tuning -> warm-up.

Nothing is left behind on failure.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from clutch.config import EngineConfig
from clutch.errors import OutOfMemory, SelfTestError
from clutch.formats.gguf import GGUFHeader, read_header
from clutch.gpu.device import Device
from clutch.gpu.kernels import Kernel
from clutch.gpu.ledger import Ledger, Scope
from clutch.model.autotune import KEPT, Choice, tune
from clutch.model.choices import Choices, choice_key
from clutch.model.llama import Llama
from clutch.model.memory import MemoryPlan, advise, plan_memory
from clutch.model.recipe import PORTABLE, Recipe, recipe_for
from clutch.model.runner import Runner, StepPlans
from clutch.model.self_test import self_test
from clutch.model.spec import ModelSpec
from clutch.model.spec_reader import read_spec
from clutch.model.state import allocate_state, write_rope
from clutch.model.tensor_set import EMBEDDING, OUTPUT, OUTPUT_NORM
from clutch.model.upload import Progress, Source, Upload
from clutch.model.weights import WeightPlan
from clutch.stages import Stages


class CheckedFile(Protocol):
    """A model file whose head has been read, as by `read_model_header`."""

    @property
    def source(self) -> Source:
        """Its bytes."""

    @property
    def header(self) -> GGUFHeader:
        """What it says."""

    @property
    def spec(self) -> ModelSpec:
        """What that means."""


@dataclass(frozen=True)
class LoadedModel:
    """A model on the GPU; `close` gives its buffers back."""

    spec: ModelSpec
    memory: MemoryPlan
    runner: Runner
    self_test: dict[str, object]
    choice: Choice
    scope: Scope

    def close(self) -> None:
        """Destroy its buffers."""
        self.scope.close()


async def read_model_header(source: Source) -> tuple[GGUFHeader, ModelSpec]:
    """Read and check everything that can be checked before a GPU is touched.

    Raises:
        ModelFormatError, UnsupportedModelError, SourceError: what is wrong with the file.
    """
    header = await read_header(source.read, source.size_bytes)
    return header, read_spec(header)


@dataclass(frozen=True)
class Loader:
    """What a load needs; on any failure every buffer that it made is destroyed.

    Args:
        file: the model, its head checked.
        device: it goes there.
        ledger: counts the buffers.
        config: budgets.
        choices: of kernels, from loads before.
        on_progress: told what is being done.
        stages: told what was done when.
    """

    file: CheckedFile
    device: Device
    ledger: Ledger
    config: EngineConfig
    choices: Choices
    on_progress: Progress
    stages: Stages

    async def load(self) -> LoadedModel:
        """Bring the model onto the device, by the best recipe whose numbers are right.

        Raises:
            OutOfMemory: what does not fit, and what would.
            SourceError: the file ends early.
            SelfTestError: the GPU computes wrong numbers, whatever the kernels.
            DeviceLost, DeviceTimeout: as for every wait.
        """
        adapter = self.device.adapter
        best = recipe_for(self.file.spec, adapter, self.device.limits)
        may_tune = self.config.tuning_ms > 0 and not adapter.is_fallback
        attempts = [partial(self._load, best, may_tune=may_tune)]
        if best != PORTABLE:
            attempts.append(partial(self._load, PORTABLE, may_tune=False))
        return await _first_that_passes(attempts)

    async def _load(self, recipe: Recipe, *, may_tune: bool) -> LoadedModel:
        spec, header, device, stages = self.file.spec, self.file.header, self.device, self.stages
        weight_plan = WeightPlan(spec, header, device.limits.largest_buffer_bytes)
        memory = plan_memory(spec, weight_plan, self.config, device.limits, recipe)
        default = choice = Choice(recipe)
        key = choice_key(device, spec, weight_plan, self.config.kv_format, recipe) if may_tune else ""
        if may_tune:
            choice = await self.choices.find(key, recipe, device.adapter.subgroup_size) or default
        with ExitStack() as on_failure:
            scope = on_failure.enter_context(self.ledger.scope(device))
            with stages.stage("allocate"):
                try:
                    weights = await weight_plan.allocate(scope)
                    state = await allocate_state(memory, scope)
                    await scope.settle()
                except OutOfMemory as refused:
                    raise advise(memory, self.config, refused, self.ledger.bytes) from refused
            model_of = partial(Llama, spec, weights, state, memory)
            plans = StepPlans(model_of(choice.recipe), choice.recipe)
            upload = Upload(weight_plan, device, staging_bytes=memory.upload_bytes)
            with stages.stage("compile"):
                await self._compile([*upload.kernels, *plans.kernels])
            with stages.stage("upload"):
                await upload.run(self.file.source, self.ledger, self.on_progress)
            with stages.stage("rope"):
                write_rope(device, state, spec, memory.context_length)
            self.on_progress("warming_up", 0, 0, "")
            if may_tune and choice is default:
                with stages.stage("tune"):
                    device.prepare_steps(state.step_uniforms, state.result, state.readbacks)
                    choice = await tune(device, model_of(recipe), recipe, self.config.tuning_ms)
                plans = StepPlans(model_of(choice.recipe), choice.recipe)

            async def tested(choice: Choice, plans: StepPlans) -> LoadedModel:
                await device.compile(plans.kernels, lambda *_: None)
                sizes = {"hidden_size": spec.hidden_size, "vocab_size": spec.vocab_size}
                runner = Runner(device, state, plans, memory, **sizes)
                output = header.tensors[EMBEDDING if spec.tied_output else OUTPUT]
                with stages.stage("self_test"):
                    norm, is_int8 = header.tensors[OUTPUT_NORM], choice.recipe.is_int8
                    verdict = await self_test(runner, self.file.source, output, norm, spec.rms_eps, is_int8=is_int8)
                return LoadedModel(spec, memory, runner, verdict, choice, scope)

            attempts = [partial(tested, choice, plans)]
            if choice.recipe != recipe:
                attempts.append(partial(tested, default, StepPlans(model_of(recipe), recipe)))
            model = await _first_that_passes(attempts)
            if may_tune and model.choice.origin != KEPT:
                await self.choices.keep(key, model.choice.recipe)
            on_failure.pop_all()
            return model

    async def _compile(self, kernels: list[Kernel]) -> None:
        unique = list(dict.fromkeys(kernels))
        self.on_progress("compiling", 0, len(unique), "kernels")
        await self.device.compile(unique, lambda done, total: self.on_progress("compiling", done, total, "kernels"))


async def _first_that_passes(attempts: Sequence[Callable[[], Awaitable[LoadedModel]]]) -> LoadedModel:
    """Return what the first attempt brings that passes the self-test; the last one's failure is the failure of all."""
    for attempt in attempts[:-1]:
        with suppress(SelfTestError):
            return await attempt()
    return await attempts[-1]()
