"""The only code that touches the worker: numbers requests and epochs, posts messages, sorts what comes back.

A session is meant by its number; each has an epoch and a stop mark of its own.
"""

import js
from pyscript import ffi, window

from clutch import protocol
from clutch.errors import ClutchError, WorkerCrashed
from ui import dom
from ui.epochs import is_past

_WORKER_URL = "worker/engine_worker.js"
_WORD_BYTES = 4
# The engine's only session when it starts.
_FIRST = 0


class EngineClient:
    """Speaks `clutch/protocol.py` with one worker at a time.

    Args:
        on_event: called with (event dict or None, JSON text). None stands for an event that belongs to the past of
            its session, before a Reset: nothing of it may reach the page's state. A worker that ends, or speaks
            nonsense, becomes an `error` event like any other.
    """

    def __init__(self, on_event):
        self._on_event = on_event
        self._last_request_id = 0
        # Counts the workers, so that nothing a terminated one had on its way is heard.
        self._n_workers = 0
        self._worker = None
        self._mark = None
        self._epochs = [0] * protocol.MAX_SESSIONS
        # The number of the last `load`; it belongs to no epoch.
        self.load_id = 0

    def start(self, sessions):
        """Make a worker; ends the one before. The engine is empty, and has these sessions.

        Returns:
            the number of the session that the engine has besides, and is about to close, or None.
        """
        self.close()
        number = self._n_workers
        self._epochs = [0] * protocol.MAX_SESSIONS
        n_bytes = protocol.MAX_SESSIONS * _WORD_BYTES
        buffer = js.SharedArrayBuffer.new(n_bytes) if window.crossOriginIsolated else None
        self._mark = js.Int32Array.new(buffer) if window.crossOriginIsolated else None
        # The first was made by static/early.js, before this Python was there.
        self._worker = window.clutchEarly.take() or js.Worker.new(_WORKER_URL, ffi.to_js({"type": "module"}))
        dom.listen(self._worker, "message", lambda event: self._receive(number, event))
        dom.listen(self._worker, "error", lambda event: self._crash(number, dom.text_of(event, "message")))
        dom.listen(self._worker, "messageerror", lambda _event: self._crash(number, "A message could not be read."))
        self._worker.postMessage(ffi.to_js({"mark": buffer}))
        for session in sessions:
            if session != _FIRST:
                self.open_session(session)
        if _FIRST in sessions:
            return None
        self.close_session(_FIRST, is_stopping=False)
        return _FIRST

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
        """Ask for the model at `url`, relative to the page; `fields` are more of the message's."""
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

    def generate(self, session, **fields):
        """Ask for an answer; return its request_id.

        Args:
            session: whose.
            fields: `params` and one of `messages` and `prompt`, maybe more; see the protocol.
        """
        return self._request("generate", session, fields)

    def continue_answer(self, session, **fields):
        """Ask for more of the last answer; return the request_id.

        Args:
            session: whose.
            fields: maybe `params`, which replace some of the answer's.
        """
        return self._request("continue", session, fields)

    def measure(self, session, tokens):
        """Ask what a step of so many tokens costs; return the request_id."""
        return self._request("benchmark", session, {"tokens": tokens})

    def stop(self, session):
        """Stop all requests of the session so far, and loads."""
        self._raise_mark(session)
        self._post("stop", request_id=self._last_request_id, session=session)

    def reset(self, session, is_stopping):
        """Make the engine forget the conversation; events from before are dropped from here on.

        Args:
            session: whose.
            is_stopping: also stop all so far at once. Not while a model is on its way: it is still wanted.
        """
        if is_stopping:
            self.stop(session)
        self._post("reset", session=session, epoch=self._next_epoch(session))

    def open_session(self, session):
        """Open an empty session."""
        self._post("open_session", session=session, epoch=self._next_epoch(session))

    def fork(self, session, source):
        """Open a session that begins as a copy of `source`."""
        self._post("open_session", session=session, epoch=self._next_epoch(session), source=source)

    def close_session(self, session, is_stopping):
        """Close a session, whatever it does; `closed` follows.

        Args:
            session: which; not the last.
            is_stopping: as for `reset`.
        """
        if is_stopping:
            self._raise_mark(session)
        self._post("close_session", session=session)

    def save(self, session, name, page, with_kv):
        """Keep a session in this browser, with what the page wants back; `saved` follows."""
        self._post("save_session", session=session, name=name, page=page, with_kv=with_kv)

    def restore(self, session, name):
        """Put a saved session into one that nothing runs in; `restored` follows, or an error and all is as before.

        The epoch stays: there is nothing on its way that could be taken for the new.
        """
        self._post("restore_session", session=session, epoch=self._epochs[session], name=name)

    def list_saved(self):
        """Ask what is kept in this browser; `saved` follows."""
        self._post("list_saved")

    def delete_saved(self, name):
        """Throw away what is kept under `name`; `saved` follows."""
        self._post("delete_saved", name=name)

    def _request(self, kind, session, fields):
        number = self._number()
        self._post(kind, request_id=number, session=session, epoch=self._epochs[session], **fields)
        return number

    def _raise_mark(self, session):
        # Gets through while the worker is too busy to read messages.
        if self._mark is not None:
            js.Atomics.store(self._mark, session, self._last_request_id)

    def _next_epoch(self, session):
        self._epochs[session] += 1
        return self._epochs[session]

    def _post(self, kind, **fields):
        # After a crash there is nobody to hear it; a new worker is told all that matters when it starts.
        if self._worker is None:
            return
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
        self._on_event(None if is_past(event, self._epochs, self.load_id) else event, text)

    def _crash(self, number, detail, cause="crashed"):
        if number != self._n_workers:
            return
        self.close()
        self._report(WorkerCrashed(detail, cause=cause))

    def _report(self, error):
        event = dict(error.to_wire(), kind="error", request_id=None, session=None, epoch=0)
        fields = {name: event[name] for name in protocol.EVENTS["error"]}
        self._on_event(event, protocol.encode(protocol.EVENTS, "error", **fields))
