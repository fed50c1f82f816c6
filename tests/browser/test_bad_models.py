"""A bad model file gets a typed error in the page, and the next good one loads, without a reload."""

import pytest

from clutch.formats.quants import QuantType
from tests.support.tiny_model import encode_tiny_model


def wrong_magic(good):
    return b"GGML" + good.data[4:]


def cut_in_the_header(good):
    return good.data[: good.header_bytes // 2]


def cut_in_the_weights(good):
    return good.data[:-1000]


def absurd_tensor_count(good):
    return good.patched({"tensor count": 1 << 60})


def absurd_key_count(good):
    return good.patched({"metadata count": (1 << 64) - 1})


def a_web_page(_good):
    return b"<!doctype html><title>404</title>" * 50


def nothing(_good):
    return b""


def unknown_architecture(good):
    return good.data.replace(b"llama", b"lhama")


def unsupported_tensor_type(good):
    # As large as the F32 it stands for, so that the file is sound.
    return good.patched({"type of blk.0.attn_norm.weight": QuantType.I32.value})


BAD = {
    wrong_magic: "E200",
    cut_in_the_header: "E200",
    cut_in_the_weights: "E200",
    absurd_tensor_count: "E200",
    absurd_key_count: "E200",
    a_web_page: "E200",
    nothing: "E200",
    unknown_architecture: "E201",
    unsupported_tensor_type: "E201",
}


@pytest.fixture(autouse=True)
def from_the_start(tiny_page):
    tiny_page.configure(max_tokens=8)
    tiny_page.reset()


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_a_bad_file_is_refused_and_the_next_one_loads(tiny_page, tiny_model, tmp_path, spoil):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(spoil(encode_tiny_model()))
    assert tiny_page.load_file(bad) == "error"
    shown = tiny_page.error()
    (_, error) = tiny_page.events("error")[-1]
    assert shown["code"] == error["code"] == BAD[spoil]
    assert shown["message"] == error["message"] != ""
    if BAD[spoil] == "E200":
        assert {"offset", "expected", "found"} <= error["data"].keys()
    assert tiny_page.load_file(tiny_model) == "ready"
    tiny_page.wait_state("ready")
    assert tiny_page.error() is None
    assert tiny_page.generate("Hello.").finish_reason == "length"


def test_a_missing_file_is_named(new_page, tiny_model, allowed_faults):
    allowed_faults.append("404")
    page = new_page()
    assert page.open("models/missing.gguf", temperature=0, max_tokens=8) == "error"
    shown = page.error()
    assert shown["code"] == "E300"
    assert "missing.gguf" in shown["message"]
    assert page.load_file(tiny_model) == "ready"
    page.wait_state("ready")
    assert page.generate("Hello.").finish_reason == "length"
