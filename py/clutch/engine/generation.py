"""One generation, top to bottom: match the prefix, prefill, decode, finish.

An answer that already has tokens goes on: what was stopped, or lost with the GPU, is continued by the same lines.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clutch.engine.answer import Answer
from clutch.engine.chunking import ChunkSizer
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
    """How it ended: a finish reason, the largest logits when they were asked for, and steps that are still in flight.

    Those are discarded already; `drain` waits for them, and must be called before the next request.
    """

    reason: str = ABORT
    top_logits: list[tuple[int, float]] | None = None
    pipeline: Pipeline | None = None

    async def drain(self) -> None:
        """Wait until the GPU is idle."""
        if self.pipeline is not None:
            await self.pipeline.drain()


async def generate(
    request: Request, session: Session, runner: Runner, chunks: ChunkSizer, answer: Answer, stats: Stats
) -> Outcome:
    """Run `request` in `session`; tokens go to `answer` as they come, behind those that it has.

    Whatever happens, the session holds exactly the committed tokens afterwards: those whose step has been read.

    Raises:
        PoolExhausted: the pool has too few pages; nothing was computed.
        DeviceLost, DeviceTimeout: the GPU failed.
    """
    outcome = Outcome()
    stopping = request.stopping
    sequence = [*request.prompt_ids, *answer.token_ids]
    end = min(len(request.prompt_ids) + stopping.max_tokens, stopping.context_length)
    session.rewind(session.match(sequence))
    try:
        # Every page the answer can need, now: nothing is allocated between tokens.
        first_entry = session.table.reserve(end)
        runner.write_table(first_entry, session.table.pages[first_entry:])
        runner.begin(request.params)

        first = await _prefill(request, sequence, session, runner, chunks, stats)
        if first is None:
            return outcome
        if request.top_logits:
            outcome.top_logits = _largest(await runner.logits(), request.top_logits)

        token_id = first
        pipeline = outcome.pipeline = Pipeline(runner, len(sequence), end)
        try:
            # Asked once a token: nothing waits between here and the submits in `next`.
            while not request.is_stopped():
                answer.push(token_id)
                stats.token()
                n_generated = len(answer.token_ids)
                reason = stopping.check(token_id, n_generated, len(request.prompt_ids) + n_generated)
                if reason is not None:
                    outcome.reason = reason
                    break
                result = await pipeline.next()
                if result is None:
                    break
                session.commit([token_id])
                token_id = result.token_id
        except BaseException:
            await pipeline.drain()
            raise
        if outcome.reason == ABORT:
            answer.cut()
        return outcome
    finally:
        session.rewind(min(len(session.token_ids), len(request.prompt_ids) + len(answer.token_ids)))


async def _prefill(
    request: Request, sequence: Sequence[int], session: Session, runner: Runner, chunks: ChunkSizer, stats: Stats
) -> int | None:
    """Read what the session does not hold of `sequence`; return the next token, or None when stopped."""
    start = at = len(session.token_ids)
    if len(sequence) - start == 1:
        # Continuing: the very step that was discarded, by the same kernels, so the same bits.
        if request.is_stopped():
            return None
        runner.write_token(sequence[start], start)
        result = await runner.decode(start)
        session.commit(sequence[start:])
        return result.token_id
    while not request.is_stopped():
        chunk = sequence[at : at + chunks.tokens]
        is_last = at + len(chunk) == len(sequence)
        before_ms = stats.now_ms()
        result = await runner.prefill(chunk, at, is_last=is_last)
        chunks.observe(len(chunk), stats.now_ms() - before_ms)
        session.commit(chunk)
        at += len(chunk)
        request.on_prefill(at - start, len(sequence) - start)
        if is_last:
            return result.token_id
    return None


def _largest(logits: "memoryview[float]", count: int) -> list[tuple[int, float]]:
    return [(i, logits[i]) for i in heapq.nlargest(count, range(len(logits)), key=logits.__getitem__)]
