"""Requests that a careful server must refuse; each is sent byte for byte and nothing secret may come back."""

import os
import socket
import threading
import time

import pytest

from serving import connection, server
from serving.headers import security_headers
from tests.support.serve_helpers import ask, exchange, make_repository, parse_answer


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    root = make_repository(folder / "root")
    (folder / "outside.js").write_text("secret = 8")
    (root / "static" / "leak.js").symlink_to(folder / "outside.js")
    (root / "static" / "inner.js").symlink_to(root / "serve.py")
    (root / "static" / "folder").symlink_to(folder, target_is_directory=True)
    (root / "static" / "loop.js").symlink_to(root / "static" / "loop.js")
    (root / "static" / "directory.js").mkdir()
    os.mkfifo(root / "static" / "pipe.js")
    with server.start(root) as running:
        yield running


def raw(running, request: str):
    return parse_answer(exchange(running.port, request.replace("PORT", str(running.port)).encode("latin-1")))


HIDDEN_404 = [
    "/serve.py",
    "/pyproject.toml",
    "/.git/config",
    "/.gitignore",
    "/py/serving/server.py",
    "/py/clutch/.hidden.py",
    "/py/ui/notes.txt",
    "/py/ui/",
    "/py/ui",
    "/py/UI/main.py",
    "/static/",
    "/static",
    "/static/app.js.map",
    "/static/page.html",
    "/static/vendor/.stamp.json",
    "/static/vendor/python/jinja2/__init__.py",
    "/static/app.js~",
    "/static/APPJS~1.JS",
    "/static/app.js.",
    "/static/app.js%20",
    "/static/app.js;x",
    "/wgsl/deep/er.wgsl",
    "/wgsl/embed.wgsl.py",
    "/worker/engine_worker.js.gz",
    "/static/leak.js",
    "/static/inner.js",
    "/static/folder/outside.js",
    "/static/loop.js",
    "/static/directory.js",
    "/static/pipe.js",
    "/static/" + "a" * 4000 + ".js",
    "/static/" + "d/" * 2000 + "x.js",
    "/models/tiny.gguf",
    "/models/",
    "/engine.zip.py",
    "/INDEX.HTML",
    "/tests/conftest.py",
]


@pytest.mark.parametrize("target", [target for target in HIDDEN_404 if not target.endswith("/")])
def test_what_is_not_on_the_list_is_not_there(running, target):
    answer = ask(running.port, target)
    assert answer.status == 404
    assert b"secret" not in answer.body


MALFORMED_400 = [
    *[target for target in HIDDEN_404 if target.endswith("/")],
    "/../serve.py",
    "/py/../serve.py",
    "/static/../serve.py",
    "/static/./app.js",
    "/static/%2e%2e/serve.py",
    "/static/%2E%2E%2Fserve.py",
    "/static/..%2fserve.py",
    "/static/%252e%252e/serve.py",
    "/static/..%5c..%5cserve.py",
    "/static/..\\serve.py",
    "/static/%c0%ae%c0%ae/serve.py",
    "/static/%ff.js",
    "/static/app.js%00.css",
    "/static/app.js::$DATA",
    "/static/app.js%3a%3a$DATA",
    "/C:/windows/win.ini",
    "//etc/passwd",
    "//127.0.0.1/index.html",
    "/static//app.js",
    "/static/app%0d%0aX-Injected:%20yes.js",
    "/static/app%.js",
    "/static/app%zz.js",
    "/static%2fapp.js",
    "/static/app.js#part",
]


@pytest.mark.parametrize("target", MALFORMED_400)
def test_paths_that_could_mean_two_things_are_malformed(running, target):
    answer = ask(running.port, target)
    assert answer.status == 400
    assert b"secret" not in answer.body
    assert "x-injected" not in answer.fields


@pytest.mark.parametrize("target", ["/?", "/??", "/?x=../../serve.py", "/index.html?%00", "/?a?b#".rstrip("#")])
def test_a_query_changes_nothing(running, target):
    assert ask(running.port, target).body == ask(running.port, "/").body


MALFORMED_HEADS = [
    "GET /\r\n\r\n",
    "GET / HTTP/0.9\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "GET / HTTP/2.0\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET  / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "GET index.html HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: evil.example\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : 127.0.0.1:PORT\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n folded: yes\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\nX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX: a\0b\r\n\r\n",
    "GET /\xff HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\r\n\r\n",
]


