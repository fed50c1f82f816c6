"""The KV pool as the page pictures it: pure functions of the last `pool` event. Imports on CPython for tests."""

from clutch.protocol import CELL_CACHED, CELLS_OWN, CELLS_SHARED

FREE = "free"
CACHED = "cached"
OWN = "own"
SHARED = "shared"

# A session's colour, on light and on dark. Neighbours in number are far apart in hue, and every other one is lighter.
COLOURS = (
    "#2a8f7c",
    "#e0904a",
    "#4f78c9",
    "#d8688f",
    "#7f9a2f",
    "#a98be0",
    "#b5533c",
    "#5cb8d6",
    "#8a6a2f",
    "#c66bd0",
    "#3f9b4f",
    "#e3b341",
    "#7a5bc4",
    "#8fc78a",
    "#a34a78",
    "#8c9bb5",
)

GAUGES = ("context", "used", "shared", "cached", "free", "utilisation")

# A page's cell with its gap, in CSS pixels: (fewer pages than, size).
_SIZES = ((600, 12), (1500, 9), (4000, 7))
_SMALLEST = 5


def read(cell):
    """Return (FREE, CACHED, OWN or SHARED; number of the session or None) of one character."""
    if cell in CELLS_OWN:
        return OWN, CELLS_OWN.index(cell)
    if cell in CELLS_SHARED:
        return SHARED, CELLS_SHARED.index(cell)
    return (CACHED if cell == CELL_CACHED else FREE), None


def layout(n_pages, width):
    """Return (columns, rows, size of a cell with its gap), of a picture that is at most `width` CSS pixels wide."""
    sizes = [size for limit, size in _SIZES if n_pages < limit]
    size = sizes[0] if sizes else _SMALLEST
    columns = max(1, min(n_pages, int(width) // size))
    return columns, -(-n_pages // columns), size


def runs(cells, columns):
    """Return [(row, column, length, cell)]: neighbours in a row that look alike are painted in one go."""
    found = []
    for row in range(-(-len(cells) // columns)):
        line = cells[row * columns : (row + 1) * columns]
        start = 0
        for column in range(1, len(line) + 1):
            if column == len(line) or line[column] != line[start]:
                found.append((row, start, column - start, line[start]))
                start = column
    return found


def gauges(strings, pool, numbers):
    """Return {name: text} of GAUGES; "–" for what is not known.

    Args:
        strings: the sentences.
        pool: the last `pool` event, or None without a model.
        numbers: `kv_length` of the chat in view, and the model's `context_length`.
    """
    texts = {name: "–" for name in GAUGES}
    if numbers.get("context_length"):
        used = numbers.get("kv_length", 0)
        texts["context"] = strings.text("memory.of", used=used, total=numbers["context_length"])
    if pool is not None:
        texts["used"] = strings.text("memory.of", used=pool["used"], total=pool["total"])
        for name in ("shared", "cached", "free"):
            texts[name] = str(pool[name])
        share = pool["utilisation"]
        if share is not None:
            texts["utilisation"] = f"{round(100 * share)} %"
    return texts


def description(strings, pool):
    """Return what the picture shows, for those who do not see it."""
    names = ("total", "used", "shared", "cached", "free")
    return strings.text("memory.description", **{name: pool[name] for name in names})
