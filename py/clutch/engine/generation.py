"""One generation, top to bottom: match the prefix, prefill, decode, finish."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clutch.engine.answer import Answer
from clutch.engine.pipeline import Pipeline
from clutch.engine.session import Session
from clutch.engine.stats import Stats
from clutch.engine.stopping import Stopping
from clutch.model.runner import Runner
from clutch.sampling.params import SamplingParams

ABORT = "abort"


@dataclass(frozen=True)
class Request:
    """What to generate.

    Args:
        prompt_ids: the whole prompt, 1 <= len < context length.
        params: how to sample.
        stopping: when to end.
        top_logits: how many of the first token's largest logits to report; 0 for none.
        is_stopped: whether Stop was pressed; asked before every chunk and every decode submit.
        on_prefill: called with (tokens read, tokens to read) after each chunk.
    """

    prompt_ids: Sequence[int]
    params: SamplingParams
    stopping: Stopping
    top_logits: int
    is_stopped: Callable[[], bool]
    on_prefill: Callable[[int, int], None]


@dataclass
class Outcome:
    """How it ended: a finish reason, and the largest logits when they were asked for."""

    reason: str = ABORT
    top_logits: list[tuple[int, float]] | None = None


async def generate(request: Request, session: Session, runner: Runner, answer: Answer, stats: Stats) -> Outcome:
    """Run `request` in `session`; tokens go to `answer` as they come.

    Whatever happens, the session holds exactly the committed tokens afterwards: those whose step has been read.

    Raises:
        PoolExhausted: the pool has too few pages; nothing was computed.
        DeviceLost, DeviceTimeout: the GPU failed.
    """
    outcome = Outcome()
    prompt_ids, stopping = request.prompt_ids, request.stopping
    end = min(len(prompt_ids) + request.params.max_tokens, stopping.context_length)
    session.rewind(session.match(prompt_ids))
    try:
        # Every page the answer can need, now: nothing is allocated between tokens.
        first_entry = session.table.reserve(end)
        runner.write_table(first_entry, session.table.pages[first_entry:])
        runner.begin(request.params)

        first = await _prefill(request, session, runner)
        if first is None:
            return outcome
        if request.top_logits:
            outcome.top_logits = _largest(await runner.logits(), request.top_logits)

        token_id = first
        pipeline = Pipeline(runner, len(prompt_ids), end)
        try:
            # Asked once a token: nothing waits between here and the submits in `next`.
            while not request.is_stopped():
                answer.push(token_id)
                stats.token()
                n_generated = len(answer.token_ids)
                reason = stopping.check(token_id, n_generated, len(prompt_ids) + n_generated)
                if reason is not None:
                    outcome.reason = reason
                    break
                result = await pipeline.next()
                if result is None:
                    break
                session.commit([token_id])
                token_id = result.token_id
        finally:
            await pipeline.drain()
        return outcome
    finally:
        session.rewind(len(session.token_ids))


async def _prefill(request: Request, session: Session, runner: Runner) -> int | None:
    """Read the prompt behind what the session holds; return the first token, or None when stopped."""
    prompt_ids = request.prompt_ids
    start = len(session.token_ids)
    for at in range(start, len(prompt_ids), runner.prefill_tokens):
        if request.is_stopped():
            return None
        chunk = prompt_ids[at : at + runner.prefill_tokens]
        is_last = at + len(chunk) == len(prompt_ids)
        result = await runner.prefill(chunk, at, is_last=is_last)
        session.commit(chunk)
        request.on_prefill(at + len(chunk) - start, len(prompt_ids) - start)
        if is_last:
            return result.token_id
    raise AssertionError("the last token of a prompt is never cached")


def _largest(logits: "memoryview[float]", count: int) -> list[tuple[int, float]]:
    return [(i, logits[i]) for i in heapq.nlargest(count, range(len(logits)), key=logits.__getitem__)]
