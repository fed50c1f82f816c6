"""What a benchmark is asked to do, checked before anything starts."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PHASES = ("decode", "prefill")
PARTS = ("ttft", "utilisation", "capacity", "throughput", "quality")
MOST_SESSIONS = 8
# On the software adapter a step takes most of a second and a prompt of 2,000 tokens minutes.
_SAMPLES, _SOFTWARE_SAMPLES = 200, 10
_PROMPT_TOKENS, _SOFTWARE_PROMPT_TOKENS = 2000, 200
# The longest and its answer need more than the page's own context.
_SPEED_PROMPTS, _SOFTWARE_SPEED_PROMPTS = (32, 512, 2000, 8000), (16, 64)
_SPEED_CONTEXT = 8192


@dataclass(frozen=True)
class Job:
    """One run of a benchmark.

    Args:
        n_samples: of each measure.
        seed: of everything that is drawn.
        timeout_s: for the load, and for each wait inside the page.
        command: the command line, for the report.
    """

    n_samples: int
    seed: int
    model: Path | None
    chromium: str | None
    chromium_flags: tuple[str, ...]
    wants_real_gpu: bool
    prints_json: bool
    timeout_s: float
    command: str


@dataclass(frozen=True)
class LifecycleJob(Job):
    """How fast Stop, Continue and Reset are.

    Args:
        phases: of `PHASES`, in the order they run.
        n_prompt_tokens: of the prompt whose prefill is stopped.
    """

    phases: tuple[str, ...]
    n_prompt_tokens: int


@dataclass(frozen=True)
class KvJob(Job):
    """What the KV pool brings.

    Args:
        parts: of `PARTS`, in the order of that list.
        n_history_tokens: that a second turn, a fork and another session have in common with a first question.
        n_answer_tokens: that each session writes for its speed, and of each golden prompt.
        workload_scale: 1.0, or less to try a slow machine: the workload's lengths are multiplied by it.
    """

    parts: tuple[str, ...]
    n_history_tokens: int
    n_answer_tokens: int
    workload_scale: float


@dataclass(frozen=True)
class SpeedJob(Job):
    """How fast a model reads and writes, as the page's own benchmark finds it.

    Args:
        prompt_tokens: lengths of prompts.
        n_answer_tokens: that each prompt is answered with.
        n_chunk_tokens: of the step of a prompt that is measured kernel by kernel.
        context_length: to load the model with; None for the page's own choice.
        bandwidth_gb_per_s: of the card, where neither browser nor driver name it.
        n_loads: of the page as a visitor has it, before the one that measures.
    """

    prompt_tokens: tuple[int, ...]
    n_answer_tokens: int
    n_chunk_tokens: int
    context_length: int | None
    bandwidth_gb_per_s: int | None
    n_loads: int


def parse(arguments: Sequence[str]) -> LifecycleJob | KvJob | SpeedJob:
    """Return the job.

    Raises:
        SystemExit: an argument is wrong; argparse says which.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.model and not options.model.is_file():
        parser.error(f"--model: {options.model} is not a file.")
    common: dict[str, Any] = {
        "seed": options.seed,
        "model": options.model,
        "chromium": options.chromium,
        "chromium_flags": tuple(options.chromium_flag),
        "wants_real_gpu": options.real_gpu,
        "prints_json": options.json,
        "timeout_s": options.timeout,
        "command": " ".join(["python3 -m tests bench", *arguments]),
    }
    if options.bench == "kv":
        return KvJob(
            **common,
            n_samples=options.samples,
            parts=options.parts,
            n_history_tokens=options.history_tokens,
            n_answer_tokens=options.answer_tokens,
            workload_scale=options.workload_scale,
        )
    is_real = options.real_gpu
    if options.bench == "speed":
        context_length = options.context_length or (_SPEED_CONTEXT if is_real else None)
        return SpeedJob(
            **common,
            n_samples=options.samples or (3 if is_real else 1),
            prompt_tokens=options.prompt_tokens or (_SPEED_PROMPTS if is_real else _SOFTWARE_SPEED_PROMPTS),
            n_answer_tokens=options.answer_tokens or (128 if is_real else 8),
            n_chunk_tokens=options.chunk_tokens or (512 if is_real else 32),
            context_length=context_length,
            bandwidth_gb_per_s=options.bandwidth,
            n_loads=(2 if is_real else 0) if options.loads is None else options.loads,
        )
    return LifecycleJob(
        **common,
        n_samples=options.samples or (_SAMPLES if is_real else _SOFTWARE_SAMPLES),
        phases=tuple(dict.fromkeys(options.phase)) or PHASES,
        n_prompt_tokens=options.prompt_tokens or (_PROMPT_TOKENS if is_real else _SOFTWARE_PROMPT_TOKENS),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests bench", allow_abbrev=False)
    benches = parser.add_subparsers(required=True, metavar="BENCH", dest="bench")
    bench = benches.add_parser(
        "lifecycle", help="how fast Stop, Continue and Reset are, in every phase", allow_abbrev=False
    )
    bench.add_argument("--samples", type=_positive, metavar="N", help="default: 200; on the software adapter 10")
    bench.add_argument("--prompt-tokens", type=_positive, metavar="N", help="default: 2000; there 200")
    bench.add_argument("--phase", action="append", default=[], choices=PHASES, help="repeatable; default: all")
    _add_common(bench)
    bench = benches.add_parser("kv", help="what the KV pool saves, holds and costs", allow_abbrev=False)
    bench.add_argument("--samples", type=_positive, default=5, metavar="N", help="of each time; default: 5")
    bench.add_argument("--parts", type=_parts, default=PARTS, metavar="LIST", help=f"of {','.join(PARTS)}; all")
    bench.add_argument("--history-tokens", type=_positive, default=512, metavar="N", help="default: 512")
    bench.add_argument("--answer-tokens", type=_positive, default=64, metavar="N", help="default: 64")
    bench.add_argument("--workload-scale", type=_share, default=1.0, metavar="X", help="shorter sessions; default: 1")
    _add_common(bench)
    bench = benches.add_parser("speed", help="how fast a model reads and writes, and why", allow_abbrev=False)
    bench.add_argument("--samples", type=_positive, metavar="N", help="of each length; default: 3; there 1")
    bench.add_argument("--prompt-tokens", type=_counts, metavar="LIST", help="default: 32,512,2000,8000; there 16,64")
    bench.add_argument("--answer-tokens", type=_positive, metavar="N", help="default: 128; there 8")
    bench.add_argument("--chunk-tokens", type=_positive, metavar="N", help="of a prefill step; default: 512; there 32")
    bench.add_argument("--context-length", type=_positive, metavar="N", help="default: 8192; there the page's own")
    bench.add_argument("--bandwidth", type=_positive, metavar="GB/S", help="of the card, where nobody names it")
    bench.add_argument("--loads", type=_natural, metavar="N", help="of the page beforehand; default: 2; there 0")
    _add_common(bench)
    return parser


def _add_common(bench: argparse.ArgumentParser) -> None:
    bench.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn; default: 0")
    bench.add_argument("--model", type=Path, metavar="FILE", help="a GGUF file")
    bench.add_argument("--chromium", metavar="PATH", help="the browser to use")
    bench.add_argument("--chromium-flag", action="append", default=[], metavar="FLAG", help="=--x; repeatable")
    bench.add_argument("--real-gpu", action="store_true", help="not the software adapter")
    bench.add_argument("--json", action="store_true", help="one JSON object and nothing else")
    bench.add_argument("--timeout", type=float, default=300.0, metavar="S", help="for the load and each wait")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1.")
    return value


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is less than 0.")
    return value


def _counts(text: str) -> tuple[int, ...]:
    return tuple(_positive(part) for part in text.split(","))


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{value} is not above 0 and at most 1.")
    return value


def _parts(text: str) -> tuple[str, ...]:
    wanted = text.split(",")
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown {', '.join(map(repr, unknown))}; known: {', '.join(PARTS)}.")
    return tuple(part for part in PARTS if part in wanted)
