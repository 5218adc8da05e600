"""Pages of the documentation as tests: their blocks of code, commands and recorded output.

A block marked `sh` is run; `sh 4` must fail with exit code 4. One marked `text` shows the output of the commands before
it, one marked `text rates` an output with measured values. "..." stands for any text. One marked `cuda NAME` is a file.
"""
# SPDX-License-Identifier: Apache-2.0
import re

NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
TIME = NUMBER + r"\s*(?:[mun]?s|min)\b"  # differ from run to run, as rates do
RATE = r"\s*images/s"
SIZE = r"\s*[KMG]iB\b"  # depend on the processor's vectors


def blocks(page):
    """Heading, mark and lines of each block of code."""
    heading, found, inside = "", [], None
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            inside = None if inside is not None else []
            if inside is not None:
                found.append((heading, line[3:], inside))
        elif inside is not None:
            inside.append(line)
        elif line.startswith("## "):
            heading = line[3:]
    return found


def commands_in(lines):
    """The block's commands, each on one line."""
    return [command.split("#")[0].strip() for command in "\n".join(lines).replace("\\\n", " ").splitlines()]


def pattern_of(line, number=r"[\d.e-]+"):
    """Matches the line with any numbers and spaces."""
    text = re.escape(re.sub(r"\s+", " ", line.strip())).replace(r"\ ", r"\s+")
    text = text.replace(r"\.\.\.", ".*")
    return re.sub(r"\d+(\\\.\d+)?(e\\?-?\d+)?", lambda _: number, text)


def masked(line):
    """The line without times, fingerprints and rulers."""
    line = re.sub(TIME, "TIME", line)
    return re.sub(r"-{9,}", "---", re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b", "HASH", line))


def close(shown, real, unit, rates):
    """Whether a recorded number still holds: counts exactly, scores and losses by 0.03, rates in any case."""
    if re.match(RATE, unit) or rates and ("." in shown or re.match(SIZE, unit)):
        return True
    if "." not in shown:
        return shown == real
    allowed = 0.3 * float(shown) if re.match(SIZE, unit) else 0.03
    return abs(float(shown) - float(real)) <= allowed


def holds(shown, said, rates=False):
    """Whether some line of the real output is the recorded one, apart from times and fingerprints, and with `rates` from
    numbers with a point and sizes."""
    shown = masked(shown)
    pattern = re.compile(pattern_of(shown, f"({NUMBER})"))
    numbers = [(number[0], shown[number.end():]) for number in re.finditer(NUMBER, shown)]
    for line in said.splitlines():
        found = pattern.fullmatch(masked(line.strip()))
        if found and all(close(old, new, unit, rates) for (old, unit), new in zip(numbers, found.groups())):
            return True
    return False
