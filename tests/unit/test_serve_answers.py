"""What a well-behaved client gets: types, lengths, validators, ranges, models, ports."""

import http.client
import socket

import pytest

from serving import guard, server
from serving.errors import AddressError
from serving.headers import ISOLATION, PAGE_CSP, WORKER_CSP, unisolated_headers
from tests.support.serve_helpers import FILES, PAGE, ask, exchange, make_repository

MODEL = FILES["static/models/tiny.gguf"]
MODEL_TARGET = "/static/models/tiny.gguf"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_repository(tmp_path_factory.mktemp("answers"))


@pytest.fixture(scope="module")
def running(root):
    with server.start(root) as running:
        yield running


@pytest.mark.parametrize(
    ("target", "mime"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/index.html", "text/html; charset=utf-8"),
        ("/pyscript.toml", "application/toml"),
        ("/py/ui/main.py", "text/x-python; charset=utf-8"),
        ("/py/clutch/kv/pool.py", "text/x-python; charset=utf-8"),
        ("/wgsl/embed.wgsl", "text/wgsl; charset=utf-8"),
        ("/worker/engine_worker.js", "text/javascript; charset=utf-8"),
        ("/static/app.css", "text/css; charset=utf-8"),
        ("/static/strings.json", "application/json"),
        ("/static/icon.svg", "image/svg+xml"),
        ("/static/icon.png", "image/png"),
        ("/static/font.woff2", "font/woff2"),
        ("/static/vendor/pyodide/pyodide.mjs", "text/javascript; charset=utf-8"),
        ("/static/vendor/pyodide/pyodide.asm.wasm", "application/wasm"),
        ("/static/vendor/pyodide/python_stdlib.zip", "application/zip"),
        ("/static/vendor/python/jinja2/LICENSE.txt", "text/plain; charset=utf-8"),
        (MODEL_TARGET, "application/octet-stream"),
        ("/static/%61pp.css", "text/css; charset=utf-8"),
    ],
)
def test_types_and_lengths(running, target, mime):
    answer = ask(running.port, target)
    name = {"/": "index.html", "/static/%61pp.css": "static/app.css"}.get(target, target[1:])
    assert (answer.status, answer.fields["content-type"]) == (200, mime)
    assert answer.body == FILES[name]
    assert answer.fields["content-length"] == str(len(FILES[name]))
    assert answer.fields["cache-control"] == "no-cache"
    assert answer.fields["accept-ranges"] == "bytes"


