"""Break the product on purpose, one place at a time, and see that a test goes red: `python3 -m tests.mutants [word]`.

Not part of CI. Run it with the Python of the test environment, after a change of the tests; a mutant that survives
means that a promise is not tested. Every mutant is made in a copy of the tree. The kernels' mutants need a browser.
A word runs only the mutants whose file or text holds it.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What the tests named here need; not the vendored parts, not the models.
COPIED = ("py", "tests", "wgsl", "worker", "static/strings", "index.html", "pyproject.toml", "serve.py")


@dataclass(frozen=True)
class Mutant:
    """`old`, which stands exactly once in `file`, becomes `new`; then one of `tests` must fail."""

    file: str
    old: str
    new: str
    tests: str

    def apply(self, root: Path) -> str:
        """Break the file below `root` and return its sound text."""
        path = root / self.file
        sound = path.read_text("utf-8")
        count = sound.count(self.old)
        if count != 1:
            sys.exit(f"{self.file}: {self.old!r} stands {count} times; the list of mutants is out of date")
        path.write_text(sound.replace(self.old, self.new), "utf-8")
        return sound


ENGINE, KV, GPU, MODEL = (f"py/clutch/{folder}" for folder in ("engine", "kv", "gpu", "model"))
EVERYWHERE = "tests/fault/test_everywhere.py"
LOAD_FAILS = f"{EVERYWHERE}::test_loading_fails_at_any_call"
SAME_TURN = "tests/fault/test_same_turn.py"
# A mutant may wait for ever, which is noticed as well: after so many times what the tests took without it, and a bit.
PATIENCE, PATIENCE_S = 5, 20

# (file, tests, changes from old to new)
GROUPS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    # The stop checks, the watermark, and what a reset or unload stops.
    (
        f"{ENGINE}/generation.py",
        f"{EVERYWHERE}::test_stop_at_any_call",
        (("            while not request.is_stopped():", "            while True:"),),
    ),
    (
        f"{ENGINE}/generation.py",
        "tests/fault/test_prefill_stop.py",
        (("    while not request.is_stopped():\n        chunk", "    while True:\n        chunk"),),
    ),
    (
        f"{ENGINE}/generation.py",
        SAME_TURN,
        (("        if request.is_stopped():", "        if False:"),),
    ),
    (
        f"{ENGINE}/control.py",
        "tests/unit/test_control.py",
        (
            ("max(self._mark, request_id)", "request_id"),
            ("self._mark >= request_id", "self._mark == request_id"),
            ("read() >= request_id", "read() > request_id"),
            ("return self._is_cancelled or ", "return "),
            ("        self._is_cancelled = True\n        self.interrupt()", "        self._is_cancelled = True"),
            ("if self.is_stopped and self._waiting is not None", "if self._waiting is not None"),
            ("            self.interrupt()\n            result: T", "            result: T"),
            ("        except asyncio.CancelledError:", "        except MemoryError:"),
        ),
    ),
    (
        f"{ENGINE}/engine.py",
        SAME_TURN,
        (
            ("self._last_request_id = max(self._last_request_id, request_id)", "pass"),
            ("        self._tasks.add(task)", "        self._tasks = self._tasks or {task}"),
            ("        while self._tasks:", "        if self._tasks:"),
            (
                "        if self.state is not EngineState.READY or placement is not self._placement:",
                "        if False:",
            ),
        ),
    ),
    (
        f"{ENGINE}/engine.py",
        "tests/fault/test_requests.py",
        (
            (
                "            self._cancellation.cancel()\n        await self.idle()",
                "            pass\n        await self.idle()",
            ),
        ),
    ),
    (
        f"{ENGINE}/engine.py",
        f"{EVERYWHERE}::test_reset_at_any_call",
        (
            (
                "raise_to(self._last_request_id)\n            await self.idle()\n        if self.state is not",
                "raise_to(0)\n            await self.idle()\n        if self.state is not",
            ),
            ("            await self.idle()\n        if self.state is not", "        if self.state is not"),
            ("        self._conversation.close()\n", ""),
        ),
    ),
    (
        f"{ENGINE}/engine.py",
        f"{EVERYWHERE}::test_stop_at_any_call_of_a_load",
        (
            ("        self._cancellation.interrupt()\n\n    async def _load", "\n    async def _load"),
            ("            reply.abort()\n        finally:\n            self._settle()", "            reply.abort()"),
        ),
    ),
    (
        f"{ENGINE}/engine.py",
        f"{EVERYWHERE}::test_a_gpu_on_its_way_back_is_given_up",
        (
            ("            self._cancellation.cancel()\n        self._cancellation.interrupt()", "            pass"),
            ("            pass\n        finally:\n            self._settle()", "            pass"),
        ),
    ),
    # Every other `finally` and `with`, what it does, and what follows a loss.
    (
        f"{ENGINE}/engine.py",
        f"{EVERYWHERE}::test_the_device_fails_at_any_call_and_is_fetched_back",
        (
            ("        self._drop_placement()\n        if not self._recoveries", "        if not self._recoveries"),
            ("        if was_lost:", "        if False:"),
            (
                "await outcome.drain()\n        finally:\n            self._settle()",
                "await outcome.drain()\n        finally:\n            pass",
            ),
        ),
    ),
    (
        f"{ENGINE}/engine.py",
        "tests/fault/test_wipe.py",
        (
            (
                "        finally:\n            self._lifecycle.to(EngineState.READY)",
                "        finally:\n            pass",
            ),
        ),
    ),
    (
        f"{ENGINE}/generation.py",
        f"{EVERYWHERE}::test_stop_at_any_call",
        (
            (
                "session.rewind(min(len(session.token_ids), len(request.prompt_ids) + len(answer.token_ids)))",
                "pass",
            ),
        ),
    ),
    (
        f"{ENGINE}/generation.py",
        "tests/fault/test_after_stop.py",
        (("            answer.cut()", "            pass"),),
    ),
    (
        f"{ENGINE}/engine.py",
        "tests/fault/test_after_stop.py",
        (("            await outcome.drain()", "            pass"),),
    ),
    (
        f"{ENGINE}/generation.py",
        f"{EVERYWHERE}::test_the_device_fails_at_any_call_and_is_fetched_back",
        (("            await pipeline.drain()\n            raise", "            raise"),),
    ),
    (
        f"{ENGINE}/conversation.py",
        f"{EVERYWHERE}::test_stop_at_any_call",
        (("            turn.output_ids = list(answer.token_ids)", "            pass"),),
    ),
    (f"{MODEL}/upload.py", LOAD_FAILS, (("            stream.close()", "            pass"),)),
    (
        f"{MODEL}/upload.py",
        LOAD_FAILS,
        (("with ledger.scope(self._device) as scope:", "for scope in (ledger.scope(self._device),):"),),
    ),
    (f"{ENGINE}/loading.py", LOAD_FAILS, (("        on_failure.callback(device.destroy)\n", ""),)),
    (
        f"{MODEL}/loader.py",
        LOAD_FAILS,
        (("on_failure.enter_context(ledger.scope(device))", "ledger.scope(device)"),),
    ),
    # How often a GPU is fetched back, how far a continued answer goes, how long a chunk is.
    (
        f"{ENGINE}/recovery.py",
        "tests/unit/test_recovery.py",
        (
            ("now - self._begun[0] < WITHIN_SECONDS", "now - self._begun[0] <= WITHIN_SECONDS"),
            (
                "            return False\n        self._begun",
                "            self._begun.append(now)\n            return False\n        self._begun",
            ),
        ),
    ),
    (
        f"{ENGINE}/turn.py",
        "tests/unit/test_turn.py",
        (
            ('        if self.reason == "stop":', "        if False:"),
            ("if n_positions >= context_length", "if n_positions > context_length"),
            ("if len(self.output_ids) >= self.max_tokens", "if len(self.output_ids) > self.max_tokens"),
            ("max(self.max_tokens, params.max_tokens)", "params.max_tokens"),
        ),
    ),
    (
        f"{ENGINE}/chunking.py",
        "tests/unit/test_chunking.py",
        (
            ("min(fitting, 2 * tiles)", "fitting"),
            ("max(1, min", "max(0, min"),
            ("-(-n_tokens // PREFILL", "(n_tokens // PREFILL"),
        ),
    ),
    # The comparisons of the self-test.
    (
        f"{MODEL}/self_test.py",
        "tests/fault/test_self_test.py",
        (
            ("scale if 0 < scale < math.inf else math.nan", "scale"),
            ("result.token_id, likeliest, 0.0", "likeliest, likeliest, 0.0"),
            ("prefilled[token_id], logits[token_id]", "logits[token_id], logits[token_id]"),
            ("logits[token_id], _dot(row, output, hidden)", "logits[token_id], logits[token_id]"),
            ("if not abs(found - expected) <= tolerance", "if abs(found - expected) > tolerance"),
            ("_TOLERANCE = 2e-3", "_TOLERANCE = 2e-2"),
        ),
    ),
    # The pool, the table, the session.
    (
        f"{KV}/pool.py",
        "tests/unit/test_pool.py",
        (
            ("if count > len(self._free)", "if count >= len(self._free)"),
            ("self._references[page] == 0", "self._references[page] <= 1"),
        ),
    ),
    (
        f"{KV}/table.py",
        "tests/unit/test_block_table.py",
        (
            ("missing = -(-n_positions // PAGE_POSITIONS)", "missing = n_positions // PAGE_POSITIONS"),
            ("while len(self.pages) > needed", "while len(self.pages) > needed + 1"),
        ),
    ),
    (
        f"{ENGINE}/session.py",
        "tests/unit/test_session.py",
        (
            ("len(prompt_ids) - 1)", "len(prompt_ids))"),
            ("        del self.token_ids[length:]\n", ""),
        ),
    ),
    # Steps in flight, the FFI budget, the ledger.
    (
        f"{ENGINE}/pipeline.py",
        "tests/unit/test_pipeline.py",
        (
            ("self._position < self._end", "self._position <= self._end"),
            ("< self._runner.steps_in_flight", "<= self._runner.steps_in_flight"),
            ("            with suppress(DeviceLost, DeviceTimeout):", "            if True:"),
        ),
    ),
    (
        f"{ENGINE}/generation.py",
        "tests/unit/test_ffi_budget.py",
        (("                stats.token()", "                stats.token()\n                request.is_stopped()"),),
    ),
    (
        f"{GPU}/ledger.py",
        "tests/unit/test_ledger.py",
        (
            ("            buffer.destroy()", "            pass"),
            ("self._ledger.bytes -= buffer.size_bytes", "self._ledger.bytes -= 16"),
        ),
    ),
    # Text, messages, memory, weights.
    (
        f"{ENGINE}/answer.py",
        "tests/unit/test_answer.py",
        (("self._next_frame = now + FRAME_SECONDS", "self._next_frame = now"),),
    ),
    (
        "py/clutch/protocol.py",
        "tests/unit/test_protocol.py",
        ((" or (isinstance(value, bool) and bool not in types)", ""),),
    ),
    (
        f"{MODEL}/memory.py",
        "tests/unit/test_memory_plan.py",
        (("        if size > limit:", "        if size > 2 * limit:"),),
    ),
    (
        f"{MODEL}/weights.py",
        "tests/unit/test_weights_plan.py",
        (('ffn_up.weight", 2, 1)', 'ffn_up.weight", 2, 0)'),),
    ),
    # Kernels: an index beside the right one.
    (
        "wgsl/rms_norm.wgsl",
        "tests/kernels/test_norm.py",
        (
            ("h[row + i] =", "h[row + i + 1] ="),
            ("gain[i];", "gain[i + 1];"),
        ),
    ),
    (
        "wgsl/attention_merge.wgsl",
        "tests/kernels/test_attention.py",
        (
            ("norm += weight * norms[first + s].y", "norm += weight * norms[first].y"),
            ("* N_HEADS + head) * SPLITS", "* N_HEADS + head) * splits"),
        ),
    ),
    (
        "wgsl/embed.wgsl",
        "tests/kernels/test_matrices.py",
        (
            ("tokens[step.position + id.y]", "tokens[id.y]"),
            ("x[out + i] = weights[i]", "x[out + i] = weights[i ^ 1u]"),
        ),
    ),
)
MUTANTS = [Mutant(file, old, new, tests) for file, tests, changes in GROUPS for old, new in changes]


def copy_tree(to: Path) -> None:
    """Copy what the tests need."""
    for name in COPIED:
        source, target = ROOT / name, to / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def goes_red(root: Path, tests: str, patience_s: float | None = None) -> bool:
    """Run `tests` in `root`, at most for `patience_s`; anything but passed and failed tests ends the command."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", tests]
    try:
        finished = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=patience_s)
    except subprocess.TimeoutExpired:
        return True
    if finished.returncode not in (0, 1):
        sys.exit(finished.stdout + finished.stderr)
    return finished.returncode == 1


def main(word: str) -> int:
    """Run the mutants that hold `word` and return how many survived."""
    chosen = [mutant for mutant in MUTANTS if word in f"{mutant.file} {mutant.old} {mutant.tests}"]
    n_survived = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        patience_s = {}
        for tests in sorted({mutant.tests for mutant in chosen}):
            began = time.monotonic()
            if goes_red(root, tests):
                sys.exit(f"{tests} is red without any mutant")
            patience_s[tests] = PATIENCE * (time.monotonic() - began) + PATIENCE_S
        for mutant in chosen:
            sound = mutant.apply(root)
            is_killed = goes_red(root, mutant.tests, patience_s[mutant.tests])
            (root / mutant.file).write_text(sound, "utf-8")
            n_survived += not is_killed
            print(f"{'killed  ' if is_killed else 'SURVIVED'} {mutant.file}: {mutant.old.strip()!r}", flush=True)
    print(f"{len(chosen) - n_survived} of {len(chosen)} mutants were killed")
    return n_survived


if __name__ == "__main__":
    sys.exit(min(main(" ".join(sys.argv[1:])), 1))
