"""Figures, tables and charts of a report, as its page reads them (docs/reference/json.md)."""
# SPDX-License-Identifier: Apache-2.0
import math


def figure(value, unit, kind, source=""):
    if not math.isfinite(value):
        return None
    cell = {"value": value, "unit": unit, "kind": kind}
    return {**cell, "source": source} if source else cell


def stated(number, unit):
    """A figure of another report in the unit of this one."""
    return figure(number["value"], unit, number["kind"], number.get("source", ""))


def ratio(value, of, over, unit="x"):
    """A quotient of numbers of these kinds."""
    return figure(value, unit, of if of == over else f"{of}/{over}")


def table(title, columns, rows):
    """`columns`: pairs of name and unit. Cells are words, numbers or figures."""
    return {"title": title, "columns": [{"name": name, "unit": unit} for name, unit in columns],
            "rows": [list(row) for row in rows]}


def axis(label, unit, log=False):
    return {"label": label, "unit": unit, "scale": "log" if log else "linear"}


def series(name, kind, points):
    """`points`: pairs. x is a number in a chart of lines, and a word in one of bars."""
    return {"name": name, "kind": kind, "points": [{"x": x, "y": y} for x, y in points]}


def line_chart(name, title, x, y, lines):
    return {"id": name, "title": title, "kind": "line", "x": x, "y": y, "series": lines}


def bar_chart(name, title, y, bars):
    return {"id": name, "title": title, "kind": "bars", "x": axis("", ""), "y": y, "series": bars}


def bars_by_kind(bars):
    """One series per kind of (kind, name, value)."""
    kinds = dict.fromkeys(kind for kind, _, _ in bars)
    return [series(kind, kind, [(name, value) for own, name, value in bars if own == kind]) for kind in kinds]


def bytes_text(count):
    """1536 as "1.5 KiB"."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    power = 0
    while count >= 1024 and power < len(units) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.1f} {units[power]}"


def finding(verdict, why, commands, tables, charts=()):
    return {"verdict": verdict, "why": why, "commands": list(commands), "tables": list(tables), "charts": list(charts)}
