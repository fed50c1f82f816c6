"""The engine's outside world on CPython: files in memory, the fake device, and a list of what was sent."""

import json

from tokenizers import Tokenizer

from clutch import protocol
from clutch.config import EngineConfig
from clutch.engine.engine import Engine
from clutch.errors import SourceError
from tests.support.fake_device import FakeDevice, FakeStream, Script


class FakeSource:
    """Implements `clutch.model.upload.Source` over bytes."""

    def __init__(self, data, script):
        self._data = data
        self._script = script
        self.streams = []

    @property
    def size_bytes(self):
        return len(self._data)

    async def read(self, offset, length):
        return self._data[offset : offset + length]

    async def stream(self, offset):
        self.streams.append(FakeStream(self._data[offset:], self._script))
        return self.streams[-1]


class FakePlatform:
    """Implements `clutch.engine.platform.Platform`.

    Args:
        files: bytes by URL.
        script: what the next devices do; may be exchanged between loads.
    """

    def __init__(self, files, script=None, *, shared_mark=None, **device_options):
        self.files = files
        self.script = script or Script()
        self.shared_mark = shared_mark
        self.events = []
        self.devices = []
        self.sources = []
        self.device_options = device_options
        self._now = 0.0
        # What the clock advances at each look; more than a frame, so that every token has a delta of its own.
        self.tick_s = 0.02

    async def open_device(self):
        self.devices.append(FakeDevice(self.script, **self.device_options))
        return self.devices[-1]

    async def open_url(self, url):
        if url not in self.files:
            raise SourceError(f"{url}: not found")
        self.sources.append(FakeSource(self.files[url], self.script))
        return self.sources[-1]

    def open_file(self, file):
        return FakeSource(file, self.script)

    async def open_encoder(self, tokenizer_json):
        tokenizer = Tokenizer.from_str(tokenizer_json.decode())
        return lambda text: tokenizer.encode(text).ids

    def send(self, kind, **fields):
        # As over the wire: what the protocol refuses or JSON cannot carry fails here.
        self.events.append(json.loads(protocol.encode(protocol.EVENTS, kind, **fields)))

    def clock(self):
        self._now += self.tick_s
        return self._now


class Driver:
    """Sends messages to an engine on a fake platform and looks at the events."""

    def __init__(self, platform, **config):
        self.platform = platform
        self.engine = Engine(platform, EngineConfig(**config))
        self._n_requests = 0
        self.epoch = 0

    async def send(self, kind, file=None, **fields):
        message = protocol.decode(protocol.REQUESTS, protocol.encode(protocol.REQUESTS, kind, **fields))
        await self.engine.handle(message, file)

    async def load(self, url="tiny.gguf"):
        """Load and return the events of it."""
        self._n_requests += 1
        return await self._watched("load", request_id=self._n_requests, url=url)

    async def continue_(self, **params):
        """Go on with the last answer and return the events of it."""
        self._n_requests += 1
        return await self._watched("continue", request_id=self._n_requests, epoch=self.epoch, params=params)

    async def generate(self, text="Hello", *, top_logits=0, **params):
        """Generate and return the events of it; the last is `finished` or `error`."""
        self._n_requests += 1
        messages = [{"role": "user", "content": text}] if isinstance(text, str) else text
        return await self._watched(
            "generate",
            request_id=self._n_requests,
            epoch=self.epoch,
            messages=messages,
            params=params,
            top_logits=top_logits,
        )

    async def reset(self):
        self.epoch += 1
        await self.send("reset", epoch=self.epoch)

    @property
    def next_request_id(self):
        """The id that the next request will have."""
        return self._n_requests + 1

    async def _watched(self, kind, **fields):
        first = len(self.platform.events)
        await self.send(kind, **fields)
        await self.engine.idle()
        return self.platform.events[first:]


def only(events, kind):
    """Return the one event of a kind."""
    (event,) = [event for event in events if event["kind"] == kind]
    return event
