"""The engine's outside world on CPython: files in memory, the fake device, and a list of what was sent."""

import asyncio
import json

from tokenizers import Tokenizer

from clutch import protocol
from clutch.config import EngineConfig
from clutch.engine.engine import Engine
from clutch.errors import SourceError
from tests.support.fake_choice_store import FakeChoiceStore
from tests.support.fake_device import FakeDevice, FakeStream, Script
from tests.support.fake_session_store import FakeSessionStore
from tests.support.session_events import of_session


class FakeSource:
    """Implements `clutch.model.upload.Source` over bytes."""

    def __init__(self, data):
        self._data = data
        self.streams = []

    @property
    def size_bytes(self):
        return len(self._data)

    async def read(self, offset, length):
        return self._data[offset : offset + length]

    async def stream(self, offset):
        self.streams.append(FakeStream(self._data[offset:]))
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
        self.store = FakeSessionStore()
        self.choice_store = FakeChoiceStore()
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
        self.sources.append(FakeSource(self.files[url]))
        return self.sources[-1]

    def open_file(self, file):
        return FakeSource(file)

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
        # Tuning has its own tests; without it a load is half as many calls, each of which others let fail.
        self.engine = Engine(platform, EngineConfig(**{"tuning_ms": 0, **config}))
        self.n_requests = 0
        self.epochs = {}

    async def send(self, kind, file=None, **fields):
        message = protocol.decode(protocol.REQUESTS, protocol.encode(protocol.REQUESTS, kind, **fields))
        await self.engine.handle(message, file)

    async def load(self, url="tiny.gguf", **fields):
        """Load and return the events of it."""
        return await self._watched("load", request_id=self._number(), url=url, **fields)

    async def continue_(self, **params):
        """Go on with the last answer and return the events of it."""
        return await self._watched("continue", request_id=self._number(), epoch=self.epoch, params=params)

    async def generate(self, text="Hello", *, top_logits=0, overflow="stop", reuse=True, ignore_eos=False, **params):
        """Generate and return the events of it; the last answer of them is `finished` or `error`."""
        return await self._watched(
            "generate",
            request_id=self._number(),
            epoch=self.epoch,
            messages=_messages(text),
            params=params,
            top_logits=top_logits,
            overflow=overflow,
            reuse=reuse,
            ignore_eos=ignore_eos,
        )

    async def ask(self, text, *, session, **params):
        """Send a question to a session without waiting for the answer; return its request_id."""
        epoch = self.epochs.get(session, 0)
        request_id = self._number()
        await self.send(
            "generate", request_id=request_id, epoch=epoch, session=session, messages=_messages(text), params=params
        )
        return request_id

    async def resume(self, *, session, **params):
        """Go on with the answer of a session without waiting for it; return the request_id."""
        epoch = self.epochs.get(session, 0)
        request_id = self._number()
        await self.send("continue", request_id=request_id, epoch=epoch, session=session, params=params)
        return request_id

    async def open(self, session, **fields):
        """Open a session."""
        await self.send("open_session", session=session, epoch=self.epochs.get(session, 0), **fields)

    async def reset(self, session=0, **fields):
        """Reset a session and wait until it is."""
        self.epochs[session] = self.epochs.get(session, 0) + 1
        await self.send("reset", epoch=self.epochs[session], session=session, **fields)
        await self.settle(session)

    async def settle(self, session=0):
        """Wait until nothing runs in a session."""
        while tasks := self.engine.sessions[session].work.tasks:
            await asyncio.wait(tasks)

    @property
    def epoch(self):
        """Of session 0."""
        return self.epochs.get(0, 0)

    @property
    def next_request_id(self):
        """The id that the next request will have."""
        return self.n_requests + 1

    def of(self, kind, session=0):
        """Return the events of a kind that belong to a session, oldest first."""
        return of_session(self.platform.events, session, kind)

    def _number(self):
        self.n_requests += 1
        return self.n_requests

    async def _watched(self, kind, **fields):
        first = len(self.platform.events)
        await self.send(kind, **fields)
        await self.engine.idle()
        return [event for event in self.platform.events[first:] if event["kind"] != "pool"]


def _messages(text):
    return [{"role": "user", "content": text}] if isinstance(text, str) else text


def only(events, kind):
    """Return the one event of a kind."""
    (event,) = [event for event in events if event["kind"] == kind]
    return event
