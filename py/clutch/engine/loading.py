"""Loading: the head of the file, which is read and checked before a GPU is opened; then, side by side, its text tools
and its place on a GPU. `Host.load` puts them together.
"""

import dataclasses
from contextlib import ExitStack

from clutch.config import EngineConfig
from clutch.engine.chunking import ChunkSizer
from clutch.engine.platform import Platform
from clutch.engine.prompt import Prompter
from clutch.engine.scheduler import Scheduler
from clutch.errors import ModelFormatError
from clutch.formats.gguf import GGUFHeader
from clutch.gpu.device import Device
from clutch.gpu.ledger import Ledger
from clutch.kv.pool import PAGE_POSITIONS, Pool
from clutch.model.choices import Choices
from clutch.model.identity import model_identity
from clutch.model.loader import LoadedModel, Loader, read_model_header
from clutch.model.spec import ModelSpec
from clutch.model.upload import Source
from clutch.stages import Stages
from clutch.text.chat import ChatTemplate
from clutch.text.tokenizer import Tokenizer
from clutch.text.tokenizer_json import tokenizer_json
from clutch.text.vocabulary import Vocabulary
from clutch.together import together


@dataclasses.dataclass(frozen=True)
class ModelHead:
    """What a model file says before its weights, checked."""

    source: Source
    identity: str
    header: GGUFHeader
    spec: ModelSpec
    vocabulary: Vocabulary

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able facts."""
        spec = self.spec
        types = {quant.name for quant in spec.tensor_types.values()} - {"F32"} or {"F32"}
        return {
            "name": spec.name,
            "architecture": spec.architecture,
            "quantisation": ", ".join(sorted(types)),
            "n_layers": spec.n_layers,
            "vocab_size": spec.vocab_size,
            "size_bytes": self.source.size_bytes,
        }


@dataclasses.dataclass(frozen=True)
class ModelFile:
    """A model file with its text tools; survives the GPU."""

    head: ModelHead
    tokenizer: Tokenizer
    prompter: Prompter


@dataclasses.dataclass(frozen=True)
class Placement:
    """A model on a GPU; owns the device and every buffer on it."""

    model: LoadedModel
    device: Device
    pool: Pool
    scheduler: Scheduler
    chunks: ChunkSizer
    kv_format: str

    @property
    def context_length(self) -> int:
        """Positions that a session may have."""
        return self.model.memory.context_length

    def close(self) -> None:
        """Destroy the buffers, then the device."""
        self.scheduler.close()
        self.model.close()
        self.device.destroy()


async def open_head(platform: Platform, source: Source, stages: Stages) -> ModelHead:
    """Read and check the head of the file in `source`.

    Raises:
        ModelFormatError, UnsupportedModelError, SourceError: what is wrong with it.
    """
    platform.send("progress", phase="reading_header", done=0, total=0, unit="")
    with stages.stage("header"):
        header, spec = await read_model_header(source)
    with stages.stage("vocabulary"):
        reading = _read_vocabulary(header, spec)
        identity, vocabulary = await together(model_identity(source, header.data_offset), reading)
    return ModelHead(source, identity, header, spec, vocabulary)


async def _read_vocabulary(header: GGUFHeader, spec: ModelSpec) -> Vocabulary:
    vocabulary = Vocabulary.from_metadata(header.metadata)
    if len(vocabulary.tokens) != spec.vocab_size:
        raise ModelFormatError(
            f"The file has {len(vocabulary.tokens)} tokens, but an embedding of {spec.vocab_size} rows.",
            hint="The file is damaged or was converted wrongly; get another copy.",
            field="tokenizer.ggml.tokens",
            expected=spec.vocab_size,
            found=len(vocabulary.tokens),
        )
    return vocabulary


async def open_text(platform: Platform, head: ModelHead, stages: Stages, *, prompt_bytes: int) -> ModelFile:
    """Make the text tools of a file; `prompt_bytes` is the longest prompt that will be read.

    Raises:
        ModelFormatError, UnsupportedModelError: what is wrong with its tokenizer or its template.
    """
    with stages.stage("tokenizer"):
        encode = await platform.open_encoder(tokenizer_json(head.vocabulary))
    with stages.stage("template"):
        template = ChatTemplate.from_metadata(head.header.metadata, head.vocabulary)
    tokenizer = Tokenizer(head.vocabulary, encode)
    return ModelFile(head, tokenizer, Prompter(tokenizer, template, prompt_bytes=prompt_bytes))


async def place(
    platform: Platform, head: ModelHead, ledger: Ledger, config: EngineConfig, choices: Choices, stages: Stages
) -> Placement:
    """Bring the file of `head` onto a new device; on any failure nothing is left behind.

    Raises:
        SourceError: the file ends early.
        CapabilityError, OutOfMemory, DeviceLost, DeviceTimeout: what is wrong with the GPU.
    """

    def on_progress(phase: str, done: int, total: int, unit: str) -> None:
        platform.send("progress", phase=phase, done=done, total=total, unit=unit)

    with ExitStack() as on_failure:
        with stages.stage("device"):
            device = await platform.open_device()
        on_failure.callback(device.destroy)
        prefill_ms = config.prefill_ms
        if device.adapter.is_fallback:
            config = dataclasses.replace(config, steps_in_flight=1)
            prefill_ms = config.prefill_ms_software
        model = await Loader(head, device, ledger, config, choices, on_progress, stages).load()
        on_failure.pop_all()
    # The same tokens have other keys and values in another model, and in another format.
    pool = Pool(model.memory.pool_positions // PAGE_POSITIONS, f"{head.identity} {config.kv_format}")
    chunks = ChunkSizer(model.memory.prefill_tokens, prefill_ms)
    return Placement(model, device, pool, Scheduler(model.runner), chunks, config.kv_format)
