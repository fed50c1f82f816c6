"""The HTTP server: one thread for each connection, a bounded number of them, on loopback by default.

It stands on `socketserver` and not on `http.server`, whose parser collapses "//", takes HTTP/0.9, and
bounds neither the length of a head nor the time for it.
"""

import os
import socket
import socketserver
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from serving.connection import Connection
from serving.errors import AddressError
from serving.guard import Guard
from serving.headers import HeaderPolicy, security_headers
from serving.site import Site

MAX_CONNECTIONS = 32
_SLOT_WAIT_S = 1.0
_POLL_S = 0.05
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # on Windows the option lets two servers share a port
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], site: Site, headers: HeaderPolicy) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, socketserver.BaseRequestHandler)
        self._site = site
        self._headers = headers
        self._guard = Guard(address[0], self.server_address[1])
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._clients: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._slots.acquire(timeout=_SLOT_WAIT_S):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        self._clients.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._clients.discard(request)
            self._slots.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a head must not wait for its body's ACK
        Connection(request, self._site, self._guard, self._headers).serve()

    def hang_up(self) -> None:
        """End every open connection, idle ones included."""
        for client in list(self._clients):
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class RunningServer:
    """A server in a background thread; leaving the `with` block stops it and closes its connections."""

    def __init__(self, server: _Server, host: str) -> None:
        self.port: int = server.server_address[1]
        shown = _WILDCARDS.get(host, f"[{host}]" if ":" in host else host)
        self.url = f"http://{shown}:{self.port}/"
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Block until the server is closed from elsewhere, or Ctrl-C."""
        self._thread.join()

    def close(self) -> None:
        """Stop accepting, end open connections, free the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start(
    root: Path,
    port: int = 0,
    models: Sequence[Path] = (),
    *,
    host: str = "127.0.0.1",
    n_ports: int = 1,
    headers: HeaderPolicy = security_headers,
) -> RunningServer:
    """Serve the repository at `root` from a background thread.

    Args:
        root: the folder that holds index.html.
        port: the first port to try; 0 lets the system choose.
        models: files to serve as /models/<name>, wherever they lie.
        host: the address to listen on.
        n_ports: how many ports, counting up, to try while they are taken.
        headers: the policy headers of each path; tests leave some out.

    Raises:
        AddressError: no port is free, the address is not this machine's, or two models share a name.
    """
    site = Site(root, models)
    failure: OSError | OverflowError | None = None
    for candidate in range(port, port + n_ports):
        try:
            return RunningServer(_Server((host, candidate), site, headers), host)
        except (OSError, OverflowError) as error:
            failure = error
    ports = f"port {port}" if n_ports == 1 else f"ports {port} to {port + n_ports - 1}"
    raise AddressError(f"Cannot listen on {host}, {ports}: {failure}", hint="Choose another with --port.")
