"""Rows of numbers that notebooks show as a table and pandas takes."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import html
from typing import Any

import numpy


def format_value(value: Any) -> str:
    """A number in at most six digits, nothing as a dash, anything else as its text."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


class Table(list[dict[str, Any]]):
    """A list of dicts with the same keys."""

    @property
    def columns(self) -> list[str]:
        """The keys."""
        return list(self[0]) if self else []

    def column(self, name: str) -> numpy.ndarray[Any, Any]:
        """The values of one key."""
        return numpy.array([row[name] for row in self])

    def to_pandas(self) -> Any:
        """A pandas.DataFrame."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(self)

    def _repr_html_(self) -> str:
        def cells(tag: str, values: list[Any]) -> str:
            return "".join(f"<{tag}>{html.escape(format_value(v))}</{tag}>" for v in values)

        rows = "".join(f"<tr>{cells('td', list(row.values()))}</tr>" for row in self)
        return f"<table><thead><tr>{cells('th', self.columns)}</tr></thead><tbody>{rows}</tbody></table>"
