"""The only code that touches the worker: numbers requests and epochs, posts messages, sorts what comes back."""

import js
from pyscript import ffi, window

from clutch import protocol
from clutch.errors import ClutchError, WorkerCrashed
from ui import dom

_WORKER_URL = "worker/engine_worker.js"


class EngineClient:
    """Speaks `clutch/protocol.py` with one worker at a time.

    Args:
        on_event: called with (event dict or None, JSON text). None stands for an event that belongs to a Reset's
            past: nothing of it may reach the page's state. A worker that ends, or speaks nonsense, becomes an
            `error` event like any other.
    """

    def __init__(self, on_event):
        self._on_event = on_event
        self._last_request_id = 0
        # Counts the workers, so that nothing a terminated one had on its way is heard.
        self._n_workers = 0
        self._worker = None
        self._mark = None
        self.epoch = 0
        # The number of the last `load`; it belongs to no epoch.
        self.load_id = 0

    def start(self):
        """Make a worker; ends the one before. The engine is empty and at epoch 0 again."""
        self.close()
        number = self._n_workers
        self.epoch = 0
        buffer = js.SharedArrayBuffer.new(4) if window.crossOriginIsolated else None
        self._mark = js.Int32Array.new(buffer) if window.crossOriginIsolated else None
        self._worker = js.Worker.new(_WORKER_URL, ffi.to_js({"type": "module"}))
        dom.listen(self._worker, "message", lambda event: self._receive(number, event))
        dom.listen(self._worker, "error", lambda event: self._crash(number, dom.text_of(event, "message")))
        dom.listen(self._worker, "messageerror", lambda _event: self._crash(number, "A message could not be read."))
        self._worker.postMessage(ffi.to_js({"mark": buffer}))

    def close(self):
        """End the worker, so that the GPU is free at once; nothing of it is heard any more."""
        self._n_workers += 1
        if self._worker is not None:
            self._worker.terminate()
            self._worker = None

    def hang(self):
        """End a worker that does not answer, and report it."""
        self._crash(self._n_workers, "The worker hung: it said nothing for too long.", "hung")

    def load(self, url, **fields):
        """Ask for the model at `url`, relative to the page; `fields` may hold a `context_length`."""
        self.load_id = self._number()
        self._post("load", request_id=self.load_id, url=url, **fields)

    def load_file(self, file, **fields):
        """Ask for the model in a File; `fields` as for `load`."""
        self.load_id = self._number()
        text = protocol.encode(protocol.REQUESTS, "load", request_id=self.load_id, **fields)
        self._worker.postMessage(ffi.to_js({"json": text, "file": file}))

    def unload(self):
        """Give the model up."""
        self._post("unload")

    def generate(self, **fields):
        """Ask for an answer; return its request_id.

        Args:
            fields: `params` and one of `messages` and `prompt`, maybe `top_logits`; see the protocol.
        """
        number = self._number()
        self._post("generate", request_id=number, epoch=self.epoch, **fields)
        return number

    def continue_answer(self, **fields):
        """Ask for more of the last answer; return the request_id.

        Args:
            fields: maybe `params`, which replace some of the answer's.
        """
        number = self._number()
        self._post("continue", request_id=number, epoch=self.epoch, **fields)
        return number

    def stop(self):
        """Stop all requests and loads so far. The mark gets through while the worker is too busy to read messages."""
        if self._mark is not None:
            js.Atomics.store(self._mark, 0, self._last_request_id)
        self._post("stop", request_id=self._last_request_id)

    def reset(self, is_stopping):
        """Make the engine forget the conversation; events from before are dropped from here on.

        Args:
            is_stopping: also stop all so far at once. Not while a model is on its way: it is still wanted.
        """
        if is_stopping:
            self.stop()
        self.epoch += 1
        self._post("reset", epoch=self.epoch)

    def _post(self, kind, **fields):
        self._worker.postMessage(ffi.to_js({"json": protocol.encode(protocol.REQUESTS, kind, **fields)}))

    def _number(self):
        self._last_request_id += 1
        return self._last_request_id

    def _receive(self, number, message):
        if number != self._n_workers:
            return
        text = dom.text_of(message.data, "json")
        try:
            event = protocol.decode(protocol.EVENTS, text)
        except ClutchError as error:
            self._report(error)
            return
        self._on_event(None if self._is_past(event) else event, text)

    def _is_past(self, event):
        # The GPU is gone for every epoch.
        if event.get("epoch", self.epoch) >= self.epoch or event.get("state") == "lost":
            return False
        number = event.get("request_id")
        return number != self.load_id and (event["kind"] not in ("error", "notice") or number is not None)

    def _crash(self, number, detail, cause="crashed"):
        if number != self._n_workers:
            return
        self.close()
        self._report(WorkerCrashed(detail, cause=cause))

    def _report(self, error):
        event = dict(error.to_wire(), kind="error", request_id=None, epoch=self.epoch)
        fields = {name: event[name] for name in protocol.EVENTS["error"]}
        self._on_event(event, protocol.encode(protocol.EVENTS, "error", **fields))
