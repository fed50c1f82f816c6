"""Loading in two halves: the file, which is read and checked before a GPU is opened, and its place on a GPU."""

import dataclasses
from contextlib import ExitStack

from clutch.config import EngineConfig
from clutch.engine.chunking import ChunkSizer
from clutch.engine.conversation import Conversation
from clutch.engine.platform import Platform
from clutch.errors import ModelFormatError
from clutch.formats.gguf import GGUFHeader
from clutch.gpu.device import Device
from clutch.gpu.ledger import Ledger
from clutch.kv.pool import PAGE_POSITIONS, Pool
from clutch.model.loader import LoadedModel, load_model, read_model_header
from clutch.model.spec import ModelSpec
from clutch.model.upload import Source
from clutch.text.chat import ChatTemplate
from clutch.text.tokenizer import Tokenizer
from clutch.text.tokenizer_json import tokenizer_json
from clutch.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class ModelFile:
    """A checked model file with its text tools; survives the GPU."""

    source: Source
    header: GGUFHeader
    spec: ModelSpec
    tokenizer: Tokenizer
    template: ChatTemplate

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
class Placement:
    """A model on a GPU; owns the device and every buffer on it."""

    model: LoadedModel
    device: Device
    pool: Pool
    chunks: ChunkSizer

    @property
    def context_length(self) -> int:
        """Positions of the pool."""
        return self.model.memory.context_length

    def settle(self, conversation: Conversation) -> None:
        """Give a conversation its place here."""
        conversation.settle(self.model.runner, self.pool, self.chunks, context_length=self.context_length)

    def close(self) -> None:
        """Destroy the buffers, then the device."""
        self.model.close()
        self.device.destroy()


async def open_model_file(platform: Platform, source: Source) -> ModelFile:
    """Read and check the file in `source`.

    Raises:
        ModelFormatError, UnsupportedModelError, SourceError: what is wrong with it.
    """
    platform.send("progress", phase="reading_header", done=0, total=0, unit="")
    header, spec = await read_model_header(source)
    vocabulary = Vocabulary.from_metadata(header.metadata)
    if len(vocabulary.tokens) != spec.vocab_size:
        raise ModelFormatError(
            f"The file has {len(vocabulary.tokens)} tokens, but an embedding of {spec.vocab_size} rows.",
            hint="The file is damaged or was converted wrongly; get another copy.",
            field="tokenizer.ggml.tokens",
            expected=spec.vocab_size,
            found=len(vocabulary.tokens),
        )
    encode = await platform.open_encoder(tokenizer_json(vocabulary))
    template = ChatTemplate.from_metadata(header.metadata, vocabulary)
    return ModelFile(source, header, spec, Tokenizer(vocabulary, encode), template)


async def place(platform: Platform, file: ModelFile, ledger: Ledger, config: EngineConfig) -> Placement:
    """Bring `file` onto a new device; on any failure nothing is left behind.

    Raises:
        SourceError: the file ends early.
        CapabilityError, OutOfMemory, DeviceLost, DeviceTimeout: what is wrong with the GPU.
    """

    def on_progress(phase: str, done: int, total: int, unit: str) -> None:
        platform.send("progress", phase=phase, done=done, total=total, unit=unit)

    with ExitStack() as on_failure:
        device = await platform.open_device()
        on_failure.callback(device.destroy)
        prefill_ms = config.prefill_ms
        if device.adapter.is_fallback:
            config = dataclasses.replace(config, steps_in_flight=1)
            prefill_ms = config.prefill_ms_software
        model = await load_model(file.source, file.header, file.spec, device, ledger, config, on_progress)
        on_failure.pop_all()
    pool = Pool(model.memory.context_length // PAGE_POSITIONS)
    return Placement(model, device, pool, ChunkSizer(config.prefill_tokens, prefill_ms))
