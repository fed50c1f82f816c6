"""What the driver is asked to do, checked before anything starts."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTINGS = {
    "max_tokens": int,
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "seed": int,
}


@dataclass(frozen=True)
class Job:
    """One run of the driver.

    `settings` are the page's URL parameters. `prompt` is typed for each answer, except that the first one of
    given messages finds its prompt in the box already.
    """

    prompt: str
    settings: dict[str, Any]
    stop_after: int
    continues_after: bool
    resets_after: bool
    n_answers: int
    model: Path | None
    chromium: str | None
    chromium_flags: tuple[str, ...]
    wants_real_gpu: bool
    prints_json: bool
    screenshot: Path | None
    timeout_ms: float


def parse(arguments: Sequence[str]) -> Job:
    """Return the job.

    Raises:
        SystemExit: an argument is wrong; argparse says which.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    settings = {name: getattr(options, name) for name in [*SETTINGS, "top_logits"]}
    settings = {name: value for name, value in settings.items() if value is not None}
    prompt = options.prompt
    if options.messages:
        messages = _messages(parser, options.messages)
        if options.raw:
            parser.error("--raw takes a --prompt; --messages always go through the chat template.")
        if options.then_reset and options.repeat > 1 and len(messages) > 1:
            parser.error("--then-reset empties the conversation, so --repeat would not ask the same again.")
        settings["messages"] = messages
        prompt = messages[-1]["content"]
    if options.raw:
        settings["raw"] = 1
    if options.model and not options.model.is_file():
        parser.error(f"--model: {options.model} is not a file.")
    return Job(
        prompt=prompt,
        settings=settings,
        stop_after=options.stop_after,
        continues_after=options.then_continue,
        resets_after=options.then_reset,
        n_answers=options.repeat,
        model=options.model,
        chromium=options.chromium,
        chromium_flags=tuple(options.chromium_flag),
        wants_real_gpu=options.real_gpu,
        prints_json=options.json,
        screenshot=options.screenshot,
        timeout_ms=options.timeout * 1000,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests drive", description=__doc__, allow_abbrev=False)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--prompt", metavar="TEXT", help="what to type into the prompt box")
    source.add_argument("--messages", metavar="FILE", type=Path, help="a JSON list of {role, content}")
    parser.add_argument("--raw", action="store_true", help="no chat template: the prompt as it is")
    for name, kind in SETTINGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, type=kind, help="default: the page's")
    parser.add_argument("--top-logits", type=int, metavar="N", help="report the N best logits of the first step")
    parser.add_argument("--stop-after", type=int, default=0, metavar="N", help="click Stop at N tokens")
    parser.add_argument("--then-continue", action="store_true", help="click Continue after each; one more answer")
    parser.add_argument("--then-reset", action="store_true", help="click Reset after each answer")
    parser.add_argument("--repeat", type=int, default=1, metavar="K", help="ask K times on the same page")
    parser.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file")
    parser.add_argument("--chromium", metavar="PATH", help="the browser to use")
    parser.add_argument("--chromium-flag", action="append", default=[], metavar="FLAG", help="=--x; repeatable")
    parser.add_argument("--real-gpu", action="store_true", help="not the software adapter")
    parser.add_argument("--json", action="store_true", help="one JSON object a line and nothing else")
    parser.add_argument("--screenshot", type=Path, metavar="FILE", help="a PNG of the page at the end")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="S", help="for the load and each answer")
    return parser


def _messages(parser: argparse.ArgumentParser, path: Path) -> list[dict[str, str]]:
    try:
        messages = json.loads(path.read_text(encoding="utf-8"))
        is_sound = messages[-1]["role"] == "user" and all(isinstance(m["content"], str) for m in messages)
    except (OSError, ValueError, LookupError, TypeError) as error:
        parser.error(f"--messages: {path} is not a JSON list of {{role, content}}: {error}")
    if not is_sound:
        parser.error(f"--messages: the last message in {path} must be the user's.")
    return list(messages)
