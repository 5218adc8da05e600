"""Documents and comments are written plainly: counts habits that make English hard to read.

  plain_english.py SOURCE_DIR               checks the groups below; exit code 1 when one is above its limit
  plain_english.py SOURCE_DIR FILE...       prints the score of each file and its worst sentences

A score is a number of habits per 1,000 words of prose, tables and comments. Code does not count. Records of decisions
keep their text, so that only their titles and first paragraphs count.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys

# A habit, and the remedy that the report prints.
HABITS = {
    "semicolon": (r";", "write two sentences"),
    "what-clause": (r"\bwhat(?:ever)?\b(?! is\b[^.]*\?)", "use a noun: 'the error', not 'what is wrong'"),
    "relative clause": (r"\b(?:whose|of which|to whom|by which|in which)\b", "write a second sentence"),
    "inversion": (r"(?-i:(?:^|[.:]\s+)(?:Of|What(?! is\b[^.]*\?)|Whose|Behind|So many|From where)\b)",
                  "begin with the subject"),
    "hidden agent": (r"\b(?:is|are|was|were|be) (?:told|named|kept|taken|given|said|asked|judged|held|heard)\b",
                     "say who does it: 'Triptych prints'"),
    "unusual word": (r"\b(?:foretell\w*|foretold|rivals?|riddle\w*|in silence|all the same|but for|goes? on|went on|"
                     r"belongs? into|is another|lies? there|at hand|anew|alike|beside)\b", "use the term of the field"),
}
LONG = 40  # words; a sentence above counts as one habit

# Limit, and the files of a group.
GROUPS = {
    "start and guides": (6, ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md",
                             "docs/start/*.md", "docs/guides/*.md"]),
    "reference": (8, [f"docs/reference/{name}.md" for name in ("columns", "exit-codes", "images-and-masks", "json",
                                                              "mmu", "onnx", "operators", "python")]),
    "directories": (8, ["core/**/README.md", "backends/**/README.md", "parallel/**/README.md",
                        "systolic/**/README.md", "tests/README.md"]),
    "hardware and labs": (8, ["docs/hardware/*.md", "experiments/labs/handouts/*/README.md"]),
    "concepts": (8, ["docs/concepts/*.md"]),
    "results": (8, ["docs/results/*.md", "docs/contributing/*.md"]),
    "openings of decisions": (4, ["docs/decisions/*.md"]),
}
LIMITS = {"core": 2, "backends": 2, "parallel": 2, "systolic": 4, "experiments": 4, "tests": 4}
COMMENTS = {f"comments of {top}": (limit, [f"{top}/**/*.{kind}" for kind in ("h", "cpp", "cuh", "cu", "sv")])
            for top, limit in LIMITS.items()}


def comments(source):
    """The comments of a C++, CUDA or SystemVerilog source as paragraphs of prose, without licences and quoted code."""
    paragraphs, before = [], -2
    for number, line in enumerate(source.splitlines()):
        found = re.search(r"(?:^|\s)//[/<]*\s*(.*)$", re.sub(r'"(?:[^"\\]|\\.)*"(?=.*//)', '""', line))
        if not found or "SPDX" in line:
            continue
        continues = before == number - 1 and line.lstrip().startswith("//")
        paragraphs += [[found[1]]] if not continues else []
        paragraphs[-1] += [found[1]] if continues else []
        before = number
    return "\n\n".join("\n".join(lines) for lines in paragraphs)


def opening(record):
    """Title and first paragraph, without notes on other records."""
    paragraphs = [p for p in record.split("\n\n") if not re.match(r"## |Supersede|\[Decision|The table became", p)]
    return "\n\n".join(paragraphs[:2])


def prose_of(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        return comments(text)
    return opening(text) if re.match(r"\d{4}-", path.name) else text


def prose(text):
    """Markdown without code, targets of links and marks; each cell of a table is a sentence of its own."""
    text = re.sub(r"^ *```.*?^ *```", " ", text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->", " ", text, flags=re.S)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^ *\|[-:| ]+\| *$", " ", text, flags=re.M)
    text = re.sub(r"^( *(?:[#>*-]+|\d+\.) )", r"\n\n", text, flags=re.M)
    return text.replace("|", "\n\n")


def sentences(text):
    for part in re.split(r"(?<=[.!?:])\s+|\n\s*\n", prose(text)):
        part = " ".join(part.split())
        if len(re.findall(r"[A-Za-z]+", part)) >= 3:
            yield part


def words_in(sentence):
    return len(re.findall(r"[A-Za-z][A-Za-z'-]*", sentence))


def habits_in(sentence):
    found = [name for name, (pattern, _) in HABITS.items() for _ in re.findall(pattern, sentence, re.I)]
    return found + (["long sentence"] if words_in(sentence) > LONG else [])


def measure(texts):
    """Habits per 1,000 words, and the sentences that have some, the worst first."""
    counted = [(habits_in(sentence), sentence) for text in texts for sentence in sentences(text)]
    words = sum(words_in(sentence) for _, sentence in counted)
    worst = sorted((entry for entry in counted if entry[0]), key=lambda entry: -len(entry[0]))
    return 1000 * sum(len(habits) for habits, _ in counted) / max(words, 1), worst


def advice(habits):
    return "; ".join(f"{name}: {HABITS[name][1] if name in HABITS else 'split it'}" for name in dict.fromkeys(habits))


def check_itself():
    """Sentences of the kind that the measure is for are counted, plain ones are not."""
    awkward = ["What is wrong with a folder says `data describe`.", "A rank that dies is named; a run goes on.",
               "Of 16 bytes per parameter 12 / n stay.", "A file in which nothing lies is told of.",
               "The rival is another on each machine."]
    plain = ["`data describe` reports problems in a folder.", "Every rank reports the failed one.", "What is a rank?",
             "Run `a; b` in a shell."]
    for sentence in awkward:
        assert habits_in(prose(sentence)), sentence
    for sentence in plain:
        assert not habits_in(prose(sentence)), sentence
    assert measure(["Plain words here.\n\n```\nwhat; whose\n```\n"])[0] == 0
    source = ('int i;  ///< counts what is\n       ///< left; "a; b"\n'
              'f("// what");  // SPDX-License-Identifier: X\ni++; j++;\n')
    assert comments(source) == 'counts what is\nleft; "a; b"', comments(source)


def main():
    check_itself()
    root = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:]:
        score, worst = measure([prose_of(pathlib.Path(name))])
        print(f"{score:5.1f}  {name}")
        for habits, sentence in worst[:5]:
            print(f"         {advice(habits)}\n         > {sentence[:200]}")
    if sys.argv[2:]:
        return 0
    failed = False
    for group, (limit, patterns) in {**GROUPS, **COMMENTS}.items():
        files = sorted({path for pattern in patterns for path in root.glob(pattern)})
        assert files, f"no files in {group}"
        score, worst = measure([prose_of(path) for path in files])
        print(f"{group}: {score:.1f} habits per 1,000 words in {len(files)} files (limit {limit})")
        if score > limit:
            failed = True
            for habits, sentence in worst[:15]:
                print(f"  {advice(habits)}\n  > {sentence[:240]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
