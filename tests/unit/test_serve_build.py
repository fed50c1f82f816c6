"""`serve.py build`: the static site is what the server would have served."""

import pytest

from serving.build import headers_file, write_site
from serving.engine_archive import EngineArchive
from serving.errors import BuildError
from serving.headers import PAGE_CSP, WORKER_CSP
from tests.support.serve_helpers import FILES, make_repository

EXPECTED = {
    "index.html",
    "pyscript.toml",
    "py/ui/main.py",
    "py/clutch/protocol.py",
    "worker/engine_worker.js",
    "static/app.css",
    "static/app.js",
    "static/strings.json",
    "static/icon.svg",
    "static/icon.png",
    "static/font.woff2",
    "static/vendor/pyodide/pyodide.mjs",
    "static/vendor/pyodide/pyodide.asm.wasm",
    "static/vendor/pyodide/python_stdlib.zip",
    "static/vendor/python/jinja2/LICENSE.txt",
    "static/models/tiny.gguf",
}


@pytest.fixture
def root(tmp_path):
    return make_repository(tmp_path / "root")


def test_the_site_is_complete_and_holds_nothing_else(root, tmp_path):
    target = tmp_path / "site"
    n_files = write_site(root, target)
    written = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert written == EXPECTED | {"engine.zip", "_headers"}
    assert n_files == len(written)
    assert all((target / name).read_bytes() == FILES[name] for name in EXPECTED)
    assert (target / "engine.zip").read_bytes() == EngineArchive(root).data()


def test_the_headers_file_names_the_policies(root, tmp_path):
    every, worker = headers_file().split("/worker/*\n")
    assert every.startswith("/*\n  Cross-Origin-Opener-Policy: same-origin\n")
    assert f"  Content-Security-Policy: {PAGE_CSP}\n" in every
    assert worker == f"  Content-Security-Policy: {WORKER_CSP}\n"


def test_a_folder_with_something_in_it_is_left_alone(root, tmp_path):
    target = tmp_path / "site"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(BuildError, match="not an empty folder"):
        write_site(root, target)
    assert [path.name for path in target.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["py/clutch/protocol.py", "index.html", "pyscript.toml"])
def test_a_missing_file_is_named(root, tmp_path, name):
    (root / name).unlink()
    with pytest.raises(BuildError, match=name):
        write_site(root, tmp_path / "sites" / "new")
    assert not list(tmp_path.glob("sites/*"))


def test_an_empty_folder_is_as_good_as_none(root, tmp_path):
    (tmp_path / "site").mkdir()
    write_site(root, tmp_path / "site")
    assert (tmp_path / "site" / "index.html").is_file()


def test_a_folder_that_cannot_be_made_is_named(root, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="Cannot write"):
        write_site(root, tmp_path / "file" / "site")


def test_the_page_may_only_name_what_is_on_the_list(root, tmp_path):
    (root / "pyscript.toml").write_text('[files]\n"./serve.py" = "./serve.py"\n')
    with pytest.raises(BuildError, match=r"serve\.py"):
        write_site(root, tmp_path / "site")
