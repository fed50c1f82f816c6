"""Loading, seen from the engine: the file is read and checked before a GPU is opened, and all or nothing remains."""

import dataclasses
import time
from contextlib import ExitStack

from clutch.config import EngineConfig
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
class Loaded:
    """A model with its text tools and its device; owns all of them."""

    model: LoadedModel
    tokenizer: Tokenizer
    template: ChatTemplate
    device: Device
    pool: Pool
    config: EngineConfig
    size_bytes: int
    timings: dict[str, object]

    def new_conversation(self) -> Conversation:
        """Return an empty conversation on the pool."""
        return Conversation(
            self.model.runner,
            self.tokenizer,
            self.template,
            self.pool,
            context_length=self.model.memory.context_length,
            prompt_bytes=self.config.prompt_bytes,
        )

    def to_wire(self) -> dict[str, object]:
        """Return the fields of the `loaded` event that belong to the model."""
        spec = self.model.spec
        types = {quant.name for quant in spec.tensor_types.values()} - {"F32"} or {"F32"}
        return {
            "model": {
                "name": spec.name,
                "architecture": spec.architecture,
                "quantisation": ", ".join(sorted(types)),
                "n_layers": spec.n_layers,
                "vocab_size": spec.vocab_size,
                "context_length": self.model.memory.context_length,
                "size_bytes": self.size_bytes,
            },
            "memory": self.model.memory.to_wire(),
            "timings": self.timings,
        }

    def close(self) -> None:
        """Destroy the buffers, then the device."""
        self.model.close()
        self.device.destroy()


async def load(platform: Platform, source: Source, ledger: Ledger, config: EngineConfig) -> Loaded:
    """Load the model in `source`; on any failure nothing is left behind.

    Raises:
        ModelFormatError, UnsupportedModelError, SourceError: what is wrong with the file.
        CapabilityError, OutOfMemory, DeviceLost, DeviceTimeout: what is wrong with the GPU.
    """
    started = time.perf_counter()
    timings: dict[str, object] = {}

    def on_progress(phase: str, done: int, total: int, unit: str) -> None:
        platform.send("progress", phase=phase, done=done, total=total, unit=unit)

    on_progress("reading_header", 0, 0, "")
    header, spec = await read_model_header(source)
    tokenizer, template = await _open_text(platform, header, spec)
    timings["header_and_tokenizer_s"] = round(time.perf_counter() - started, 3)
    with ExitStack() as on_failure:
        device = await platform.open_device()
        on_failure.callback(device.destroy)
        if device.adapter.is_fallback:
            config = dataclasses.replace(config, steps_in_flight=1)
        model = await load_model(source, header, spec, device, ledger, config, on_progress)
        on_failure.pop_all()
    timings |= model.timings
    timings["total_s"] = round(time.perf_counter() - started, 3)
    pool = Pool(model.memory.context_length // PAGE_POSITIONS)
    return Loaded(model, tokenizer, template, device, pool, config, source.size_bytes, timings)


async def _open_text(platform: Platform, header: GGUFHeader, spec: ModelSpec) -> tuple[Tokenizer, ChatTemplate]:
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
    return Tokenizer(vocabulary, encode), ChatTemplate.from_metadata(header.metadata, vocabulary)
