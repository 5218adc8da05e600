"""Tables of options in docs/reference/cli.md, from the program's help.

A table stands between the lines `<!-- options of COMMAND -->` and `<!-- end of options -->`.

    reference_tables.py PROGRAM SOURCE_DIR           writes the tables
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"(?s)(<!-- options of ([a-z -]+) -->\n).*?(<!-- end of options -->)")
OPTION = re.compile(r"^  (?:-\w,)?(--[a-z-]+)(?: ([A-Z]\S*(?: \.\.\.)?))? *(.*)$")
TYPES = {"INT": "whole number", "UINT": "whole number", "FLOAT": "number", "TEXT": "text", "FILE": "file",
         "FOLDER": "directory"}


def options(program, command):
    """Groups of the help with their rows: name, values, default, help."""
    text = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    groups = []
    for line in text.splitlines():
        if line and not line.startswith(" ") and line.endswith(":"):
            groups.append((line[:-1], []))
        elif found := OPTION.match(line):
            name, kind, meaning = found.groups()
            groups[-1][1].append([name, *values_of(kind or ""), meaning or ""])
        elif line.startswith(" " * 20) and groups[-1][1] and not groups[-1][1][-1][3]:
            groups[-1][1][-1][3] = line.strip()
    return [(heading, [row for row in rows if row[0] != "--help"]) for heading, rows in groups]


def values_of(kind):
    """The values and the default of `INT:1..8=4`."""
    word, default = (kind.split("=", 1) + [""])[:2]
    several = word.endswith(" ...")
    name, limits = (word.removesuffix(" ...").split(":", 1) + [""])[:2]
    if limits.startswith("{"):
        return ", ".join(f"`{value}`" for value in limits[1:-1].split(",")), default
    values = TYPES.get(name, name.lower()) + (f", {limits}" if limits else "") + (", repeated" if several else "")
    return values or "flag", default


def cell(text):
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")


def tables(program, command):
    lines = []
    for heading, rows in options(program, command):
        if not rows:
            continue
        lines += ["" if lines else None, f"**{heading}**", "", "| option | values | default | meaning |", "|---|---|---|---|"]
        for name, values, default, meaning in rows:
            default = f"`{default}`" if default else ""
            lines.append(f"| `{name}` | {cell(values)} | {default} | {cell(meaning)} |")
    return "\n".join(line for line in lines if line is not None) + "\n"


def renewed(program, page):
    return BLOCK.sub(lambda found: f"{found[1]}\n{tables(program, found[2])}\n{found[3]}", page)


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[2]) / "docs/reference/cli.md"
    path.write_text(renewed(sys.argv[1], path.read_text()))
