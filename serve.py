#!/usr/bin/env python3
"""Run Clutch: fetch its pinned parts once, serve the page on this machine, open the browser.

    python3 serve.py                     the page, with the small model that comes with it
    python3 serve.py --model FILE.gguf   the same, with a model of your own
    python3 serve.py build DIR           a static site for any host that can set headers

Needs Python 3.11 or later and nothing else. The work is in py/serving/.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (said in words, before an import fails in riddles)
    sys.exit("Clutch needs Python 3.11 or later; this is " + sys.version.split()[0] + ".")

import argparse
import threading
import webbrowser
from functools import partial
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "py"))

from serving import build, guard, install, server  # noqa: E402
from serving.errors import ServingError  # noqa: E402

N_PORTS = 20


def main() -> int:
    """Do what the command line says; return the exit status."""
    arguments = parse_arguments()
    try:
        install.install(ROOT / "static", report=partial(print, end="", flush=True))
        if arguments.command == "build":
            n_files = build.write_site(ROOT, arguments.folder)
            print(f"{n_files} files in {arguments.folder}; serve them with the headers that _headers lists.")
        else:
            serve(arguments)
    except ServingError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    return 0


def parse_arguments() -> argparse.Namespace:
    """Return the checked command line."""
    parser = argparse.ArgumentParser(description="Serve Clutch on this machine and open the browser.")
    parser.add_argument("--port", type=int, default=8000, help="first port to try (default 8000)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--model", type=Path, action="append", default=[], metavar="FILE", help="a GGUF of yours")
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")
    commands = parser.add_subparsers(dest="command", metavar="build DIR")
    site = commands.add_parser("build", help="write a static site into a new folder")
    site.add_argument("folder", type=Path, metavar="DIR")
    return parser.parse_args()


def serve(arguments: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    if not guard.is_loopback(arguments.host):
        print(
            f"Warning: whoever reaches {arguments.host} can read the page and the models;"
            " and browsers offer WebGPU there only over HTTPS.",
            file=sys.stderr,
        )
    for model in arguments.model:
        if not model.is_file():
            print(f"Warning: there is no file {model} (yet).", file=sys.stderr)
    models = [model.absolute() for model in arguments.model]
    with server.start(ROOT, arguments.port, models, host=arguments.host, n_ports=N_PORTS) as running:
        url = running.url + (f"?model=models/{quote(models[0].name)}" if models else "")
        print(f"Clutch is at {url}", flush=True)
        if not arguments.no_open:
            # In a thread: some browsers, text ones above all, return only when they are closed.
            threading.Thread(target=open_browser, args=(url,), daemon=True).start()
        running.wait()


def open_browser(url: str) -> None:
    """Open `url` if there is a browser."""
    try:
        webbrowser.open(url)
    except (webbrowser.Error, OSError):
        print("No browser could be opened; open the address yourself.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
