"""The browser's side of the FFI on CPython: the modules `js`, `pyodide` and `clutch_worker`, with every call counted.

A call of a JavaScript function or an index into a JavaScript array is one crossing, under the name that is called;
looking up the function and converting its arguments belong to the call. A step computes nothing: its token is fixed.
"""

import asyncio
import itertools
import struct
from collections import Counter
from types import ModuleType, SimpleNamespace

from tokenizers import Tokenizer

TOKEN_ID = 100
_USAGES = {"STORAGE": 128, "UNIFORM": 64, "MAP_READ": 1, "COPY_DST": 8, "COPY_SRC": 4}
_LIMITS = {
    "maxBufferSize": 256 << 20,
    "maxStorageBufferBindingSize": 128 << 20,
    "maxComputeWorkgroupStorageSize": 16 << 10,
}
_CREATES = (
    "createBindGroup",
    "createBindGroupLayout",
    "createPipelineLayout",
    "createShaderModule",
    "createBuffer",
)


class JsException(Exception):
    """What pyodide.ffi calls a JavaScript error."""


class FakeJs:
    """The three modules over one model file.

    Args:
        file: its bytes, whatever the URL.
    """

    def __init__(self, file):
        self.calls = Counter()
        self.posted = []
        self.mark = 0
        self._file = file
        self.js = _module(
            "js",
            GPUBufferUsage=SimpleNamespace(**_USAGES),
            GPUShaderStage=SimpleNamespace(COMPUTE=4),
            Object=SimpleNamespace(fromEntries=dict),
            Int32Array=SimpleNamespace(new=self._int32_array),
            URL=SimpleNamespace(new=lambda url, root: SimpleNamespace(href=root + url)),
            self=SimpleNamespace(onmessage=None),
            console=SimpleNamespace(info=self._counted("console")),
        )
        ffi = _module(
            "pyodide.ffi",
            JsException=JsException,
            create_once_callable=lambda function: function,
            create_proxy=lambda function: function,
            to_js=lambda value, dict_converter=None: value,
        )
        worker = _module(
            "clutch_worker",
            openGpu=self._waited("openGpu", self._gpu),
            Plan=SimpleNamespace(new=self._counted("createPlan", lambda *_: object())),
            Replay=SimpleNamespace(new=self._counted("createReplay", self._replay)),
            Source=SimpleNamespace(fromUrl=self._waited("fromUrl", self._source)),
            openTokenizer=self._waited("openTokenizer", self._tokenizer),
            post=self._counted("postMessage", lambda text: self.posted.append({"json": text})),
            run=self._counted("run"),
        )
        self.modules = {
            "js": self.js,
            "pyodide": _module("pyodide", ffi=ffi),
            "pyodide.ffi": ffi,
            "clutch_worker": worker,
        }

    def send(self, text):
        """Deliver a message from the page."""
        self.js.self.onmessage(_event(json=text))

    def early(self):
        """Return the messages with which the engine starts: the one that carries the mark."""
        return [_event(mark=object())]

    def created(self):
        """Return how many objects were made so far, by what made them."""
        return {name: n for name, n in self.calls.items() if name.startswith("create")}

    def _counted(self, name, function=lambda *_: None):
        def call(*arguments):
            self.calls[name] += 1
            return function(*arguments)

        return call

    def _waited(self, name, function=lambda *_: None):
        async def call(*arguments):
            await asyncio.sleep(0)
            return function(*arguments)

        return self._counted(name, call)

    def _bytes(self, data):
        return SimpleNamespace(to_bytes=self._counted("to_bytes", lambda: data))

    def _int32_array(self, data):
        """Return the shared mark, or the grid of a plan as it is."""
        if isinstance(data, list):
            return data
        outer = self

        class Words:
            def __getitem__(self, index):
                outer.calls["mark"] += 1
                return outer.mark

        return Words()

    def _gpu(self):
        adapter = SimpleNamespace(vendor="fake", architecture="js", description="", is_fallback=False, subgroup_size=0)
        device = SimpleNamespace(
            limits=SimpleNamespace(**_LIMITS),
            features=SimpleNamespace(has=lambda _name: False),
            destroy=self._counted("destroy"),
            **{name: self._counted(name, lambda *_: object()) for name in _CREATES},
        )
        return SimpleNamespace(
            adapter=adapter,
            device=device,
            queue=SimpleNamespace(writeBuffer=self._counted("writeBuffer")),
            allocate=self._counted("createBuffer", lambda *_: SimpleNamespace(destroy=self._counted("destroy"))),
            settle=self._waited("settle"),
            compile=self._waited("createPipeline", lambda *_: object()),
            read=self._waited("read", lambda _buffers, _offsets, sizes, _via: self._bytes(bytes(sum(sizes)))),
            clear=self._counted("clear"),
            copy=self._counted("copy"),
            idle=self._waited("idle"),
            onLost=self._counted("onLost"),
            close=self._counted("close"),
        )

    def _replay(self, *arguments):
        settle = arguments[-1]
        numbers = itertools.count(1)

        def step(_plan, tokens_per_sequence, *sequences):
            positions = sequences[1::2]
            words = b"".join(struct.pack("<IffI", TOKEN_ID, -1.0, 1.0, at + tokens_per_sequence) for at in positions)
            number = next(numbers)
            asyncio.get_running_loop().call_soon(settle, number, self._bytes(words))
            return number

        return SimpleNamespace(
            configure=self._counted("configure"),
            step=self._counted("step", step),
            measure=self._waited("measure", lambda *_: 1000.0),
        )

    def _source(self, _url):
        stream = SimpleNamespace(pour=self._waited("pour"), close=self._counted("close"))
        return SimpleNamespace(
            size=len(self._file),
            read=self._waited("read", lambda start, end: self._bytes(self._file[start:end])),
            stream=self._waited("stream", lambda _start: stream),
        )

    def _tokenizer(self, json):
        tokenizer = Tokenizer.from_str(json.decode())
        return SimpleNamespace(encode=lambda text: SimpleNamespace(to_py=lambda: tokenizer.encode(text).ids))


def _module(name, **members):
    module = ModuleType(name)
    vars(module).update(members)
    return module


def _event(**data):
    return SimpleNamespace(data=SimpleNamespace(**{"mark": None, **data}))
