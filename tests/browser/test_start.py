"""A start from the kept picture of Python's memory, and every way in which there is none."""

import pytest

from tests.browser.conftest import TINY

_KEPT = """async () => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle("boot", { create: true });
    const found = [];
    for await (const handle of folder.values()) found.push([handle.name, (await handle.getFile()).size]);
    return found;
}"""
# Swaps what is kept for what `change` makes of it, under the right hash or the old one.
_CHANGE = """async ([how, isHashed]) => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle("boot");
    for await (const handle of folder.values()) {
        let bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
        const end = bytes.length - 32;
        if (how === "flip") bytes[end >> 1] ^= 1;
        if (how === "cut") bytes = bytes.slice(0, end >> 1);
        if (how === "empty") bytes = new Uint8Array();
        if (how === "another build") bytes[16] ^= 1;
        if (isHashed) bytes.set(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.slice(0, end))), end);
        const stream = await handle.createWritable();
        await stream.write(bytes);
        await stream.close();
    }
}"""


@pytest.fixture(scope="module")
def page(open_page):
    """A page that has been visited once."""
    page = open_page(TINY)
    page.page.wait_for_function(f"async () => (await ({_KEPT})()).some(([, size]) => size > 1 << 20)")
    return page


def starting_ms(page):
    """How long Python took to start."""
    begun = next(at for at, event in page.events("progress") if event["phase"] == "starting_python")
    return next(at for at, _ in page.events("state")) - begun


def reopen(page):
    assert page.open(TINY, temperature=0, max_tokens=4, seed=1) == "ready", page.error()


def test_the_second_visit_starts_from_the_picture(page):
    first = starting_ms(page)
    reopen(page)
    assert starting_ms(page) < first / 2
    assert len(page.generate("Hi").output_ids) == 4


@pytest.mark.parametrize("how", ["flip", "cut", "empty"])
def test_a_damaged_picture_is_taken_anew(page, how):
    [(name, size)] = page.page.evaluate(_KEPT)
    page.page.evaluate(_CHANGE, [how, False])
    reopen(page)
    page.page.wait_for_function(f"async size => (await ({_KEPT})()).some(([, found]) => found === size)", arg=size)
    assert [kept for kept, _ in page.page.evaluate(_KEPT)] == [name]


def test_a_picture_of_another_python_is_thrown_away(page):
    page.page.evaluate(_CHANGE, ["another build", True])
    reopen(page)
    assert page.page.evaluate(_KEPT) == []
    reopen(page)
