"""One case of the fault matrix, under way in a worker: sets the scene, arms the fault, and says how it ended."""

import json

from tests.support.fault_cells import NO_ENGINE, NOTHING, Act, Cell, Phase, Rule, acting, after_deltas, at
from tests.support.worker_bench import MODEL, QUESTION, Message, WorkerBench

_ACTS = {"stop": "stop", "reset": "reset", "lost": "lose", "oom": "oom", "never": "never"}
_MESSAGES = ("stop", "reset", "unload")


class FaultCase:
    """Runs into its fault as it is made.

    Args:
        bench: with a loaded model, idle; the scene `boot` replaces the worker.
        phase, fault, cell: of the matrix.
    """

    def __init__(self, bench: WorkerBench, phase: Phase, fault: str, cell: Cell) -> None:
        self._bench = bench
        self._cell = cell
        acts = cell.acts or ({"do": _ACTS[fault]},)
        self._names = [act["do"] for act in acts]
        self._rule = acting(cell.rule or phase.rule, acts)
        self._number: int | None = None
        # The first event of the case.
        self.since = 0
        getattr(self, f"_{cell.scene or phase.scene}")()

    def wait(self) -> None:
        """Wait until it has ended as it should, or until it is too late."""
        cell = self._cell
        conditions = [f'events.filter(e => e.kind === "notice").length === {cell.n_notices}']
        if cell.ending != NOTHING:
            conditions.append('events.some(e => ["loaded", "finished", "error"].includes(e.kind))')
        # A Stop that stops nothing says nothing.
        if cell.state != NO_ENGINE and not (self._names == ["stop"] and self._number is None):
            state = 'events.filter(e => e.kind === "state").at(-1)'
            conditions.append(f'{state}?.state === "{cell.state}" && {state}.epoch === {self._bench.epoch}')
        self._bench.wait(self.since, " && ".join(conditions))

    @property
    def endings(self) -> list[str]:
        """How the request ended, in the words of the matrix."""
        events = self._bench.events(self.since)
        own = [e for e in events if e["kind"] in ("finished", "error") and e["request_id"] in (self._number, None)]
        if own or self._number is None:
            return [e.get("reason") or e["code"] for e in own]
        return [e["kind"] for e in events if e["kind"] == "loaded"][:1]

    # Scenes -----------------------------------------------------------------------------------------------------

    def _boot(self) -> None:
        bench = self._bench
        self._number = bench.number()
        epoch = 1 if "reset" in self._names else 0
        bench.epoch = epoch
        bench.start(self._filled(self._rule))
        bench.epoch = epoch
        bench.send("load", request_id=self._number, url=MODEL)

    def _load(self) -> None:
        self._bench.unload()
        self._request("load", url=MODEL)

    def _generate(self) -> None:
        self._request("generate", epoch=self._bench.epoch, **QUESTION)

    def _resume(self) -> None:
        bench, since = self._bench, self._bench.n_events
        stop = self._message("stop", request_id=bench.request_id + 1)
        bench.arm(acting(after_deltas(at("submit")), (stop,)))
        bench.ask()
        bench.wait(since, 'events.some(e => e.reason === "abort") && events.at(-1).state === "ready"')
        self._request("continue", epoch=bench.epoch)

    def _idle(self) -> None:
        self._arm()

    def _reset(self) -> None:
        self._bench.epoch += 1
        epoch = self._bench.epoch
        self._arm()
        self._bench.send("reset", epoch=epoch, wipe=True)

    def _unload(self) -> None:
        self._arm()
        self._bench.send("unload")

    def _request(self, kind: str, **fields: object) -> None:
        self._number = self._bench.number()
        self._arm()
        self._bench.send(kind, request_id=self._number, **fields)

    def _arm(self) -> None:
        self.since = self._bench.n_events
        self._bench.epoch += "reset" in self._names
        self._bench.arm(self._filled(self._rule))

    # Rules ------------------------------------------------------------------------------------------------------

    def _filled(self, rule: Rule) -> Rule:
        """Return `rule` with the messages that the page would send now."""
        acts = [self._now(act) for act in rule.get("acts", [])]
        then = {"then": self._filled(rule["then"])} if "then" in rule else {}
        return {**rule, **then, "acts": acts}

    def _now(self, act: Act) -> Act:
        kind = act["do"]
        fields: Message = {"stop": {"request_id": self._bench.request_id}, "reset": {"epoch": self._bench.epoch}}
        return self._message(kind, **fields.get(kind, {})) if kind in _MESSAGES else act

    @staticmethod
    def _message(kind: str, **fields: object) -> Act:
        return {"do": "message", "json": json.dumps({"kind": kind, **fields})}
