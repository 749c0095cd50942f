"""A small plot as SVG: axes that end where the data end, lines, points with intervals, and labels beside them.

Labels never lie on each other: the most important are placed first, and one that finds no room is left out, its name
being in the mark's tooltip and in the table. Colours are the page's; saved alone, a plot has those of the day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from memlab.support.text.display import safe_line

Point = tuple[float, float]
Box = tuple[float, float, float, float]

COLOURS = {"winner": ("accent", "#0a5ea8"), "comparator": ("other", "#b04a06"), "": ("edge", "#7f858d")}
"""Role -> (the page's colour, that of a plot which is saved alone)."""

LETTER, LINE = 0.56, 1.25
"""Width of a letter and height of a line, in font sizes."""

LONGEST = 30
"""Characters of a name in a plot; of a longer one the rest is in the tooltip."""


@dataclass(frozen=True)
class Mark:
    """A point: where it is, the interval of its height, its name and words about it, its role, and if it is hollow."""

    name: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    words: str = ""
    role: str = ""
    hollow: bool = False


@dataclass(frozen=True)
class Polyline:
    """A line through points in the order of x, its name and role; ``named`` where it is labelled."""

    name: str
    points: Sequence[Point]
    role: str = ""
    named: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """The range of an axis, its title, and how a tick is written."""

    low: float
    high: float
    title: str
    write: Callable[[float], str] = field(default="{:,.0f}".format)

    def ticks(self, about: int) -> list[float]:
        """Return about so many round numbers within the range, two or more: one alone gives no scale.

        >>> Axis(0, 1060, "").ticks(6), Axis(.55, 1, "").ticks(5), Axis(120, 183, "").ticks(3)
        ([0.0, 200.0, 400.0, 600.0, 800.0, 1000.0], [0.6, 0.7, 0.8, 0.9, 1.0], [120.0, 140.0, 160.0, 180.0])
        """
        found: list[float] = []
        for more in (about, about + 1, 2 * about):
            step = _step(self.high - self.low, more)
            first = math.ceil(round(self.low / step, 6))
            found = [round(n * step, 10) for n in range(first, math.floor(round(self.high / step, 6)) + 1)]
            if len(found) > 1:
                break
        return found


def around(values: Sequence[float], about: int, least: float, most: float) -> tuple[float, float]:
    """Return a range with round ends around values, within ``least`` and ``most``.

    >>> around([.554, .972], 6, 0, 1), around([1.0], 6, 0, 1)
    ((0.5, 1), (0.9, 1))
    """
    low, high = min(values), max(values)
    step = _step((high - low) or 0.5 * abs(high) or 1.0, about)
    low, high = (math.floor(round(low / step, 6)) * step, math.ceil(round(high / step, 6)) * step)
    if low == high:
        low -= step
    return max(least, round(low, 10)), min(most, round(high, 10))


def _step(span: float, about: int) -> float:
    """Return the round distance of about so many ticks over a span."""
    rough = span / max(about, 1) or 1.0
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * n for n in (1, 2, 5, 10) if size * n >= rough * 0.999)


def plot(name: str, size: tuple[int, int], x: Axis, y: Axis, curves: Sequence[Polyline], marks: Sequence[Mark],
         label: str) -> str:
    """Return the plot as an SVG element of so many units; ``name`` is its id and ``label`` is read in its place."""
    width, height = size
    canvas = _Canvas(name, width, height, x, y)
    frame = [canvas.grid()]
    order = {"": 0, "comparator": 1, "winner": 2}
    drawn = [canvas.curve(curve) for curve in sorted(curves, key=lambda c: order[c.role])]
    drawn += [canvas.mark(mark) for mark in sorted(marks, key=lambda m: order[m.role])]
    for mark in sorted(marks, key=lambda m: -order[m.role]):
        canvas.block(mark)
    for mark in sorted(marks, key=lambda m: (-order[m.role], -m.y)):
        if mark.role:
            drawn.append(canvas.label_mark(mark))
    drawn += [canvas.label_curve(curve) for curve in sorted(curves, key=lambda c: -order[c.role]) if curve.named]
    drawn += [canvas.label_mark(mark) for mark in sorted(marks, key=lambda m: -m.y) if not mark.role]
    return (f'<svg class="plot" id="{name}" viewBox="0 0 {width} {height}" role="group" aria-label="{_safe(label)}" '
            f'xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" font-size="13">'
            f'{"".join(frame + drawn)}</svg>')


