"""Where the engine cannot run, or not in its best way."""

import pytest

from tests.support.flags import NO_GPU
from tests.support.site import serve
from tests.support.worker_patch import patch_worker


def check_refusal(page):
    assert page.open() == "error"
    shown = page.error()
    assert shown["code"] == "E100"
    assert shown["message"] and shown["hint"]
    # Said at once: the 13 MB of Python are not fetched for nothing.
    assert [url for url in page.watch.requests if "pyodide" in url] == []


def test_no_adapter(new_page, other_chromium):
    check_refusal(new_page(other_chromium(NO_GPU)))


def test_no_webgpu_at_all(new_page):
    page = new_page()
    page.context.add_init_script("delete Navigator.prototype.gpu")
    patch_worker(page.context, "delete WorkerNavigator.prototype.gpu;")
    check_refusal(page)


def test_limits_that_are_too_small(new_page):
    page = new_page()
    patch_worker(
        page.context,
        """const { get } = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, "limits");
        const small = { maxStorageBuffersPerShaderStage: 4 };
        const limits = function () {
            const real = get.call(this);
            return new Proxy(real, { get: (_, name) => small[name] ?? real[name] });
        };
        Object.defineProperty(GPUAdapter.prototype, "limits", { get: limits });""",
    )
    check_refusal(page)
    (_, error), *_ = page.events("error")
    assert error["data"] == {"limit": "maxStorageBuffersPerShaderStage", "offered": 4, "needed": 8}


@pytest.fixture
def plain_site(tiny_model):
    with serve([tiny_model], isolated=False) as url:
        yield url


def test_stop_works_without_cross_origin_isolation(new_page, plain_site):
    page = new_page(url=plain_site)
    assert page.open("models/tiny.gguf", temperature=0, max_tokens=400) == "ready", page.error()
    assert not page.page.evaluate("crossOriginIsolated")
    answer = page.generate("Count.", stop_after=8)
    assert answer.finish_reason == "abort"
    assert len(answer.output_ids) < 400
    assert answer.kv_length == answer.committed_tokens
