"""The committed manifest is complete and safe; a broken or hostile one is refused before anything happens."""

import copy
import json
from pathlib import Path

import pytest

from serving import manifest, pin
from serving.errors import ManifestError
from tests.support.serve_helpers import zip_bytes

PATH = Path(__file__).resolve().parents[2] / "static" / "parts.json"
DOCUMENT = json.loads(PATH.read_text())


def test_the_committed_manifest_pins_the_seven_parts():
    parts = {part.name: part for part in manifest.load(PATH).parts}
    assert {name: part.version for name, part in parts.items()} == {
        "pyodide": "314.0.7",
        "pyscript": "0.7.31",
        "micropython": "1.27.0",
        "tokenizers": "0.1.6",
        "jinja2": "3.1.6",
        "markupsafe": "3.0.4",
        "smollm2": "0.1.2",
    }
    (model,) = [file for file in parts["smollm2"].files if file.path.endswith(".gguf")]
    assert model.path == "models/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert model.size_bytes == 98_362_432
    assert model.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def test_the_committed_manifest_takes_what_runs_and_no_more():
    paths = {file.path for part in manifest.load(PATH).parts for file in part.files}
    assert not [path for path in paths if path.endswith((".map", ".c", ".pyi", ".d.ts"))]
    assert paths >= {
        "vendor/pyodide/pyodide.mjs",
        "vendor/pyodide/pyodide.asm.mjs",
        "vendor/pyodide/pyodide.asm.wasm",
        "vendor/pyodide/python_stdlib.zip",
        "vendor/pyodide/pyodide-lock.json",
        "vendor/pyscript/core.js",
        "vendor/pyscript/core.css",
        "vendor/micropython/micropython.mjs",
        "vendor/micropython/micropython.wasm",
        "vendor/tokenizers/index.js",
        "vendor/python/jinja2/sandbox.py",
        "vendor/python/markupsafe/_native.py",
    }


def test_the_committed_manifest_names_no_host_and_is_as_pin_writes_it():
    assert "://" not in PATH.read_text()
    assert pin.dump(manifest.load(PATH)) == PATH.read_text()


def write(folder: Path, change) -> Path:
    document = copy.deepcopy(DOCUMENT)
    change(document)
    path = folder / "parts.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("path", "../serve.py"),
        ("path", "vendor/../../serve.py"),
        ("path", "/etc/passwd"),
        ("path", "vendor//x"),
        ("path", "vendor\\..\\..\\x"),
        ("path", "C:/x"),
        ("path", "parts.json"),
        ("path", "vendor/.stamp.json"),
        ("path", ".staging/x"),
        ("path", ""),
        ("path", DOCUMENT["parts"][1]["files"][0]["path"]),
        ("member", "../../x"),
        ("member", "/x"),
        ("sha256", "0" * 63),
        ("sha256", "G" * 64),
        ("size_bytes", -1),
        ("size_bytes", "many"),
        ("size_bytes", None),
    ],
)
def test_a_bad_file_is_refused(tmp_path, field, value):
    def change(document):
        document["parts"][0]["files"][0][field] = value

    with pytest.raises(ManifestError, match="git checkout"):
        manifest.load(write(tmp_path, change))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "shell"),
        ("package", "--index-url=x"),
        ("package", "../local"),
        ("version", "1.0 --pre"),
        ("version", "-r other.txt"),
        ("archive", {"size_bytes": 1}),
        ("files", None),
        ("take", []),
    ],
)
def test_a_bad_part_is_refused(tmp_path, field, value):
    def change(document):
        document["parts"][0][field] = value

    with pytest.raises(ManifestError):
        manifest.load(write(tmp_path, change))


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"parts": 1}', "\xff"])
def test_what_is_no_manifest_is_refused(tmp_path, text):
    path = tmp_path / "parts.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ManifestError):
        manifest.load(path)
    with pytest.raises(ManifestError):
        manifest.load(tmp_path / "absent.json")


def test_pinning_writes_what_the_archives_hold(tmp_path):
    static = tmp_path / "static"
    static.mkdir()
    wheel = tmp_path / "jinja2.whl"
    wheel.write_bytes(
        zip_bytes({"jinja2/a.py": b"a", "jinja2/deep/b.py": b"b", "jinja2-9.dist-info/licenses/LICENSE.txt": b"L"})
    )
    write(static, lambda document: None)
    pin.main(["jinja2"], static, lambda part, folder: wheel)
    pinned = {part.name: part for part in manifest.load(static / "parts.json").parts}
    assert [(file.member, file.size_bytes) for file in pinned["jinja2"].files] == [
        ("jinja2/a.py", 1),
        ("jinja2-9.dist-info/licenses/LICENSE.txt", 1),
    ]
    assert pinned["jinja2"].size_bytes == wheel.stat().st_size
    assert pinned["pyodide"] == manifest.load(PATH).parts[0]
    with pytest.raises(ValueError, match="matches"):
        pin.main(["pyodide"], static, lambda part, folder: wheel)