class _Canvas:
    """The plot's area, and what is already in it."""

    def __init__(self, name: str, width: int, height: int, x: Axis, y: Axis) -> None:
        self.name, self.x, self.y = name, x, y
        self.area: Box = (56, 34, width - 22, height - 46)
        self.taken: list[Box] = []  # labels
        self.marked: list[Box] = []  # points and the important lines

    def at(self, x: float, y: float) -> Point:
        left, top, right, bottom = self.area
        return (round(left + (right - left) * (x - self.x.low) / ((self.x.high - self.x.low) or 1), 1),
                round(bottom - (bottom - top) * (y - self.y.low) / ((self.y.high - self.y.low) or 1), 1))

    def grid(self) -> str:
        left, top, right, bottom = self.area
        soft, rule = _fill("soft", "#515962"), _stroke("rule", "#e3dfd7")
        out = [f'<clipPath id="{self.name}-area"><rect x="{left}" y="{top - 6}" width="{right - left}" '
               f'height="{bottom - top + 6}"/></clipPath>']
        for value in self.y.ticks(6):
            _, y = self.at(self.x.low, value)
            out.append(f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" style="{rule}"/>'
                       f'<text x="{left - 8}" y="{y + 4}" text-anchor="end" style="{soft}">'
                       f'{self.y.write(value)}</text>')
        for value in self.x.ticks(max(3, int((right - left) / 110))):
            x, _ = self.at(value, self.y.low)
            out.append(f'<line x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 5}" style="{_stroke("edge", "#7f858d")}"/>'
                       f'<text x="{x}" y="{bottom + 20}" text-anchor="middle" style="{soft}">'
                       f'{self.x.write(value)}</text>')
        out.append(f'<text x="{left - 46}" y="16" style="{soft}">{_safe(self.y.title)}</text>'
                   f'<text x="{right}" y="{bottom + 40}" text-anchor="end" style="{soft}">{_safe(self.x.title)}</text>')
        return "".join(out)

    def curve(self, curve: Polyline) -> str:
        points = [self.at(*point) for point in curve.points]
        if len(points) < 2:
            return ""
        if curve.role or curve.named:
            self.marked += [(x - 3, y - 3, x + 3, y + 3) for x, y in _along(points)]
        thick = 2.5 if curve.role else 2 if curve.named else 1
        dash = "stroke-dasharray:5 4;" if curve.dashed else ""
        path = " ".join(f"{x},{y}" for x, y in points)
        return (f'<polyline points="{path}" clip-path="url(#{self.name}-area)" style="fill:none;{dash}'
                f'stroke-width:{thick};opacity:{1 if curve.role or curve.named else 0.55};'
                f'{_stroke(*COLOURS[curve.role])}"><title>{_safe(curve.name)}</title></polyline>')

    def block(self, mark: Mark) -> None:
        x, y = self.at(mark.x, mark.y)
        self.marked.append((x - 7, y - 7, x + 7, y + 7))
        if mark.role and mark.low is not None and mark.high is not None:
            self.marked.append((x - 3, self.at(mark.x, mark.high)[1], x + 3, self.at(mark.x, mark.low)[1]))

    def mark(self, mark: Mark) -> str:
        x, y = self.at(mark.x, mark.y)
        colour, radius = COLOURS[mark.role], 7 if mark.role else 4.5
        bar = ""
        if mark.role and mark.low is not None and mark.high is not None:
            (_, low), (_, high) = (self.at(mark.x, min(max(end, self.y.low), self.y.high))
                                   for end in (mark.low, mark.high))
            bar = f'<line x1="{x}" x2="{x}" y1="{low}" y2="{high}" style="stroke-width:2;{_stroke(*colour)}"/>'
        shape = (f'<rect x="{x - 5}" y="{y - 5}" width="10" height="10" transform="rotate(45 {x} {y})" '
                 if mark.hollow else f'<circle cx="{x}" cy="{y}" r="{radius}" ')
        fill = _fill("card", "#ffffff") if mark.hollow else _fill(*colour)
        edge = _stroke(*(colour if mark.hollow else ("card", "#ffffff")))
        title = ": ".join(text for text in (mark.name, mark.words) if text)
        pointed = f' tabindex="0" role="img" aria-label="{_safe(title)}"' if mark.name else ""
        return f'<g{pointed}>{bar}{shape}style="stroke-width:1.5;{fill}{edge}"/><title>{_safe(title)}</title></g>'

    def label_mark(self, mark: Mark) -> str:
        x, y = self.at(mark.x, mark.y)
        size = 14 if mark.role else 12
        text = _short(mark.name)
        places = [(x + dx, y + dy, anchor) for step in ((1, 2, 3.2) if mark.role else (1,)) for dx, dy, anchor in (
            (12 * step, 5, "start"), (-12 * step, 5, "end"), (0, -13 * step, "middle"), (0, 24 * step, "middle"),
            (10 * step, -9 * step, "start"), (-10 * step, -9 * step, "end"), (10 * step, 20 * step, "start"),
            (-10 * step, 20 * step, "end"))]
        return self._place(text, places, size, mark.role, must=bool(mark.role))

    def label_curve(self, curve: Polyline) -> str:
        left, top, right, bottom = self.area
        inside = [(x, y) for x, y in _along([self.at(*p) for p in curve.points])
                  if left <= x <= right and top <= y <= bottom]
        places = [(x + dx, y + dy, anchor) for x, y in reversed(inside) for dx, dy, anchor in (
            (-4, 20, "end"), (8, 18, "start"), (-8, -8, "end"), (0, -10, "end"))]
        return self._place(_short(curve.name), places, 14 if curve.role else 12, curve.role, must=bool(curve.role))

    def _place(self, text: str, places: Sequence[tuple[float, float, str]], size: int, role: str, must: bool) -> str:
        left, top, right, bottom = self.area
        wide, high = LETTER * size * len(text) * (1.06 if role else 1), LINE * size
        best: tuple[float, tuple[float, float, str], Box] | None = None
        for at, (x, y, anchor) in enumerate(places):
            start = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
            box = (start, y - 0.8 * high, start + wide, y + 0.2 * high)
            if box[0] < left or box[2] > right + 18 or box[1] < top - 12 or box[3] > bottom + 2:
                continue
            if any(_overlap(box, other) for other in self.taken):
                continue
            cost = sum(_overlap(box, other) for other in self.marked) + 0.01 * min(at, 50)
            if (must or cost < 1) and (best is None or cost < best[0]):
                best = cost, (x, y, anchor), box
            if cost < 1:
                break
        if best is None:
            return ""
        _, (x, y, anchor), box = best
        self.taken.append(box)
        fill = _fill(*COLOURS[role]) if role else _fill("soft", "#515962")
        halo = f"paint-order:stroke;stroke-width:4;stroke-linejoin:round;{_stroke('card', '#ffffff')}"
        return (f'<text x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}" font-size="{size}" '
                f'style="{fill}{halo}font-weight:{650 if role else 400}">{_safe(text)}</text>')


def _along(points: Sequence[Point], distance: float = 9) -> list[Point]:
    """Return points along a line, no further apart than ``distance``."""
    out = list(points[:1])
    for (x, y), (u, v) in pairwise(points):
        steps = max(1, math.ceil(math.hypot(u - x, v - y) / distance))
        out += [(x + (u - x) * i / steps, y + (v - y) * i / steps) for i in range(1, steps + 1)]
    return out


def _overlap(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def _short(name: str) -> str:
    name = safe_line(name)
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _safe(text: str) -> str:
    return escape(safe_line(text))


def _fill(name: str, alone: str) -> str:
    return f"fill:var(--{name},{alone});"


def _stroke(name: str, alone: str) -> str:
    return f"stroke:var(--{name},{alone});"