def test_head_is_get_without_the_body(running):
    get, head = ask(running.port, "/"), ask(running.port, "/", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    dateless = [{**answer.fields, "date": ""} for answer in (get, head)]
    assert dateless[0] == dateless[1]
    missing = ask(running.port, "/none", method="HEAD")
    assert (missing.status, missing.body) == (404, b"")
    assert int(missing.fields["content-length"]) > 0


def test_a_known_tag_is_answered_without_the_body(running):
    tag = ask(running.port, "/").fields["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = ask(running.port, "/", if_none_match=known)
        assert (answer.status, answer.body, answer.fields["etag"]) == (304, b"", tag)
    assert ask(running.port, "/", if_none_match='"other"').body == PAGE


def test_the_tag_changes_with_the_file(root, running):
    path = root / "static" / "changing.js"
    path.write_bytes(b"1")
    before = ask(running.port, "/static/changing.js").fields["etag"]
    path.write_bytes(b"22")
    after = ask(running.port, "/static/changing.js", if_none_match=before)
    assert (after.status, after.body) == (200, b"22")


@pytest.mark.parametrize(
    ("value", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-1023", 0, 1024),
        ("bytes=100-199", 100, 200),
        ("bytes=1000-", 1000, 1024),
        ("bytes=1000-99999", 1000, 1024),
        ("bytes=-24", 1000, 1024),
        ("bytes=-99999", 0, 1024),
        ("bytes= 5-6 ", 5, 7),
    ],
)
def test_one_range(running, value, start, stop):
    answer = ask(running.port, MODEL_TARGET, range=value)
    assert (answer.status, answer.body) == (206, MODEL[start:stop])
    assert answer.fields["content-range"] == f"bytes {start}-{stop - 1}/{len(MODEL)}"
    assert answer.fields["content-length"] == str(stop - start)


@pytest.mark.parametrize("value", ["bytes=1024-", "bytes=5000-6000", "bytes=-0"])
def test_a_range_beyond_the_end(running, value):
    answer = ask(running.port, MODEL_TARGET, range=value)
    assert (answer.status, answer.fields["content-range"]) == (416, f"bytes */{len(MODEL)}")


@pytest.mark.parametrize(
    "value",
    [
        "bytes=5-4",
        "bytes=-",
        "bytes=a-b",
        "bytes=0-0,2-2",
        "items=0-1",
        "bytes",
        "bytes=+1-2",
        "bytes=٣-٤".encode().decode("latin-1"),
        "bytes=0-" + "9" * 50,
        "bytes=--5",
    ],
)
def test_a_range_that_is_none_means_the_whole(running, value):
    answer = ask(running.port, MODEL_TARGET, range=value)
    assert (answer.status, answer.body) == (200, MODEL)


def test_a_range_of_a_changed_file_means_the_whole(running):
    tag = ask(running.port, MODEL_TARGET).fields["etag"]
    assert ask(running.port, MODEL_TARGET, range="bytes=0-9", if_range=tag).status == 206
    assert ask(running.port, MODEL_TARGET, range="bytes=0-9", if_range='"old"').status == 200
    assert ask(running.port, MODEL_TARGET, range="bytes=0-9", method="HEAD").status == 200


def test_one_connection_serves_many_requests(running):
    client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    statuses = []
    for target in ("/", "/none", "/static/app.js", "/static/..", "/"):
        client.request("GET", target)
        response = client.getresponse()
        response.read()
        statuses.append((response.status, response.will_close))
    client.close()
    assert statuses == [(200, False), (404, False), (200, False), (400, False), (200, False)]


def test_pipelined_requests_are_answered_in_order(running):
    host = f"Host: 127.0.0.1:{running.port}\r\n"
    first = f"GET /static/app.js HTTP/1.1\r\n{host}\r\n"
    second = f"GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
    received = exchange(running.port, (first + second).encode())
    assert received.index(FILES["static/app.js"]) < received.index(PAGE)


def test_http_1_0_closes_unless_asked(running):
    head = f"GET / HTTP/1.0\r\nHost: 127.0.0.1:{running.port}\r\n\r\n".encode()
    assert exchange(running.port, head * 2).count(PAGE) == 1


def test_a_large_file_arrives_whole(root, running):
    data = bytes(range(251)) * 5000
    (root / "static" / "large.wasm").write_bytes(data)
    assert ask(running.port, "/static/large.wasm").body == data


def test_page_and_worker_have_their_own_policies(running):
    assert ask(running.port, "/").fields["content-security-policy"] == PAGE_CSP
    for target in ("/worker/engine_worker.js", "/%77orker/engine_worker.js"):
        assert ask(running.port, target).fields["content-security-policy"] == WORKER_CSP


def test_isolation_can_be_left_out(root):
    with server.start(root, headers=unisolated_headers) as running:
        fields = ask(running.port, "/").fields
    assert not {name.lower() for name in ISOLATION} & set(fields)
    assert fields["content-security-policy"] == PAGE_CSP


def test_models_of_the_user(root, tmp_path):
    model = tmp_path / "My model ü.gguf"
    with server.start(root, models=[model]) as running:
        target = "/models/My%20model%20%C3%BC.gguf"
        assert ask(running.port, target).status == 404
        model.write_bytes(MODEL)
        assert ask(running.port, target, range="bytes=0-3").body == MODEL[:4]
        model.unlink()
        model.mkdir()
        assert ask(running.port, target).status == 404
        assert ask(running.port, "/models/other.gguf").status == 404


@pytest.mark.parametrize("names", [["a/x.gguf", "b/x.gguf"], ["x:y.gguf"], ["100%.gguf"]])
def test_models_that_have_no_address_of_their_own(root, tmp_path, names):
    with pytest.raises(AddressError):
        server.start(root, models=[tmp_path / name for name in names])


def test_a_taken_port_means_the_next(root):
    with server.start(root) as first, server.start(root, first.port, n_ports=20) as second:
        assert first.port < second.port < first.port + 20
        assert second.url == f"http://127.0.0.1:{second.port}/"
        with pytest.raises(AddressError, match=f"port {first.port}"):
            server.start(root, first.port)


def test_closing_frees_the_port_and_ends_open_connections(root):
    with server.start(root) as running:
        idle = socket.create_connection(("127.0.0.1", running.port), timeout=10)
        head = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n\r\n"
        idle.sendall(head.encode())
        assert idle.recv(9) == b"HTTP/1.1 "
    while idle.recv(65536):
        continue
    idle.close()
    with server.start(root, running.port) as again:
        assert again.port == running.port


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "192.168.1.5", "example.org")],
    ],
)
def test_what_is_loopback(host, expected):
    assert guard.is_loopback(host) is expected


def test_all_interfaces_answer_to_addresses_but_not_to_names(root):
    with server.start(root, host="0.0.0.0") as running:
        assert running.url == f"http://127.0.0.1:{running.port}/"
        assert ask(running.port, "/", host=f"192.168.1.5:{running.port}").status == 200
        assert ask(running.port, "/", host=f"evil.example:{running.port}").status == 421