@pytest.mark.parametrize("head", MALFORMED_HEADS)
def test_malformed_heads_are_refused_and_the_connection_closed(running, head):
    answer = raw(running, head)
    assert answer.status == 400
    assert answer.fields["connection"] == "close"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil:PORT",
        "[::2]:PORT",
        "",
    ],
)
def test_foreign_hosts_are_misdirected(running, host):
    assert raw(running, f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT", "[::1]:PORT"])
def test_loopback_hosts_are_ours(running, host):
    assert raw(running, f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get"])
def test_other_methods_are_refused(running, method):
    answer = ask(running.port, "/", method=method)
    assert answer.status == 405
    assert answer.fields["allow"] == "GET, HEAD"


def test_a_body_is_refused_and_not_taken_for_the_next_request(running):
    smuggled = "GET /static/app.js HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n"
    for field in (f"Content-Length: {len(smuggled)}", "Transfer-Encoding: chunked"):
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n{field}\r\n\r\n"
        received = exchange(running.port, (head + smuggled).replace("PORT", str(running.port)).encode())
        assert received.startswith(b"HTTP/1.1 413 ")
        assert received.count(b"HTTP/1.1 ") == 1


def test_a_client_may_finish_sending_what_is_refused(running, monkeypatch):
    monkeypatch.setattr(connection, "_LINGER_S", 30)
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as client:
        client.sendall(head.encode())
        received = b"".join(iter(lambda: client.recv(65536), b""))
        for _ in range(100):
            client.sendall(b"x")
            time.sleep(0.001)
    assert received.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_other_sites_may_not_load_parts(running, site):
    assert ask(running.port, "/static/app.js", sec_fetch_site=site, sec_fetch_mode="no-cors").status == 403
    frame = ask(running.port, "/", sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="iframe")
    assert frame.status == 403


def test_a_person_may_follow_a_link_from_another_site(running):
    visit = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert ask(running.port, "/", **visit).status == 200


@pytest.mark.parametrize("head", ["GET / HTTP/1.1\r\nX: " + "a" * 20_000, "GET /" + "a" * 20_000, "a" * 20_000])
def test_a_head_is_bounded(running, head):
    answer = raw(running, head + "\r\n\r\n")
    assert answer.status == 431
    assert answer.fields["connection"] == "close"


def test_a_slow_head_ends_with_408_however_it_trickles(running, monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT_S", 0.3)
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as client:
        gone = threading.Event()

        def trickle():
            while not gone.wait(0.05):
                try:
                    client.sendall(b"G")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        received = client.recv(65536)
        gone.set()
        thread.join()
    assert received.startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed_silently(running, monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT_S", 0.1)
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as client:
        assert client.recv(1) == b""


def test_clients_that_vanish_leave_no_trace(running, capfd):
    for sent in (
        b"",
        b"GET /",
        f"GET /engine.zip HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n\r\n".encode(),
    ):
        client = socket.create_connection(("127.0.0.1", running.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close by reset
        client.sendall(sent)
        client.close()
    assert ask(running.port, "/").status == 200
    assert capfd.readouterr() == ("", "")


def test_connections_are_bounded(running, monkeypatch):
    monkeypatch.setattr(server, "_SLOT_WAIT_S", 0.05)
    deadline = time.monotonic() + 10
    held = []
    try:
        for _ in range(server.MAX_CONNECTIONS):
            held.append(socket.create_connection(("127.0.0.1", running.port)))
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as refused:
            assert refused.recv(1) == b""
    finally:
        for client in held:
            client.close()
    while time.monotonic() < deadline and not exchange(running.port, b"x\r\n\r\n"):
        continue
    assert ask(running.port, "/").status == 200


@pytest.mark.parametrize("target", ["/", "/worker/engine_worker.js", "/nothing", "//", "/worker/none.js"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_every_answer_carries_the_policy(running, target, method):
    answer = ask(running.port, target, method=method)
    parsed = method != "POST" and target != "//"
    expected = security_headers(target if parsed else "/")
    assert {name: answer.fields.get(name.lower()) for name in expected} == expected
    assert "access-control-allow-origin" not in answer.fields
    assert "server" not in answer.fields
