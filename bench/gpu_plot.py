"""Plots of the GPU table as SVG, by the standard library alone."""
import html
import math

INK, FAINT, PAPER = "#24292f", "#d0d7de", "#ffffff"
FONT = 'font-family="system-ui, sans-serif" font-size="12"'


class Page:
    def __init__(self, width, height, title):
        self.size, self.parts = (width, height), []
        self.text(width / 2, 20, title, "middle", weight="bold")

    def text(self, x, y, words, anchor="start", color=INK, weight="normal", size=12):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}" '
                          f'font-size="{size}">{html.escape(str(words))}</text>')

    def box(self, x, y, width, height, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" '
                          f'fill="{color}"/>')

    def line(self, points, color=INK, width=1.0, dash=""):
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{width}"{dashed}/>')

    def dot(self, x, y, color, words):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"><title>{html.escape(words)}</title>'
                          f'</circle>')

    def svg(self):
        width, height = self.size
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>\n'
                f'<rect width="{width}" height="{height}" fill="{PAPER}"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def time_of(us):
    return f"{us / 1000:.1f} ms" if us >= 10000 else f"{us:.0f} us" if us >= 100 else f"{us:.1f} us"


def bars(title, rows, colors):
    """rows: [(name, {series: microseconds})]; colors: {series: color}, in order. A bar is the speed beside the row's
    fastest."""
    left, span, each, gap = 270, 430, 13, 10
    height = 60 + sum(each * len(times) + gap for _, times in rows) + 10
    page = Page(left + span + 90, height, title)
    x = 20
    for series, color in colors.items():
        page.box(x, 30, 10, 10, color)
        page.text(x + 14, 39, series)
        x += 30 + 6.5 * len(series)
    y = 56
    for name, times in rows:
        best = min(times.values())
        page.text(left - 8, y + each * len(times) / 2 + 4, name, "end")
        for series in colors:
            if series not in times:
                continue
            length = span * best / times[series]
            page.box(left, y, length, each - 2, colors[series])
            page.text(left + length + 5, y + each - 3, time_of(times[series]), size=10)
            y += each
        y += gap
    page.line([(left, 48), (left, height - 10)])
    return page.svg()


class Scale:
    """Places on a logarithmic axis."""

    def __init__(self, low, high, begin, end):
        self.low, self.high, self.begin, self.end = math.log10(low), math.log10(high), begin, end

    def __call__(self, value):
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def powers(self):
        return [10.0 ** p for p in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)]


def roofline(title, ceilings, bandwidth, series, colors):
    """ceilings: [(name, flop/s)]; series: {name: [(number, row, flop a byte, flop/s)]}, where a number marks its row."""
    top = 10.0 ** math.ceil(math.log10(max(c for _, c in ceilings)))
    points = [p for row in series.values() for p in row]
    most = max([p[2] for p in points] + [top / bandwidth])
    across, up = Scale(0.1, 10.0 ** math.ceil(math.log10(most)), 70, 620), Scale(1e10, top, 450, 40)
    names = {number: name for number, name, _, _ in points}
    page = Page(960, max(500, 90 + 15 * len(names)), title)
    for value in across.powers():
        page.line([(across(value), 450), (across(value), 40)], FAINT)
        page.text(across(value), 466, f"{value:g}", "middle")
    for value in up.powers():
        page.line([(70, up(value)), (620, up(value))], FAINT)
        page.text(64, up(value) + 4, f"{value / 1e12:g}", "end")
    page.text(345, 486, "flop a byte of memory traffic", "middle")
    page.text(70, 34, "Tflop/s", "middle")
    for name, ceiling in ceilings:
        knee = ceiling / bandwidth
        page.line([(across(0.1), up(max(0.1 * bandwidth, 1e10))), (across(knee), up(ceiling)), (620, up(ceiling))], INK, 1.5)
        page.text(618, up(ceiling) - 5, f"{name}: {ceiling / 1e12:.0f}", "end", size=11)
    page.text(across(0.12), up(max(0.14 * bandwidth, 1.4e10)) - 8, f"{bandwidth / 1e12:.1f} TB/s", size=11)
    for name, row in series.items():
        for number, words, intensity, rate in row:
            page.dot(across(max(intensity, 0.1)), up(min(max(rate, 1e10), top)), colors[name], f"{words}, {name}")
            page.text(across(max(intensity, 0.1)) + 6, up(min(max(rate, 1e10), top)) + 4, number, size=10)
    y = 50
    for name in series:
        page.dot(650, y - 4, colors[name], name)
        page.text(660, y, name)
        y += 18
    for number, name in sorted(names.items()):
        page.text(650, y, f"{number}  {name}", size=11)
        y += 15
    return page.svg()
