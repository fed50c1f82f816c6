"""What the engine needs from where it runs; implemented by `browser/` and by the tests."""

from collections.abc import Callable
from typing import Protocol

from clutch.engine.control import SharedMark
from clutch.engine.session_store import SessionStore
from clutch.gpu.device import Device
from clutch.model.choices import ChoiceStore
from clutch.model.upload import Source


class Platform(Protocol):
    """The outside world."""

    @property
    def shared_mark(self) -> SharedMark | None:
        """The page's stop mark in shared memory, or None without cross-origin isolation."""

    @property
    def store(self) -> SessionStore:
        """Where saved sessions are kept."""

    @property
    def choice_store(self) -> ChoiceStore:
        """Where the choice of kernels is kept."""

    async def open_device(self) -> Device:
        """Return a new device from a new adapter.

        Raises:
            CapabilityError: there is none that suffices.
        """

    async def open_url(self, url: str) -> Source:
        """Return the model file at `url`, relative to the page.

        Raises:
            SourceError: it cannot be read.
        """

    def open_file(self, file: object) -> Source:
        """Return the model file that came beside a message."""

    async def open_encoder(self, tokenizer_json: bytes) -> Callable[[str], list[int]]:
        """Return the plain BPE encoder of a Hugging Face `tokenizer.json`."""

    def send(self, kind: str, **fields: object) -> None:
        """Post an event of `protocol.EVENTS` to the page."""

    def clock(self) -> float:
        """Return seconds that never run backwards."""
