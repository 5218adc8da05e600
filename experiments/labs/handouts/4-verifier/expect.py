"""What the manual promises, in exact numbers, as lines of a test.

  from expect import product, narrow, lines
  print(lines(".expect y", product(x, w)))    # x, w: lists of rows, of numbers that bf16 holds
"""
# SPDX-License-Identifier: Apache-2.0
import math
from fractions import Fraction


def rounded(exact, bits):
    """An exact number to so many significant bits, to nearest, ties to even."""
    if exact == 0:
        return 0.0
    exponent = math.floor(math.log2(abs(exact)))
    if Fraction(2)**exponent > abs(exact):  # log2 is not exact
        exponent -= 1
    quantum = Fraction(2)**(exponent - bits + 1)
    return float(round(exact / quantum) * quantum)


def multiply_add(x, w, total):
    """fma(x, w, total): one rounding, to binary32."""
    if not all(map(math.isfinite, (x, w, total))):
        return x * w + total
    return rounded(Fraction(x) * Fraction(w) + Fraction(total), 24)


def product(x, w, start=None):
    """y = start + x w; each number one chain in ascending k."""
    y = [list(row) for row in start] if start else [[0.0] * len(w[0]) for _ in x]
    for m, row in enumerate(x):
        for c in range(len(w[0])):
            for k, number in enumerate(row):
                y[m][c] = multiply_add(number, w[k][c], y[m][c])
    return y


def narrow(rows):
    """binary32 to bf16."""
    return [[rounded(Fraction(v), 8) if math.isfinite(v) else v for v in row] for row in rows]


def lines(begin, rows):
    """begin: ".values x" or ".expect y"."""
    return "\n".join(begin + " " + " ".join(f"{v:.9g}" for v in row) for row in rows)


if __name__ == "__main__":
    X = [[4 * m + k + 1 for k in range(4)] for m in range(4)]
    W = [[1, 2, 0, 1], [0, 1, 3, 1], [2, 0, 1, 1], [1, 1, 0, 2]]
    print(lines(".values x", X), lines(".values w", W), lines(".expect y", product(X, W)), sep="\n")
