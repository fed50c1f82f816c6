"""Loads a model: header -> plans -> buffers -> kernels -> weights -> warm-up. Nothing is left behind on failure."""

from contextlib import ExitStack
from dataclasses import dataclass

from clutch.config import EngineConfig
from clutch.errors import OutOfMemory
from clutch.formats.gguf import GGUFHeader, read_header
from clutch.gpu.device import Device
from clutch.gpu.kernels import Kernel
from clutch.gpu.ledger import Ledger, Scope
from clutch.model.llama import Llama
from clutch.model.memory import MemoryPlan, advise, plan_memory
from clutch.model.recipe import recipe_for
from clutch.model.runner import Runner, StepPlans
from clutch.model.self_test import self_test
from clutch.model.spec import ModelSpec
from clutch.model.spec_reader import read_spec
from clutch.model.state import allocate_state, write_rope
from clutch.model.tensor_set import EMBEDDING, OUTPUT, OUTPUT_NORM
from clutch.model.upload import Progress, Source, Upload
from clutch.model.weights import WeightPlan
from clutch.stages import Stages


@dataclass(frozen=True)
class LoadedModel:
    """A model on the GPU; `close` gives its buffers back."""

    spec: ModelSpec
    memory: MemoryPlan
    runner: Runner
    self_test: dict[str, object]
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


async def load_model(
    source: Source,
    header: GGUFHeader,
    spec: ModelSpec,
    device: Device,
    ledger: Ledger,
    config: EngineConfig,
    on_progress: Progress,
    stages: Stages,
) -> LoadedModel:
    """Bring a model onto `device`; on any failure every buffer made here is destroyed.

    Raises:
        OutOfMemory: what does not fit, and what would.
        SourceError: the file ends early.
        SelfTestError: the GPU computes wrong numbers.
        DeviceLost, DeviceTimeout: as for every wait.
    """
    weight_plan = WeightPlan(spec, header, device.limits.largest_buffer_bytes)
    recipe = recipe_for(spec, device.adapter, device.limits)
    memory = plan_memory(spec, weight_plan, config, device.limits, recipe)
    with ExitStack() as on_failure:
        scope = on_failure.enter_context(ledger.scope(device))
        with stages.stage("allocate"):
            try:
                weights = await weight_plan.allocate(scope)
                state = await allocate_state(memory, scope)
                await scope.settle()
            except OutOfMemory as refused:
                raise advise(memory, config, refused, ledger.bytes) from refused
        plans = StepPlans(Llama(spec, weights, state, memory, recipe), recipe)
        upload = Upload(weight_plan, device, staging_bytes=memory.upload_bytes)
        with stages.stage("compile"):
            await _compile(device, [*upload.kernels, *plans.kernels], on_progress)
        with stages.stage("upload"):
            await upload.run(source, ledger, on_progress)
        with stages.stage("rope"):
            write_rope(device, state, spec, memory.context_length)
        runner = Runner(
            device,
            state,
            plans,
            memory,
            hidden_size=spec.hidden_size,
            vocab_size=spec.vocab_size,
        )
        on_progress("warming_up", 0, 0, "")
        output = header.tensors[EMBEDDING if spec.tied_output else OUTPUT]
        with stages.stage("self_test"):
            norm, is_int8 = header.tensors[OUTPUT_NORM], recipe.is_int8
            verdict = await self_test(runner, source, output, norm, spec.rms_eps, is_int8=is_int8)
        on_failure.pop_all()
        return LoadedModel(spec, memory, runner, verdict, scope)


async def _compile(device: Device, kernels: list[Kernel], on_progress: Progress) -> None:
    unique = list(dict.fromkeys(kernels))
    on_progress("compiling", 0, len(unique), "kernels")
    await device.compile(unique, lambda done, total: on_progress("compiling", done, total, "kernels"))
