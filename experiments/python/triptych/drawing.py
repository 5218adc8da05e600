"""Drawings for notebooks, as SVG and HTML text."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 150, 34, 16, 26
#: Nodes beyond which a drawing says how many there are instead.
MOST_NODES = 300


def _layers(boxes: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Boxes by the longest way from a box that needs no other; `boxes` has each one's needs, in an
    order in which needs come first."""
    depth: dict[str, int] = {}
    for box, needs in boxes.items():
        depth[box] = max((depth[n] + 1 for n in needs if n in depth), default=0)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for box, at in depth.items():
        layers[at].append(box)
    return layers


def _box(place: tuple[float, float], title: str, text: str, color: str) -> str:
    x, y = place
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{color}" '
        'stroke="#888"/>'
        f'<text x="{x + _WIDTH / 2:g}" y="{y + 14:g}" text-anchor="middle">{html.escape(title)}</text>'
        f'<text x="{x + _WIDTH / 2:g}" y="{y + 28:g}" text-anchor="middle" fill="#555">'
        f"{html.escape(text)}</text>"
    )


def graph_svg(
    nodes: Sequence[Mapping[str, Any]], inputs: Sequence[str], outputs: Sequence[str]
) -> str:
    """Nodes of a graph as boxes, in layers from the inputs down; states and constants are left out."""
    if len(nodes) > MOST_NODES:
        return f"<p>a graph of {len(nodes)} nodes; outputs: {html.escape(', '.join(outputs))}</p>"
    maker = {value: value for value in inputs}
    boxes: dict[str, list[str]] = {name: [] for name in inputs}
    label = {name: (name, "input", "#e8f0fe") for name in inputs}
    for node in nodes:
        name = f"node {node['node']}"
        boxes[name] = [maker[value] for value in node["inputs"] if value in maker]
        label[name] = (node["op"], node["shape"], "#f5f5f5")
        maker.update(dict.fromkeys(node["outputs"], name))
    layers = _layers(boxes)
    widest = max(map(len, layers), default=1)
    place: dict[str, tuple[float, float]] = {}
    for row, layer in enumerate(layers):
        first = (widest - len(layer)) * (_WIDTH + _GAP_X) / 2
        for column, name in enumerate(layer):
            place[name] = (first + column * (_WIDTH + _GAP_X), row * (_HEIGHT + _GAP_Y))
    parts = []
    for name, needs in boxes.items():
        for need in needs:
            (x1, y1), (x2, y2) = place[need], place[name]
            parts.append(
                f'<line x1="{x1 + _WIDTH / 2:g}" y1="{y1 + _HEIGHT:g}" x2="{x2 + _WIDTH / 2:g}" '
                f'y2="{y2:g}" stroke="#888"/>'
            )
    parts += [_box(place[name], *label[name]) for name in boxes]
    width = widest * (_WIDTH + _GAP_X) - _GAP_X + 2
    height = len(layers) * (_HEIGHT + _GAP_Y) - _GAP_Y + 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {width} {height}" '
        f'width="{min(width, 900)}" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def bars_html(values: Mapping[str, float]) -> str:
    """A bar for each value, as long as its share of the largest."""
    most = max(values.values(), default=0) or 1
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td>{value:.6g}</td><td>"
        f'<div style="background:#4a7ebb;height:10px;width:{200 * max(0.0, value) / most:.0f}px"></div>'
        "</td></tr>"
        for name, value in values.items()
    )
    return f"<table>{rows}</table>"
