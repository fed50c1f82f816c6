"""/engine.zip: complete, importable, the same bytes for the same tree."""

import io
import os
import shutil
import zipfile

import pytest

from serving import server
from serving.engine_archive import EngineArchive
from tests.support.serve_helpers import FILES, ask, make_repository

MEMBERS = {
    "clutch/__init__.py": "py/clutch/__init__.py",
    "clutch/kv/pool.py": "py/clutch/kv/pool.py",
    "clutch/protocol.py": "py/clutch/protocol.py",
    "jinja2/__init__.py": "static/vendor/python/jinja2/__init__.py",
    "markupsafe/__init__.py": "static/vendor/python/markupsafe/__init__.py",
    "wgsl/embed.wgsl": "wgsl/embed.wgsl",
}


@pytest.fixture
def root(tmp_path):
    return make_repository(tmp_path / "root")


def test_it_holds_what_the_worker_needs_and_nothing_else(root):
    with zipfile.ZipFile(io.BytesIO(EngineArchive(root).data())) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == sorted(MEMBERS)
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        for name, source in MEMBERS.items():
            assert archive.read(name) == FILES[source]


def test_equal_trees_give_equal_bytes(root, tmp_path):
    copy = shutil.copytree(root, tmp_path / "copy")
    for path in copy.rglob("*.py"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    assert EngineArchive(copy).data() == EngineArchive(root).data()


def test_it_follows_changes_and_only_changes(root):
    archive = EngineArchive(root)
    before = archive.data()
    assert archive.data() is before
    (root / "py" / "clutch" / "protocol.py").write_text("READY = 'changed'\n")
    changed = archive.data()
    assert b"changed" in changed
    (root / "wgsl" / "embed.wgsl").unlink()
    assert b"// embed" not in archive.data()


def test_links_out_of_the_repository_are_left_out(root, tmp_path):
    (tmp_path / "outside.py").write_text("secret = 1")
    (root / "py" / "clutch" / "leak.py").symlink_to(tmp_path / "outside.py")
    assert b"secret" not in EngineArchive(root).data()


def test_it_is_served_with_a_tag_of_its_contents(root):
    with server.start(root) as running:
        answer = ask(running.port, "/engine.zip?v=1")
        assert (answer.status, answer.fields["content-type"]) == (200, "application/zip")
        assert answer.body == EngineArchive(root).data()
        assert ask(running.port, "/engine.zip", if_none_match=answer.fields["etag"]).status == 304
