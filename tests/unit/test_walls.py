"""The walls that import-linter cannot see: which words may stand in which files, and how long a file may be."""

import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = [*sorted((ROOT / "py").rglob("*.py")), ROOT / "serve.py"]
WORKER = sorted((ROOT / "worker").glob("*.js"))
WGSL = sorted((ROOT / "wgsl").glob("*.wgsl"))
TESTS = [path for kind in ("*.py", "*.js") for path in sorted((ROOT / "tests").rglob(kind))]
PAGE = [path for path in PYTHON if "ui" in path.parts] + [ROOT / "index.html"]

WEBGPU = re.compile(
    r"\bGPU[A-Z]\w+|\bnavigator\.gpu\b|\b(?:request(?:Adapter|Device)|create(?:Buffer|BindGroup\w*|ShaderModule|"
    r"ComputePipeline\w*|PipelineLayout|CommandEncoder)|dispatchWorkgroups\w*|mapAsync|writeBuffer)\b"
)
KNOW_WEBGPU = {"py/clutch/browser/webgpu.py", "py/clutch/browser/pipelines.py"}
DOM = re.compile(r"\bdocument\b|\bwindow\b|\b(?:querySelector|getElementById|innerHTML|textContent|localStorage)\b")
UNSAFE = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTMLUnsafe)\b|\bdocument\.write"
    r"|(?<![.\w])eval\s*\(|\bnew Function\b|\bsetTimeout\(\s*['\"]"
)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def offences(pattern, paths):
    return [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


def n_lines(path):
    return len(path.read_text("utf-8").splitlines())


def test_there_is_something_to_look_at():
    assert min(map(len, (PYTHON, WORKER, WGSL, TESTS, PAGE))) > 5
    assert offences(WEBGPU, WORKER)
    assert offences(WEBGPU, [ROOT / name for name in KNOW_WEBGPU])


def test_webgpu_is_known_only_to_the_worker_and_its_python_side():
    others = [path for path in PYTHON if name_of(path) not in KNOW_WEBGPU]
    assert offences(WEBGPU, [*others, ROOT / "index.html"]) == []


def test_the_worker_knows_no_page():
    assert offences(DOM, WORKER) == []


def test_the_engine_knows_no_page():
    engine = [path for path in PYTHON if "clutch" in path.parts]
    assert offences(re.compile(r"\bjs\.document\b|\bjs\.window\b|pyscript"), engine) == []


@pytest.mark.parametrize("path", [*PAGE, *WORKER], ids=name_of)
def test_text_never_becomes_code_or_markup(path):
    assert offences(UNSAFE, [path]) == []


def test_product_files_are_short():
    sizes = {name_of(path): n_lines(path) for path in (*PYTHON, *WORKER, *WGSL)}
    assert statistics.median(sizes.values()) <= 120
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def test_test_files_are_no_book_either():
    assert {name_of(path): n_lines(path) for path in TESTS if n_lines(path) > 400} == {}


def test_the_unsafe_pattern_catches_what_it_is_for():
    for line in ("x.innerHTML = y", "eval(code)", "new Function(code)", "document.write(x)", "setTimeout('f()')"):
        assert UNSAFE.search(line)
    assert not UNSAFE.search("retrieval(x)")
    for line in ("navigator.gpu.x", "GPUBufferUsage.STORAGE", "device.createBuffer({", "createComputePipelineAsync"):
        assert WEBGPU.search(line)
    assert not WEBGPU.search("a GPU that fits; maxBufferSize; WebGPU")
