"""What the benchmark is asked to do, checked before anything starts."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PHASES = ("decode", "prefill")
# On the software adapter a step takes most of a second and a prompt of 2,000 tokens minutes.
_SAMPLES, _SOFTWARE_SAMPLES = 200, 10
_PROMPT_TOKENS, _SOFTWARE_PROMPT_TOKENS = 2000, 200


@dataclass(frozen=True)
class Job:
    """One run of the benchmark.

    Args:
        phases: of `PHASES`, in the order they run.
        n_samples: of each measure.
        n_prompt_tokens: of the prompt whose prefill is stopped.
        seed: of the random moments.
        timeout_s: for the load, and for each wait inside the page.
    """

    phases: tuple[str, ...]
    n_samples: int
    n_prompt_tokens: int
    seed: int
    model: Path | None
    chromium: str | None
    chromium_flags: tuple[str, ...]
    wants_real_gpu: bool
    prints_json: bool
    timeout_s: float


def parse(arguments: Sequence[str]) -> Job:
    """Return the job.

    Raises:
        SystemExit: an argument is wrong; argparse says which.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.model and not options.model.is_file():
        parser.error(f"--model: {options.model} is not a file.")
    is_real = options.real_gpu
    return Job(
        phases=tuple(dict.fromkeys(options.phase)) or PHASES,
        n_samples=options.samples or (_SAMPLES if is_real else _SOFTWARE_SAMPLES),
        n_prompt_tokens=options.prompt_tokens or (_PROMPT_TOKENS if is_real else _SOFTWARE_PROMPT_TOKENS),
        seed=options.seed,
        model=options.model,
        chromium=options.chromium,
        chromium_flags=tuple(options.chromium_flag),
        wants_real_gpu=is_real,
        prints_json=options.json,
        timeout_s=options.timeout,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests bench", allow_abbrev=False)
    benches = parser.add_subparsers(required=True, metavar="BENCH")
    bench = benches.add_parser(
        "lifecycle", help="how fast Stop, Continue and Reset are, in every phase", allow_abbrev=False
    )
    bench.add_argument("--samples", type=_positive, metavar="N", help="default: 200; on the software adapter 10")
    bench.add_argument("--prompt-tokens", type=_positive, metavar="N", help="default: 2000; there 200")
    bench.add_argument("--phase", action="append", default=[], choices=PHASES, help="repeatable; default: all")
    bench.add_argument("--seed", type=int, default=0, metavar="N", help="of the random moments; default: 0")
    bench.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file")
    bench.add_argument("--chromium", metavar="PATH", help="the browser to use")
    bench.add_argument("--chromium-flag", action="append", default=[], metavar="FLAG", help="=--x; repeatable")
    bench.add_argument("--real-gpu", action="store_true", help="not the software adapter")
    bench.add_argument("--json", action="store_true", help="one JSON object and nothing else")
    bench.add_argument("--timeout", type=float, default=300.0, metavar="S", help="for the load and each wait")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1.")
    return value
