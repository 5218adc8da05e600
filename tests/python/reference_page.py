#!/usr/bin/env python3
"""Prints docs/reference/python.md, made from the module's own words.

  PYTHONPATH=build/test/python python3 tests/python/reference_page.py > docs/reference/python.md
"""
# SPDX-License-Identifier: Apache-2.0
import inspect
import re
import textwrap

import triptych
from triptych import data, machine, nn

HEAD = """# The Python module

`tests/python/reference_page.py` generates this page from the module, and a test compares them. Read
[use Triptych from Python](../guides/use-from-python.md) first. The functions of `triptych.ops` are
the [operators](operators.md), with their attributes, `backend`, `contract` and `options` as
keywords.
"""


def signature(thing):
    """Arguments with their types and defaults, on one line."""
    text = str(inspect.signature(thing))
    text = re.sub(r"\(self(, )?", "(", text)
    return re.sub(r"'([^']*)'", lambda m: m[1] if re.search(r"[A-Z\[|]|^(int|str|bool|float)$", m[1])
                  else m[0], text)


def words(thing):
    """Docstring as prose: indented blocks become code."""
    text = inspect.getdoc(thing) or ""
    lines, code = [], False
    for line in text.splitlines():
        begins = bool(re.match(r"(with .*:$|plan ?[=.]|@|f\.|def |    )", line))
        if begins and not code:
            lines.append("```python")
        if code and not begins:
            lines.append("```")
        code = begins
        lines.append(line if code else textwrap.fill(line, 10 ** 6))
    return "\n".join(lines + ["```"] * code)


def wrapped(text):
    """Prose of at most 100 columns."""
    parts = re.split(r"(```python\n.*?\n```)", text, flags=re.S)
    return "\n".join(
        part if part.startswith("```") else "\n\n".join(
            textwrap.fill(" ".join(paragraph.split()), 98, break_long_words=False,
                          break_on_hyphens=False)
            for paragraph in part.strip().split("\n\n"))
        for part in parts if part.strip())


def members(cls):
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"`.{name}`", member.fget
        elif isinstance(member, classmethod):
            yield f"`{cls.__name__}.{name}{signature(member.__func__).replace('(cls, ', '(')}`", member.__func__
        elif inspect.isfunction(member):
            yield f"`.{name}{signature(member)}`", member


def one(title, thing):
    head = f"{title}\n\n{wrapped(words(thing))}\n"
    if not inspect.isclass(thing):
        return head
    for name, member in members(thing):
        text = wrapped(f"- {name} — {' '.join((inspect.getdoc(member) or '').split())}")
        head += "\n" + textwrap.indent(text, "  ")[2:]
    return head + "\n"


def page():
    parts = [HEAD]
    for module, names in ((triptych, triptych.__all__), (data, ["picture_array"]),
                          (machine, ["to_bf16_bits", "from_bf16_bits"]),
                          (nn, ["Layers", "segmentation_loss"])):
        for name in names:
            thing = getattr(module, name)
            if inspect.ismodule(thing) or not (inspect.isclass(thing) or callable(thing)):
                continue
            call = "" if inspect.isbuiltin(thing) or name in ("Error", "Value") else signature_of(thing)
            title = f"## {module.__name__}.{name}"
            parts.append(one(f"{title}\n\n" + wrapped(f"`{name}{call}`") if call else title, thing))
    text = re.sub(r"[ \t]+\n", "\n", "\n".join(parts))
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def signature_of(thing):
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    try:
        return signature(thing)
    except (TypeError, ValueError):
        return ""


if __name__ == "__main__":
    print(page(), end="")
