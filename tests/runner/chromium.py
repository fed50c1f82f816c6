"""Find Chromium or Chrome, or install it where that is ours to do.

The full browser is needed: the small headless shell is built without WebGPU.
"""

import os
import shutil
import subprocess
import sys

from tests.runner.steps import prepare, stop

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
USUAL_PATHS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
)
ADVICE = """No Chromium or Chrome found. Install one, then run this again:
    Debian:   sudo apt-get install chromium
    Fedora:   sudo dnf install chromium
    macOS:    brew install --cask google-chrome
    Windows:  winget install Google.Chrome
or name one: python3 -m tests --chromium PATH  (or CLUTCH_CHROMIUM=PATH)."""


def find(given: str | None = None) -> str | None:
    """Return the path of a browser that starts, or None.

    Args:
        given: a path or a program's name that alone will do; else `CLUTCH_CHROMIUM`, else the usual places.
    """
    given = given or os.environ.get("CLUTCH_CHROMIUM")
    candidates = [given] if given else [*NAMES, *USUAL_PATHS]
    paths = (shutil.which(candidate) for candidate in candidates)
    return next((path for path in paths if path and _starts(path)), None)


def ensure(given: str | None = None) -> str:
    """Return the path of a browser that starts; as root on Debian installs it first.

    Raises:
        SystemExit: there is none; the message names what to install.
    """
    path = find(given)
    if path is None and (given or os.environ.get("CLUTCH_CHROMIUM")):
        stop(f"{given or os.environ['CLUTCH_CHROMIUM']} is not a browser that starts.")
    if path is None and _may_install():
        prepare("look for newer package lists", ["apt-get", "update", "-qq"])
        prepare(
            "install Chromium",
            ["apt-get", "install", "-y", "-qq", "chromium"],
            {"DEBIAN_FRONTEND": "noninteractive"},
        )
        path = find()
    if path is None:
        stop(ADVICE)
    return path


def _may_install() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get") is not None


def _starts(path: str) -> bool:
    # Ubuntu's chromium-browser may only ask for a snap. On Windows --version opens a window.
    if os.name == "nt":
        return True
    try:
        started = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return started.returncode == 0
