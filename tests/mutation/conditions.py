# SPDX-License-Identifier: Apache-2.0
"""Finds the conditions of C++ sources and wraps each into a call that can make it wrong.

A condition is an operand of && or ||, else the whole of an `if` or before `?`, or a comparison that is
returned or gives a bool its value. The sources are formatted by clang-format: a binary operator has spaces
around it, a reference or a template's bracket has not. Loops end by their condition and stay as they are.
"""
import dataclasses
import re

CLOSING = {")": "(", "]": "[", "}": "{"}
OPENING = {opening: closing for closing, opening in CLOSING.items()}
NOT_RUN = re.compile(r"\b(requires|concept|static_assert|template|constexpr|noexcept|using)\b")
COMPARISON = re.compile(r" (==|!=|<=?|>=?) ")


@dataclasses.dataclass(frozen=True)
class Condition:
    start: int
    end: int
    dropped: bool  # the value that it has when it is dropped
    line: int
    text: str


def masked(text):
    """The text with comments and preprocessor lines blank and literals opaque, of the same length."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*"
        r"|R\"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)\"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
        re.DOTALL | re.MULTILINE)

    def mask(match):
        found = match.group()
        filler = "_" if found[0] in "\"'R" else " "
        return "".join("\n" if character == "\n" else filler for character in found)
    return pattern.sub(mask, text)


def matching(code):
    """Position of the partner of each bracket."""
    partner, stack = {}, []
    for at, character in enumerate(code):
        if character in OPENING:
            stack.append(at)
        elif character in CLOSING and stack:
            opening = stack.pop()
            partner[opening], partner[at] = at, opening
    return partner


def is_template_end(code, at):
    return code[at] == ">" and code[at - 1] not in " -=>\n" and code[at + 1] != "="


def template_start(code, at):
    depth = 0
    for position in range(at, max(0, at - 400), -1):
        if code[position] == ">" and code[position - 1] not in " -":
            depth += 1
        elif code[position] == "<" and code[position - 1] != " ":
            depth -= 1
            if depth == 0:
                return position
    return at


def template_end(code, at):
    depth = 0
    for position in range(at, min(len(code), at + 400)):
        if code[position] == "<" and code[position - 1] != " ":
            depth += 1
        elif code[position] == ">" and code[position - 1] not in " -":
            depth -= 1
            if depth == 0:
                return position
    return at


def boundary_before(code, partner, at):
    """Where the operand that ends before `at` starts."""
    position = at - 1
    while position >= 0:
        character = code[position]
        if character == "}" and re.match(r"\s*\n\s*[\w!(*]", code[position + 1:at]):
            return position + 1  # of a block
        if character in CLOSING:
            position = partner.get(position, 0)
        elif character in OPENING or character in ";,":
            return position + 1
        elif character == ":" and code[position - 1] != ":" and code[position + 1] in " \n":
            return position + 1  # of a label or a choice
        elif is_template_end(code, position):
            position = template_start(code, position)
        else:
            for word in ("&&", "||", "return", "co_return", "else", "throw", " = ", " ? ", " : ", "\n? ", " ?\n",
                         " =\n", " :\n", " += ", " |= ", " &= "):
                begin = position - len(word) + 1
                if begin >= 0 and code.startswith(word, begin):
                    if word[0].isalpha() and re.search(r"\w", code[begin - 1] + code[position + 1]):
                        continue
                    if word == "&&" and code[begin - 1] not in " \n":
                        continue  # a reference
                    return position + 1
        position -= 1
    return 0


def boundary_after(code, partner, at):
    """Where the operand that starts at `at` ends."""
    position = at
    while position < len(code):
        character = code[position]
        if character in OPENING:
            position = partner.get(position, len(code))
        elif character in CLOSING or character in ";,":
            return position
        elif character == "<" and code[position - 1] not in " <\n" and code[position + 1] not in "<= ":
            position = template_end(code, position)
        elif code.startswith(("&&", "||"), position) and code[position - 1] in " \n":
            return position
        elif character in "?:" and code[position - 1] in " \n" and code[position + 1] in " \n":
            return position
        position += 1
    return len(code)


class Finder:
    def __init__(self, text):
        self.text = text
        self.code = masked(text)
        self.partner = matching(self.code)
        self.found = {}

    def statement_start(self, at):
        """The start of the statement, looking out of the parentheses that `at` is in."""
        position = at
        while position > 0:
            character = self.code[position - 1]
            if character in ";{}":
                return position
            if character == ")":
                position = self.partner.get(position - 1, 0)
            else:
                position -= 1
        return 0

    def add(self, start, end, dropped):
        piece = self.code[start:end]
        start += len(piece) - len(piece.lstrip())
        end = start + len(piece.strip())
        piece = piece.strip()
        top = re.sub(r"[(\[{].*", "", piece, flags=re.DOTALL)
        if not piece or re.search(r"(?<![=!<>]) = |^(const|auto|else)\b|^#", top):
            return
        if piece in ("true", "false") or re.match(r"^(k[A-Z]\w*|std::is_\w+<.*>)$", piece):
            return
        if NOT_RUN.search(self.code[self.statement_start(start):start] + top):
            return
        line = self.text.count("\n", 0, start) + 1
        self.found.setdefault((start, end), Condition(start, end, dropped, line, self.text[start:end]))

    def operands(self):
        for match in re.finditer(r"(?<=[ \n])(&&|\|\|)(?=[ \n])(?!\s*[{;]| \.\.\.)", self.code):
            if self.code[:match.start()].endswith("... "):
                continue  # a fold expression
            conjunction = match.group() == "&&"
            before = boundary_before(self.code, self.partner, match.start())
            after = boundary_after(self.code, self.partner, match.end())
            self.add(before, match.start(), conjunction)
            self.add(match.end(), after, conjunction)

    def is_compound(self, start, end):
        position = start
        while position < end:
            if self.code[position] in OPENING:
                position = self.partner.get(position, end)
            elif re.match(r"(?<=[ \n])(&&|\|\|)(?=[ \n])", self.code[position - 1:position + 3][1:]) or (
                    self.code.startswith(("&&", "||"), position) and self.code[position - 1] in " \n"):
                return True
            position += 1
        return False

    def ifs(self):
        for match in re.finditer(r"\bif \(", self.code):
            start, end = match.end(), self.partner.get(match.end() - 1)
            if end is None:
                continue
            depth = start
            for position in range(start, end):
                if position < depth:
                    continue
                if self.code[position] in OPENING:
                    depth = self.partner.get(position, end)
                elif self.code[position] == ";":
                    start = position + 1
            if not self.is_compound(start, end):
                self.add(start, end, False)

    def choices(self):
        for match in re.finditer(r"(?<=[ \n])\?(?=[ \n])", self.code):
            start = boundary_before(self.code, self.partner, match.start())
            if not self.is_compound(start, match.start()) and self.code[start - 2:start] not in ("&&", "||"):
                self.add(start, match.start(), False)

    def comparisons(self):
        for match in re.finditer(r"\breturn (?=[^;{}?]*;)|\bbool \w+ = (?=[^;{}?]*;)", self.code):
            end = boundary_after(self.code, self.partner, match.end())
            if self.code[end] != ";" or self.is_compound(match.end(), end):
                continue
            piece, depth, top = self.code[match.end():end], match.end(), ""
            for position in range(match.end(), end):
                if position < depth:
                    continue
                top += self.code[position]
                if self.code[position] in OPENING:
                    depth = self.partner.get(position, end)
            if COMPARISON.search(top) or re.match(r"!\w", piece):
                self.add(match.end(), end, match.group().startswith("return"))

    def conditions(self):
        self.operands()
        self.ifs()
        self.choices()
        self.comparisons()
        return sorted(self.found.values(), key=lambda one: (one.start, -one.end))


def conditions_of(text):
    return Finder(text).conditions()


def instrumented(text, conditions, first):
    """The text with condition i as number first + i. Lines keep their numbers."""
    marks = []
    for i, one in enumerate(conditions):
        call = "::triptych::mutation::condition({}, {}, static_cast<bool>(".format(
            first + i, "true" if one.dropped else "false")
        marks.append((one.start, 1, -one.end, call))
        marks.append((one.end, 0, -one.start, "))"))
    pieces, last = ['#include "tests/mutation/switch.h"\n#line 1\n'], 0
    for at, _, _, mark in sorted(marks):
        pieces += [text[last:at], mark]
        last = at
    return "".join(pieces) + text[last:]
