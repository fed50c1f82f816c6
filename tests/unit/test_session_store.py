"""Both stores of saved sessions keep the same promises; the browser's runs over a file system of dicts."""

import asyncio
import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest

from clutch.engine.session_store import MOST_NAME_CHARS
from clutch.errors import RequestError, SavedSessionError
from tests.support.fake_session_store import FakeSessionStore

QUOTA_BYTES = 100
NAMES = ["a", "My chat", "..", "a/b\\c", "100 %", "Grüße 🙂", "x" * MOST_NAME_CHARS]


class JsException(Exception):
    """What pyodide.ffi calls a JavaScript error."""

    def __init__(self, name):
        super().__init__(name)
        self.name = self.message = name


class Directory:
    """A FileSystemDirectoryHandle with the files of it."""

    def __init__(self):
        self.files = {}
        self.refusal = None
        self.clock = 0

    async def getDirectoryHandle(self, name, _options):
        if self.refusal:
            raise JsException(self.refusal)
        assert name == "sessions"
        return self

    async def getFileHandle(self, name, options=None):
        assert name not in (".", "..") and "/" not in name and "\\" not in name
        if name not in self.files:
            if not options:
                raise JsException("NotFoundError")
            self.files[name] = (0, b"")
        return Handle(self, name)

    async def removeEntry(self, name):
        if self.files.pop(name, None) is None:
            raise JsException("NotFoundError")

    async def values(self):
        for name in sorted(self.files):
            yield Handle(self, name)


class Handle:
    """A FileSystemFileHandle, and the stream that writes to it."""

    def __init__(self, directory, name):
        self.name = name
        self._directory = directory

    async def getFile(self):
        at, data = self._directory.files[self.name]
        return SimpleNamespace(lastModified=at, size=len(data), arrayBuffer=lambda: _soon(_Buffer(data)))

    async def createWritable(self):
        return self

    async def write(self, data):
        if len(data) > QUOTA_BYTES:
            raise JsException("QuotaExceededError")
        self._written = data

    async def close(self):
        self._directory.clock += 1
        self._directory.files[self.name] = (self._directory.clock, self._written)

    async def abort(self):
        self._written = None


class _Buffer:
    def __init__(self, data):
        self._data = data

    def to_bytes(self):
        return self._data


async def _soon(value):
    return value


@pytest.fixture
def directory():
    return Directory()


@pytest.fixture
def opfs(directory, monkeypatch):
    js = ModuleType("js")
    js.navigator = SimpleNamespace(storage=SimpleNamespace(getDirectory=lambda: _soon(directory)))
    js.Object = SimpleNamespace(fromEntries=dict)
    ffi = ModuleType("pyodide.ffi")
    ffi.JsException = JsException
    ffi.to_js = lambda value, dict_converter=None: value
    pyodide = ModuleType("pyodide")
    pyodide.ffi = ffi
    for module in (js, pyodide, ffi):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "clutch.browser.session_store", raising=False)
    store = importlib.import_module("clutch.browser.session_store").OpfsSessionStore()
    yield store
    del sys.modules["clutch.browser.session_store"]


@pytest.fixture(params=["opfs", "fake"])
def store(request):
    return request.getfixturevalue("opfs") if request.param == "opfs" else FakeSessionStore(QUOTA_BYTES)


def run(awaitable):
    return asyncio.run(awaitable)


def cause(awaitable):
    with pytest.raises(SavedSessionError) as refused:
        run(awaitable)
    return refused.value.data["cause"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read(store, name):
    run(store.write(name, b"data"))
    assert run(store.read(name)) == b"data"
    assert run(store.list()) == [(name, 4)]
    run(store.delete(name))
    assert run(store.list()) == []


def test_the_list_begins_with_the_oldest(store):
    for name in ("b", "a", "c"):
        run(store.write(name, name.encode()))
    run(store.write("b", b"again"))
    assert run(store.list()) == [("a", 1), ("c", 1), ("b", 5)]


def test_what_is_not_there_is_missing(store):
    assert cause(store.read("x")) == cause(store.delete("x")) == "missing"


def test_what_was_there_stays_when_there_is_no_room(store):
    run(store.write("a", b"old"))
    assert cause(store.write("a", bytes(QUOTA_BYTES + 1))) == "quota"
    assert run(store.read("a")) == b"old"


@pytest.mark.parametrize("name", ["", "x" * (MOST_NAME_CHARS + 1), "\ud83d"], ids=["empty", "long", "half"])
def test_a_name_that_is_none(store, name):
    for action in (store.write(name, b"x"), store.read(name), store.delete(name)):
        with pytest.raises(RequestError):
            run(action)


def test_a_write_that_was_cut_off_is_none(opfs, directory):
    assert cause(opfs.write("new", bytes(QUOTA_BYTES + 1))) == "quota"
    directory.files["a.clutch.crswap"] = (9, b"half")
    assert run(opfs.list()) == []
    assert cause(opfs.read("new")) == "missing"


@pytest.mark.parametrize("refusal", ["SecurityError", "UnknownError"])
def test_a_browser_that_keeps_nothing(opfs, directory, refusal):
    directory.refusal = refusal
    for action in (opfs.list(), opfs.write("a", b"x"), opfs.read("a"), opfs.delete("a")):
        assert cause(action) == "storage"


def test_a_browser_without_storage(opfs, monkeypatch):
    monkeypatch.delattr(sys.modules["js"].navigator, "storage")
    assert cause(opfs.list()) == "storage"
