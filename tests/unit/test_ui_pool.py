"""How the page reads and pictures the pool."""

import re
from pathlib import Path

import pytest

from clutch.protocol import CELLS_OWN, CELLS_SHARED, MAX_SESSIONS
from ui import pool
from ui.strings import load

STRINGS = load(str(Path(__file__).resolve().parents[2] / "static" / "strings"), "en")
EVENT = {"total": 256, "used": 30, "shared": 8, "cached": 12, "free": 214, "utilisation": 0.973}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (".", (pool.FREE, None)),
        ("-", (pool.CACHED, None)),
        ("0", (pool.OWN, 0)),
        ("9", (pool.OWN, 9)),
        ("a", (pool.OWN, 10)),
        ("f", (pool.OWN, 15)),
        ("A", (pool.SHARED, 0)),
        ("P", (pool.SHARED, 15)),
    ],
)
def test_a_cell_says_who_holds_its_page(cell, expected):
    assert pool.read(cell) == expected


def test_every_character_of_the_engine_is_read_back():
    for session in range(MAX_SESSIONS):
        assert pool.read(CELLS_OWN[session]) == (pool.OWN, session)
        assert pool.read(CELLS_SHARED[session]) == (pool.SHARED, session)


def test_every_session_has_a_colour_of_its_own():
    assert len(set(pool.COLOURS)) == MAX_SESSIONS
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in pool.COLOURS)


@pytest.mark.parametrize("n_pages", [1, 7, 256, 599, 1000, 4096, 20_000])
@pytest.mark.parametrize("width", [3, 320, 700])
def test_the_picture_has_room_for_every_page(n_pages, width):
    columns, rows, size = pool.layout(n_pages, width)
    assert columns * rows >= n_pages > columns * (rows - 1)
    assert columns == 1 or columns * size <= width


def test_runs_are_the_cells_again():
    cells = "0001A--.....1"
    runs = pool.runs(cells, 5)
    assert runs[:3] == [(0, 0, 3, "0"), (0, 3, 1, "1"), (0, 4, 1, "A")]
    painted = ["?"] * 15
    for row, column, length, cell in runs:
        painted[row * 5 + column : row * 5 + column + length] = cell * length
    assert "".join(painted) == cells + "??"
    assert pool.runs("", 5) == []


def test_gauges_say_what_is_known():
    texts = pool.gauges(STRINGS, EVENT, {"kv_length": 61, "context_length": 2048})
    assert "61" in texts["context"] and "2048" in texts["context"]
    assert "30" in texts["used"] and "256" in texts["used"]
    assert (texts["shared"], texts["cached"], texts["free"], texts["utilisation"]) == ("8", "12", "214", "97 %")
    assert pool.gauges(STRINGS, None, {}) == dict.fromkeys(pool.GAUGES, "–")
    assert pool.gauges(STRINGS, {**EVENT, "utilisation": None}, {})["utilisation"] == "–"


def test_the_picture_is_described():
    words = pool.description(STRINGS, EVENT)
    assert all(str(EVENT[name]) in words for name in ("total", "used", "shared", "cached", "free"))
