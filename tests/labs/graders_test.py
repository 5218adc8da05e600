"""Libraries of the labs' graders, without the program: formulas, schedules, hidden cases, and the faults of lab 4.

  graders_test.py
"""
# SPDX-License-Identifier: Apache-2.0
import fractions
import importlib.util
import math
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GRADERS = ROOT / "experiments/labs/graders"
SOLUTIONS = ROOT / "tests/labs/solutions"
sys.path.insert(0, str(GRADERS))
sys.dont_write_bytecode = True

from formula import Refused, evaluate  # noqa: E402
from grading import Ending, Hidden, f32, f32_bits  # noqa: E402
from schedule import bytes_by_link, first_wrong_sum, read_schedule, run_on  # noqa: E402

NAMES = {"N": 4, "r": 1, "alpha": 0.5}
RING = (SOLUTIONS / "8-ring/ring.schedule").read_text()


def grader(name):
    spec = importlib.util.spec_from_file_location(name, GRADERS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refusal(function, *arguments):
    try:
        return f"accepted: {function(*arguments)}"
    except Refused as refused:
        return str(refused)


class Formulas(unittest.TestCase):
    def check(self, values):
        for text, value in values.items():
            self.assertEqual(evaluate(text, NAMES), value, text)

    def test_operators_bind_as_in_mathematics(self):
        self.check({"2 + 3 * N": 14, "(2 + 3) * N - -r": 21, "1 / N / 2": 0.125, "N - 1 - r": 2, "1.5e1 * alpha": 7.5,
                    "ceil(9 / N) + floor(9 / N) + log2(N) + min(r, N) + max(r, N)": 12, " .5 ": 0.5})

    def test_a_remainder_has_the_sign_of_the_divisor(self):
        self.check({"(r - 2) % N": 3, "(r + N) % N": 1, "-9 % N": 3})

    def test_conditions_are_one_or_zero(self):
        self.check({"r > 0 && r < N": 1, "r == 0 || r >= N": 0, "r != 0 && N <= 4 || 0": 1, "2 && 3": 1})

    def test_the_longest_formula_has_a_value(self):
        self.check({"+".join(["N"] * 500): 2000, "(" * 49 + "1" + ")" * 49: 1})

    def test_other_texts_are_refused_with_the_place(self):
        for text, why in {
                "2 * (N - 1": 'in "2 * (N - 1", at character 11: ")" was expected',
                "2 N": 'in "2 N", at character 3: an operator or the end was expected',
                "r = 1": 'in "r = 1", at character 3: an operator or the end was expected; "is equal to" is ==',
                "S / 2": 'in "S / 2", at character 1: "S" is unknown; known are N, alpha, r',
                "2 * S + 1": 'in "2 * S + 1", at character 5: "S" is unknown; known are N, alpha, r'}.items():
            self.assertEqual(refusal(evaluate, text, NAMES), why)
        for text, why in {"1 / (r - 1)": "a division by zero", "5 % 0": "a division by zero", "log2(0)": "not finite",
                          "log2(-1)": "not finite", "1e300 * 1e300": "not finite", "1e999": "no number",
                          "sin(1)": "no function sin", "": "ends too early", "min(1)": '"," was expected',
                          "²": "a number, a name or a bracket was expected",
                          "(" * 400: "too many brackets", "-" * 400: "too many brackets",
                          "1" * 2000: "more than 1000"}.items():
            self.assertIn(why, refusal(evaluate, text, NAMES))


class Schedules(unittest.TestCase):
    def test_a_ring_ends_with_the_sum_everywhere(self):
        for ranks in (1, 2, 3, 5, 8):
            steps = read_schedule(RING, ranks)
            self.assertEqual(first_wrong_sum(steps, ranks), "")
            for buffer in run_on(steps, [[float(1 << rank)] * 11 for rank in range(ranks)]):
                self.assertEqual(list(buffer), [(1 << ranks) - 1] * 11)

    def test_the_reference_schedules_of_the_grader_are_those_of_the_solution(self):
        ring = grader("8-ring")
        for ranks in (2, 3, 7):
            self.assertEqual(ring.ring_steps(ranks), read_schedule(RING, ranks))
            self.assertEqual(first_wrong_sum(ring.server_steps(ranks), ranks), "")

    def test_a_step_sends_the_content_from_before_it(self):
        after = run_on(read_schedule("steps 1\nsend 0 to 1 - r replace\n", 2), [[1, 2], [3, 4]])
        self.assertEqual([list(buffer) for buffer in after], [[3, 2], [1, 4]])

    def test_sums_are_rounded_to_float32(self):
        after = run_on(read_schedule("steps 1\nsend all to 0 add if r == 1\n", 2), [[16777216.0], [1.0]])
        self.assertEqual(after[0][0], 16777216)

    def test_bytes_are_counted_by_link(self):
        sent = bytes_by_link(read_schedule("steps 1\nsend all to 0 add if r > 0\n", 3), 3, 10)
        self.assertEqual(sent, [[0, 0, 0], [40, 0, 0], [40, 0, 0]])
        sent = bytes_by_link(read_schedule("steps 1\nsend r to (r + 1) % N add\n", 3), 3, 10)
        self.assertEqual([max(row) for row in sent], [16, 12, 12])

    def test_a_wrong_sum_is_described(self):
        self.assertEqual(first_wrong_sum(read_schedule("steps 2\nsend 0 to 1 add if r == 0\n", 2), 2),
                         "with 2 ranks, after the last step, chunk 0 of rank 0 holds contributions of rank 0, "
                         "and should hold that of each rank once")
        self.assertEqual(first_wrong_sum(read_schedule("steps 2\nsend all to 1 add if r == 0\n"
                                                       "send all to 0 add if r == 1 && s == 0\n", 2), 2),
                         "with 2 ranks, after the last step, chunk 0 of rank 1 holds contributions of rank 0 (2 times), "
                         "1 (2 times), and should hold that of each rank once")
        steps = read_schedule("steps 1\nsend 1 to 0 replace if r == 1\nsend 0 to 0 add if r == 1\nsteps 1\n", 2)
        self.assertIn("; that of rank 0 was there until step 1 of all 2 replaced it", first_wrong_sum(steps, 2))

    def test_other_texts_are_refused_with_their_line(self):
        for text, why in {
                "# nothing\n": 'the schedule has no "steps" line',
                "send 0 to 1 add": 'line 1: stands before the first "steps" line',
                "steps 1\n\nsend 4 to 1 add": 'line 3: "4" is 4, and chunks are 0 to 3 (N = 4, r = 0, s = 0)',
                "steps 1\nsend 0 to r add": "line 2: a rank sends to itself (N = 4, r = 0, s = 0)",
                "steps N / 8\n": 'line 1: "N / 8" is 0.5 for N = 4; a phase has 0 to 1000 steps',
                "// a ring\nsteps 1\n": 'line 1: "// a ring" begins with neither "steps" nor "send"; a comment begins with #',
                "steps 1\nsend 0 to 1 add if r = 0\n":
                    'line 2: in "r = 0", at character 3: an operator or the end was expected; "is equal to" is == '
                    "(N = 4, r = 0, s = 0)"}.items():
            self.assertEqual(refusal(read_schedule, text, 4), why)
        for text, why in {"steps 1\nsend 0 to 1": "says not what the receiver does", "steps 1\nsend 0 add": "says not to whom",
                          "\n" * 500: "line 201: a schedule of more than 200 lines",
                          "steps 1000\n" + "send all to (r + 1) % N add\n" * 20: "more than 50000 messages"}.items():
            self.assertIn(why, refusal(read_schedule, text, 4))
        self.assertEqual(len(read_schedule("steps 1\n" + "\n" * 199, 4)), 1)


class VectorReference(unittest.TestCase):
    def setUp(self):
        self.lab = grader("10-vector")

    def nearest(self, value):
        """The float32 nearest to a fraction, ties to even."""
        low = f32(float(value))
        step = 2.0 ** (math.frexp(low)[1] - 24)
        near = sorted((abs(fractions.Fraction(each) - value), f32_bits(each) % 2, each) for each in (low - step, low, low + step))
        return near[0][2]

    def test_a_fused_product_is_rounded_once(self):
        hidden = Hidden(3, 10)
        cases = [[f32(hidden.uniform(-2, 2) * 2.0 ** (hidden.below(40) - 20)) for _ in range(3)] for _ in range(2000)]
        cases.append([1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60])  # half a unit and a little: rounding twice loses the little
        for a, b, c in cases:
            exact = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
            self.assertEqual(self.lab.fma(a, b, c), self.nearest(exact), (a, b, c))

    def test_sums_are_halved(self):
        self.assertEqual(self.lab.halved([2.0**24, 1.0, -2.0**24, 1.0]), 2.0)  # row by row it would be 1

    def test_three_steps_give_the_inverse_root(self):
        for v in (1e-5, 0.3, 1.0, 7.0, 1e6):
            self.assertAlmostEqual(self.lab.inverse_root(f32(v)) * math.sqrt(f32(v)), 1, delta=3e-7)


class Documents(unittest.TestCase):
    def results_of(self, output):
        return Ending({"good": True, "status": 0, "said": "", "output": output, "error": "", "printed": ""}).results()

    def test_results_are_records_or_one_record(self):
        self.assertEqual(self.results_of('{"results": [{"a": 1}]}'), [{"a": 1}])
        self.assertEqual(self.results_of('{"results": {"machines": []}}'), {"machines": []})  # of compare
        for output in ("", "[1]", "{}", '{"results": []}', '{"results": "text"}', "[" * 100000):
            self.assertIn("no document", refusal(self.results_of, output))


class HiddenCases(unittest.TestCase):
    def test_numbers_are_those_of_the_programs_random_stream(self):
        hidden = Hidden(1, 4)
        self.assertEqual([hidden.bits() for _ in range(5)],
                         [3140572256, 1890473413, 1605976525, 2919565505, 3889778183])
        hidden = Hidden(2**64 - 1, 6)
        self.assertTrue(all(-1 <= value < 1 for value in hidden.floats(100, 1)))
        self.assertEqual(sorted(hidden.shuffled(range(9))), list(range(9)))


class SeededFaults(unittest.TestCase):
    def setUp(self):
        self.lab = grader("4-verifier")
        self.modules = {name: (ROOT / f"systolic/rtl/{name}.sv").read_text() for name in self.lab.modules_with_faults()}

    def test_each_is_once_in_the_modules(self):
        seeded = self.lab.seed_faults(self.modules)
        self.assertEqual(set(seeded), set(self.modules))
        for number, fault in enumerate(self.lab.FAULTS, 1):
            self.assertIn(f"lab_faults::selected == {number})", seeded[fault.module])
        self.assertTrue(seeded["mmu_arithmetic_pkg"].startswith("package lab_faults;"))

    def test_a_changed_module_is_an_error(self):
        self.modules["mmu_tokens"] = self.modules["mmu_tokens"].replace("8'(take)", "8'(took)")
        with self.assertRaisesRegex(ValueError, "tokens_stay: .* should be once in mmu_tokens"):
            self.lab.seed_faults(self.modules)

    def test_hidden_faults_are_two_of_each_place_and_never_shown(self):
        for seed in range(1, 20):
            drawn = self.lab.hidden_faults(Hidden(seed, 4))
            self.assertEqual([fault.place for fault in drawn], [place for place in self.lab.PLACES for _ in range(2)])
            self.assertFalse(set(drawn) & set(self.lab.SHOWN))
            self.assertEqual(len(set(drawn)), 8)


if __name__ == "__main__":
    unittest.main()
