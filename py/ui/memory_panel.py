"""The panel that shows how full the KV pool is: numbers, and a picture with a cell a page."""

import js
from pyscript import ffi, window

from ui import dom, pool

_GAP_PX = 1


class MemoryPanel:
    """`details#memory`; nothing is painted while it is closed, or while nothing changed.

    Args:
        strings: for the numbers and the words beside the picture.
    """

    def __init__(self, strings):
        self._strings = strings
        # The last `pool` event; None without a model.
        self.pool = None
        self._panel = dom.element("memory")
        self._picture = self._panel.querySelector(".picture")
        self._gauges = {name: dom.TextSlot(dom.element("memory-" + name)) for name in pool.GAUGES}
        self._legend = dom.element("pool-legend")
        self._canvas = dom.element("pool-picture")
        self._pen = self._canvas.getContext("2d")
        self._last = ({}, ())
        self._painted = None
        self._listed = None
        dom.listen(self._panel, "toggle", lambda _event: self._draw())
        js.ResizeObserver.new(ffi.create_proxy(lambda *_: self._draw())).observe(self._picture)
        dom.listen(window.matchMedia("(prefers-color-scheme: dark)"), "change", lambda _event: self._repaint())

    def show(self, numbers, chats):
        """Show the numbers of the chat in view, and the pool with the colours of all chats.

        Args:
            numbers: `kv_length` and `context_length`.
            chats: those that are open.
        """
        self._last = (numbers, chats)
        self._draw()

    def _draw(self):
        if not self._panel.open:
            return
        numbers, chats = self._last
        gauges = pool.gauges(self._strings, self.pool, numbers)
        for name, slot in self._gauges.items():
            slot.show(gauges[name])
        self._canvas.hidden = self.pool is None
        if self.pool is not None:
            self._list(chats)
            self._paint()

    def _list(self, chats):
        # One that nothing was said in has no page.
        listed = [(chat.number, chat.title) for chat in chats if not chat.is_empty]
        if listed == self._listed:
            return
        self._listed = listed
        self._legend.replaceChildren()
        for number, title in listed:
            item = dom.create("li", "")
            swatch = dom.create("span", "swatch")
            swatch.style.background = pool.COLOURS[number]
            words = dom.create("span", "title")
            words.dir = "auto"
            words.textContent = dom.visible(title)
            item.append(swatch, words)
            self._legend.append(item)

    def _repaint(self):
        self._painted = None
        self._draw()

    def _paint(self):
        cells = self.pool["cells"]
        width = int(self._picture.clientWidth)
        scale = window.devicePixelRatio
        words = pool.description(self._strings, self.pool)
        if not width or (cells, words, width, scale) == self._painted:
            return
        self._painted = (cells, words, width, scale)
        self._canvas.setAttribute("aria-label", words)
        columns, rows, size = pool.layout(len(cells), width)
        self._canvas.style.width = str(columns * size) + "px"
        self._canvas.style.height = str(rows * size) + "px"
        self._canvas.width = int(columns * size * scale)
        self._canvas.height = int(rows * size * scale)
        self._pen.scale(scale, scale)
        self._paint_runs(pool.runs(cells, columns), size)
        self._paint_gaps(columns, rows, size)

    def _paint_runs(self, runs, size):
        # What marks shared pages is a dashed line: a dot in the middle of each cell.
        dot = size / 4
        self._pen.strokeStyle = "#ffffff"
        self._pen.lineWidth = dot
        self._pen.setLineDash(ffi.to_js([dot, size - dot]))
        self._pen.lineDashOffset = (dot - size + _GAP_PX) / 2
        style = window.getComputedStyle(self._canvas)
        colours = {pool.FREE: style.borderTopColor, pool.CACHED: style.color}
        for row, column, length, cell in runs:
            kind, session = pool.read(cell)
            x, y, width = column * size, row * size, length * size
            self._pen.fillStyle = colours[kind] if session is None else pool.COLOURS[session]
            self._pen.fillRect(x, y, width, size)
            if kind == pool.SHARED:
                self._pen.beginPath()
                self._pen.moveTo(x, y + (size - _GAP_PX) / 2)
                self._pen.lineTo(x + width, y + (size - _GAP_PX) / 2)
                self._pen.stroke()

    def _paint_gaps(self, columns, rows, size):
        # They cut the runs into cells.
        for column in range(columns):
            self._pen.clearRect((column + 1) * size - _GAP_PX, 0, _GAP_PX, rows * size)
        for row in range(rows):
            self._pen.clearRect(0, (row + 1) * size - _GAP_PX, columns * size, _GAP_PX)
