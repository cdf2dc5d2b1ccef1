"""Plots as SVG: lines over time or over size, and how far each row is from its goal. Readable on light and dark pages."""
import math

from sidebyside.plot import WIDTH, svg, text
from sidebyside.slope import slope_of

COLORS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#bf3989", "#6e7781")
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 44, 46
HEIGHT = 300


def label(value):
    for limit, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= limit:
            return f"{value / limit:g}{suffix}"
    return f"{value:.3g}"


class Linear:
    def __init__(self, values):
        self.low, self.high = 0, max([*values, 1e-9])
        step = 10 ** math.floor(math.log10(self.high))
        step = next(s for s in (step / 5, step / 2, step, 2 * step, 5 * step) if self.high / s <= 6)
        self.ticks = [i * step for i in range(int(self.high / step) + 1)]

    def part(self, value):
        return value / self.high


class Logarithmic:
    def __init__(self, values):
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        self.low, self.high = low, max(high, low + 1)
        self.ticks = [10 ** i for i in range(self.low, self.high + 1)]

    def part(self, value):
        return (math.log10(value) - self.low) / (self.high - self.low)


def usable(plot):
    """Points of each series; a logarithmic scale has no place for zero."""
    series = [(s["name"], [p for p in s["points"] if not plot["log"] or min(p) > 0]) for s in plot["series"]]
    return [(name, points) for name, points in series if points]


def axes(x_scale, y_scale, at):
    parts = []
    for tick in x_scale.ticks:
        x, _ = at((tick, y_scale.ticks[0]))
        parts += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="grid"/>',
                  text(x, HEIGHT - BOTTOM + 16, label(tick), "small", "middle")]
    for tick in y_scale.ticks:
        _, y = at((x_scale.ticks[0], tick))
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>',
                  text(LEFT - 6, y + 4, label(tick), "small", "end")]
    return parts


def lines(plot):
    """One plot of a part: see data.py."""
    series = usable(plot)
    if not series:
        return svg(40, plot["title"], [text(12, 24, f"{plot['title']}: no data")])
    scale = Logarithmic if plot["log"] else Linear
    x_scale, y_scale = (scale([p[i] for _, points in series for p in points]) for i in (0, 1))

    def at(point):
        return (LEFT + (WIDTH - LEFT - RIGHT) * x_scale.part(point[0]),
                HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y_scale.part(point[1]))

    parts = [text(12, 24, plot["title"], "title"), text(12, TOP - 6, plot["y"], "small"),
             text(WIDTH - RIGHT, HEIGHT - 12, plot["x"], "small", "end"), *axes(x_scale, y_scale, at)]
    for index, (name, points) in enumerate(series):
        color = COLORS[index % len(COLORS)]
        where = " ".join("{:.1f},{:.1f}".format(*at(point)) for point in points)
        parts.append(f'<polyline points="{where}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        if len(points) < 40:
            parts += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(point), color) for point in points]
        slope = slope_of(points) if plot["log"] else None
        shown = name if slope is None else f"{name}: slope {slope:.2f}"
        parts += [f'<rect x="{LEFT + 4 + 250 * (index % 3)}" y="{HEIGHT + 2 + 18 * (index // 3)}" width="12" height="4" fill="{color}"/>',
                  text(LEFT + 22 + 250 * (index % 3), HEIGHT + 8 + 18 * (index // 3), shown, "small")]
    return svg(HEIGHT + 16 + 18 * ((len(series) - 1) // 3), plot["title"], parts)


def goals(rows):
    """How many times better than its goal each row is, on a logarithmic scale; those to the left of 1 are missed."""
    shown = [row for row in rows if row.part_of_goal]
    if not shown:
        return svg(40, "goals", [text(12, 24, "no row with a goal was measured")])
    left, room, top = 470, WIDTH - 470 - 60, 56
    scale = Logarithmic([0.5, 2, *(row.part_of_goal for row in shown)])

    def at(value):
        return left + room * scale.part(value)

    bottom = top + 16 * len(shown)
    parts = [text(12, 24, "How many times better than its goal each row is", "title"),
             text(12, 42, "the upright line is the goal; bars to its left are missed", "small")]
    for tick in scale.ticks:
        parts += [f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{top - 6}" y2="{bottom}" '
                  f'class="{"goal" if tick == 1 else "grid"}"/>', text(at(tick), bottom + 14, f"{tick:g} ×", "small", "middle")]
    for index, row in enumerate(shown):
        y, x = top + 16 * index, at(row.part_of_goal)
        color = "#1a7f37" if row.verdict == "reached" else "#cf222e"
        words = row.text if len(row.text) < 76 else row.text[:44] + " … " + row.text[-28:]
        parts += [text(left - 8, y + 9, words, "small", "end"),
                  f'<rect x="{min(x, at(1)):.1f}" y="{y}" width="{max(abs(x - at(1)), 1):.1f}" height="10" fill="{color}"/>']
    return svg(bottom + 22, "Rows and their goals", parts)
