"""Formulas that a student writes as text, such as "2 * (N - 1) * (alpha + S / (N * beta))".

Numbers, names, brackets, and from the weakest to the strongest:
  a || b, a && b                         1 or 0
  a == b, !=, <, <=, >, >=               1 or 0
  a + b, a - b, a * b, a / b, a % b      / does not round, a % b has the sign of b: -1 % 4 is 3
  -a, ceil(a), floor(a), log2(a), min(a, b), max(a, b)
"""
# SPDX-License-Identifier: Apache-2.0
import math
import operator
import re

LONGEST = 1000  # characters
DEEPEST = 50  # brackets and signs within each other
NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
COMPARISONS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt,
               ">": operator.gt}
SUMS = {"+": operator.add, "-": operator.sub}
PRODUCTS = {"*": operator.mul, "/": operator.truediv, "%": lambda a, b: a - b * rounded(math.floor, a / b)}


def rounded(function, value):
    return float(function(value)) if math.isfinite(value) else value


def log2(value):
    return math.log2(value) if value > 0 else -math.inf if value == 0 else math.nan


FUNCTIONS = {"ceil": (1, lambda a: rounded(math.ceil, a)), "floor": (1, lambda a: rounded(math.floor, a)),
             "log2": (1, log2), "min": (2, min), "max": (2, max)}


class Refused(Exception):
    """The submission, or a command on it, is wrong. The text states the problem."""


class Formula:
    """A formula in the variables `names`. Raises Refused, with the place, for a text that is none and for other names."""

    def __init__(self, text, names):
        self.text, self.names, self.at, self.depth = text, names, 0, 0
        if len(text) > LONGEST:
            raise Refused(f"a formula of more than {LONGEST} characters")
        self.value = self.disjunction()
        self.skip_blanks()
        if self.at < len(text):
            equal = '; "is equal to" is ==' if text[self.at] == "=" else ""
            self.fail(f"an operator or the end was expected{equal}")

    def __call__(self, **variables):
        """The value. Raises Refused, with the place, for a division by zero and a value that is not finite."""
        value = self.value(variables)
        if not math.isfinite(value):
            self.fail("the value is not finite")
        return value

    def disjunction(self):
        return self.chain(self.conjunction, {"||": lambda a, b: a != 0 or b != 0})

    def conjunction(self):
        return self.chain(self.comparison, {"&&": lambda a, b: a != 0 and b != 0})

    def comparison(self):
        left = self.sum()
        name = self.take_one(COMPARISONS)
        if not name:
            return left
        right, compare = self.sum(), COMPARISONS[name]
        return lambda variables: float(compare(left(variables), right(variables)))

    def sum(self):
        return self.chain(self.product, SUMS)

    def product(self):
        return self.chain(self.factor, PRODUCTS)

    def chain(self, operand, operators):
        """Operands between operators of one strength, from left to right."""
        first, rest = operand(), []
        while name := self.take_one(operators):
            rest.append((operators[name], self.nonzero(operand()) if name in "/%" else operand()))

        def value(variables):
            result = first(variables)
            for function, each in rest:
                result = float(function(result, each(variables)))
            return result
        return value if rest else first

    def nonzero(self, divisor):
        behind = self.at

        def value(variables):
            result = divisor(variables)
            if result == 0:
                self.fail("a division by zero", behind)
            return result
        return value

    def factor(self):
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail("too many brackets within each other")
        negative = self.take("-")
        value = self.factor() if negative else self.primary()
        self.depth -= 1
        return (lambda variables: -value(variables)) if negative else value

    def primary(self):
        if self.take("("):
            value = self.disjunction()
            self.expect(")")
            return value
        if self.at == len(self.text):
            self.fail("the formula ends too early")
        begin = self.at
        if number := self.match(NUMBER):
            return self.constant(float(number))
        if name := self.match(NAME):
            return self.function(name) if self.take("(") else self.variable(name, begin)
        self.fail("a number, a name or a bracket was expected")

    def constant(self, number):
        if not math.isfinite(number):
            self.fail("no number")
        return lambda variables: number

    def variable(self, name, begin):
        if name not in self.names:
            known = ", ".join(sorted(self.names))
            self.fail(f'"{name}" is unknown; known are {known}', begin)
        return lambda variables: float(variables[name])

    def function(self, name):
        if name not in FUNCTIONS:
            self.fail(f"no function {name}; there are ceil, floor, log2, min and max")
        count, function = FUNCTIONS[name]
        arguments = [self.disjunction()]
        for _ in range(count - 1):
            self.expect(",")
            arguments.append(self.disjunction())
        self.expect(")")
        return lambda variables: float(function(*(each(variables) for each in arguments)))

    def skip_blanks(self):
        while self.text[self.at:self.at + 1].isspace():
            self.at += 1

    def match(self, pattern):
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found and found[0]

    def take(self, word):
        self.skip_blanks()
        found = self.text.startswith(word, self.at)
        self.at += len(word) if found else 0
        return found

    def take_one(self, words):
        return next((word for word in words if self.take(word)), "")

    def expect(self, word):
        if not self.take(word):
            self.fail(f'"{word}" was expected')

    def fail(self, why, at=None):
        place = (self.at if at is None else at) + 1
        raise Refused(f'in "{self.text[:80]}", at character {place}: {why}')


def evaluate(text, variables):
    """The value of a formula. Raises Refused."""
    return Formula(text, variables)(**variables)
