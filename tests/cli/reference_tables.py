"""Generated parts of docs/reference/cli.md and docs/reference/commands, from `triptych help --json`.

A part stands between the lines `<!-- options of COMMAND -->`, `<!-- commands -->` or `<!-- common options -->` and the
line `<!-- end -->`.

    reference_tables.py PROGRAM SOURCE_DIR           writes the parts
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"(?s)(<!-- (options of [a-z -]+|commands|common options) -->\n).*?(<!-- end -->)")
COMMON = "Common options"


def commands_of(program):
    """The commands by their paths, in the order of the help."""
    text = subprocess.run([program, "help", "--json"], capture_output=True, text=True, check=True).stdout
    return {command["path"]: command for command in json.loads(text)["results"]}


def cell(text):
    return re.sub(r"([|*<_])", r"\\\1", text).replace("`", "\\`")


def values_of(option):
    values = ", ".join(f"`{value}`" for value in option["values"]) or cell(option["range"])
    name = f"`{option['value']}`" if option["value"] else ""
    return f"{name}: {values}" if name and values else name or values


def row(option):
    name = f"`{option['name']}`" if not option["short_name"] else f"`{option['short_name']}`, `{option['name']}`"
    facts = [option["help"]] + ["required"] * option["required"] + ["may be repeated"] * option["repeated"]
    default = f"`{option['default']}`" if option["default"] else ""
    value = values_of(option) if option["name"].startswith("--") else ""
    return f"| {name} | {value} | {default} | {cell('; '.join(facts))} |"


def table(options):
    return ["| option | value | default | meaning |", "|---|---|---|---|", *map(row, options)]


def options_of(command):
    lines = [f"{command['help']}.", "", "```", command["usage"], "```", ""]
    if command["examples"]:
        lines += ["Examples:", "", "```", *command["examples"], "```", ""]
    if command["arguments"]:
        lines += ["| argument | meaning |", "|---|---|"]
        lines += [f"| `{one['name']}` | {cell(one['help'])} |" for one in command["arguments"]] + [""]
    headings = [one["heading"] for one in command["options"]]
    for heading in dict.fromkeys(headings):
        rows = [one for one in command["options"] if one["heading"] == heading]
        if heading != COMMON:
            lines += [f"**{heading}**", "", *table(rows), ""]
    return lines


def index(commands):
    lines = []
    below = [commands[name] for name in commands[""]["commands"]]
    for heading in dict.fromkeys(one["heading"] for one in below):
        lines += [f"## {heading}", ""]
        for one in below:
            if one["heading"] == heading:
                lines += [f"### `triptych {one['path']}`", "",
                          f"{one['help']}. [Options and examples](commands/{one['path']}.md)", ""]
    return lines


def renewed(program, page):
    commands = commands_of(program)
    common = [one for one in commands["train"]["options"] if one["heading"] == COMMON]

    def lines_of(part):
        if part == "commands":
            return index(commands)
        if part == "common options":
            return table(common) + [""]
        return options_of(commands[part.removeprefix("options of ")])

    return BLOCK.sub(lambda found: found[1] + "\n" + "\n".join(lines_of(found[2])) + "\n" + found[3], page)


def pages(source):
    folder = source / "docs/reference"
    return [folder / "cli.md", *sorted((folder / "commands").glob("*.md"))]


if __name__ == "__main__":
    for path in pages(pathlib.Path(sys.argv[2])):
        path.write_text(renewed(sys.argv[1], path.read_text()))
