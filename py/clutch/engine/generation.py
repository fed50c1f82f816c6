"""One generation, top to bottom: match the prefix, prefill, decode, finish.

An answer that already has tokens goes on: what was stopped, or lost with the GPU, is continued by the same lines.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clutch.engine.answer import Answer
from clutch.engine.chunking import ChunkSizer
from clutch.engine.lane import Lane
from clutch.engine.scheduler import Scheduler
from clutch.engine.stats import Stats
from clutch.engine.stopping import Stopping
from clutch.kv.sequence import Sequence as KVSequence
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
        reuse: whether keys and values of before may be used.
        is_stopped: whether Stop was pressed; asked before every chunk and every decode submit.
        on_prefill: called with (tokens read, tokens to read) after each chunk.
    """

    prompt_ids: Sequence[int]
    params: SamplingParams
    stopping: Stopping
    top_logits: int
    reuse: bool
    is_stopped: Callable[[], bool]
    on_prefill: Callable[[int, int], None]


@dataclass
class Outcome:
    """How it ended: a finish reason, the largest logits when they were asked for, and the lane that it wrote in.

    Steps of the lane may be in flight still. They are discarded already; `Scheduler.drain` waits for them, and must be
    called before the session's next request.
    """

    reason: str = ABORT
    top_logits: list[tuple[int, float]] | None = None
    lane: Lane | None = None


async def generate(
    request: Request, sequence: KVSequence, scheduler: Scheduler, chunks: ChunkSizer, answer: Answer, stats: Stats
) -> Outcome:
    """Run `request` in `sequence`; tokens go to `answer` as they come, behind those that it has.

    Whatever happens, the sequence holds exactly the committed tokens afterwards: those whose step has been read.

    Raises:
        PoolExhausted: the pool has too few pages to go on.
        DeviceLost, DeviceTimeout: the GPU failed.
    """
    outcome = Outcome()
    stopping = request.stopping
    token_ids = [*request.prompt_ids, *answer.token_ids]
    end = min(len(request.prompt_ids) + stopping.max_tokens, stopping.context_length)
    with sequence.pool.busy(sequence):
        sequence.begin(token_ids, reuse=request.reuse)
        try:
            scheduler.runner.begin(sequence.slot, request.params)
            first = await _prefill(request, token_ids, sequence, scheduler, chunks, stats, outcome)
            if first is None:
                return outcome
            token_id = first
            lane = outcome.lane = scheduler.join(sequence, len(token_ids), end, request.is_stopped)
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
                    result = await scheduler.next(lane)
                    if result is None:
                        break
                    sequence.commit([token_id])
                    token_id = result.token_id
                lane.end()
            except BaseException:
                await scheduler.drain(lane)
                raise
            if outcome.reason == ABORT:
                answer.cut()
            return outcome
        finally:
            sequence.rewind(min(sequence.length, len(request.prompt_ids) + len(answer.token_ids)))


async def _prefill(
    request: Request,
    token_ids: Sequence[int],
    sequence: KVSequence,
    scheduler: Scheduler,
    chunks: ChunkSizer,
    stats: Stats,
    outcome: Outcome,
) -> int | None:
    """Read what the sequence does not hold of `token_ids`; return the next token, or None when stopped."""
    start = sequence.length
    while not request.is_stopped():
        async with scheduler.turn:
            if request.is_stopped():
                break
            if request.reuse:
                # Before every chunk: another session may have read the same prefix meanwhile.
                sequence.extend(token_ids)
            at = sequence.length
            chunk = token_ids[at : at + chunks.tokens]
            is_last = at + len(chunk) == len(token_ids)
            before_ms = stats.now_ms()
            if is_last and len(chunk) == 1:
                # Continuing: the very step that was discarded, by the same kernels, so the same bits.
                result = await scheduler.repeat(sequence, chunk[0])
            else:
                result = await scheduler.prefill(sequence, chunk, is_last=is_last)
            chunks.observe(len(chunk), stats.now_ms() - before_ms)
            sequence.commit(chunk)
            if is_last and request.top_logits:
                outcome.top_logits = _largest(await scheduler.runner.logits(), request.top_logits)
        request.on_prefill(sequence.length - start, len(token_ids) - start)
        if is_last:
            return result.token_id
    return None


def _largest(logits: "memoryview[float]", count: int) -> list[tuple[int, float]]:
    return [(i, logits[i]) for i in heapq.nlargest(count, range(len(logits)), key=logits.__getitem__)]
