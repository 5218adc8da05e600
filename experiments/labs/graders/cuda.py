"""A student's CUDA kernels on the emulator, for graders: files of kernels, or whole programs with main."""
# SPDX-License-Identifier: Apache-2.0
import json
import re

from grading import CannotGrade, Refused

MISSING = 3  # exit status of the program when the machine lacks something
ONLY_IF_RIGHT = "counts when the kernel is right"
DRIVER, MAIN = "benches/cuda_main.cu.in", "bench_main.cu"


def parts(whole, each):
    return -(-whole // each)


class New:
    """A new array as an argument: undefined, or filled with `value`."""

    def __init__(self, type, shape, value=None):
        self.type, self.shape, self.value = type, shape, value

    def word(self):
        """It on the command line."""
        return f"{self.type}:{'x'.join(map(str, self.shape))}{'' if self.value is None else f'={self.value}'}"


class Launch:
    """Arguments of a kernel: names of .npy files, New arrays and numbers. `outputs` has a function for the numbers of
    arguments, from 1, that returns the problem of the array written there. Empty: none."""

    def __init__(self, words, arguments, outputs):
        self.words, self.arguments, self.outputs = words, arguments, outputs


def near(expected, tolerance=1e-4):
    """The problem of an array of float32 with an element outside the tolerance."""
    def problem(array):
        return first_difference(array, array.floats(), expected,
                                lambda got, right: abs(got - right) <= tolerance * max(1.0, abs(right)))
    return problem


def equal(expected):
    """The problem of an array of int32 with another element than expected."""
    def problem(array):
        return first_difference(array, array.integers(), expected, lambda got, right: got == right)
    return problem


def first_difference(array, values, expected, same):
    if len(values) != len(expected):
        return f"{len(values)} elements, and not {len(expected)}"
    for i, (got, right) in enumerate(zip(values, expected)):
        if not same(got, right):
            return f"element {index_of(i, array.shape)} should be {right:.6g}, and is {got:.6g}"
    return ""


def index_of(number, shape):
    """ "[2][0][1]" of an element in row-major order."""
    index = ""
    for size in reversed(shape):
        number, at = divmod(number, size)
        index = f"[{at}]{index}"
    return index


class Counted:
    """Counts of the emulator, or the `problem` that prevents them."""

    def __init__(self, problem, counters=None):
        self.problem = problem
        if counters is None:
            return
        memory, shared = counters["global"], counters["shared"]
        self.blocks, self.barriers, self.products = (
            float(counters[count]) for count in ("blocks", "barriers", "matrix_products"))
        self.loads, self.load_sectors = (float(memory["load"][count]) for count in ("requests", "sectors"))
        self.stores, self.store_sectors = (float(memory["store"][count]) for count in ("requests", "sectors"))
        self.atomic_lanes = float(memory["atomic"]["lanes"])
        self.shared_atomic_wavefronts = float(shared["atomic"]["wavefronts"])
        self.shared_loads, self.shared_load_wavefronts = (float(shared["load"][count]) for count in ("requests", "wavefronts"))
        self.shared, self.wavefronts = (sum(float(shared[access][count]) for access in ("load", "store", "atomic"))
                                        for count in ("requests", "wavefronts"))


class Kernels:
    """A file of kernels, compiled once. A file with main, or one that is `whole`, is compiled again for each launch, by
    clang."""

    def __init__(self, submission, bench, name, whole=False):
        self.bench, self.name, self.problem = bench, name, ""
        try:
            text = submission.text(f"{name}.cu")
            bench.put(f"{name}.cu", text)
        except Refused as refused:
            self.problem = str(refused)
            return
        self.whole = whole or has_main(text)
        if not self.whole:
            self.build()

    def build(self):
        ending = self.bench.run("triptych", "kernel", "build", f"{self.name}.cu", "--out", f"{self.name}.so", "--overwrite")
        require_tools(ending)
        if not ending.good:
            self.problem = wrong_end(ending)

    def run(self, kernel, launch, grid, block):
        """What the launch counted. Blocks have a number of threads, or (x, y)."""
        if self.problem:
            return Counted(self.problem)
        for number in launch.outputs:
            self.bench.remove(written(number))
        run = self.run_whole if self.whole else self.run_plain
        ending = run(kernel, launch, grid, block if isinstance(block, tuple) else (block,))
        try:
            counted = self.read(ending.results()[0], kernel, launch)
        except (Refused, LookupError, TypeError, ValueError):  # code of students may have written the document
            counted = Counted(wrong_end(ending))
        if counted.problem:
            counted.problem = f"{kernel} with {launch.words}: {counted.problem}"
        return counted

    def run_plain(self, kernel, launch, grid, block):
        words = [argument.word() if isinstance(argument, New) else argument for argument in launch.arguments]
        for number in launch.outputs:
            words += ["--out", f"{number}={written(number)}"]
        return self.bench.run("triptych", "kernel", "run", f"{self.name}.so", *words, "--grid", ",".join(map(str, grid)),
                              "--block", ",".join(map(str, block)), "--kernel", kernel, "--overwrite", "--json")

    def run_whole(self, kernel, launch, grid, block):
        """The student's file behind a main that loads the arguments, launches the kernel and saves the arrays."""
        lines, names = [], []
        for number, argument in enumerate(launch.arguments, 1):
            if not isinstance(argument, (New, str)):
                names.append(str(argument))
                continue
            names.append(f"a{number}")
            file, defined = argument, True
            if isinstance(argument, New):
                file, defined = written(number), argument.value is not None
                self.bench.put_array(file, argument.shape, [argument.value or 0] * size_of(argument.shape), argument.type)
            lines.append(f'bench::Array a{number}("{file}", {"true" if defined else "false"});')
        lines.append(f"::{kernel}<<<dim3({', '.join(map(str, grid))}), dim3({', '.join(map(str, block))})>>>"
                     f"({', '.join(names)});")
        lines.append("bench::finish();")
        lines += [f'a{number}.save("{written(number)}");' for number in launch.outputs]
        text = self.bench.lab_text(DRIVER)
        self.bench.put(MAIN, text.replace("@FILE@", f"{self.name}.cu").replace("@BODY@", "\n  ".join(lines)))
        ending = self.bench.run("triptych", "kernel", "run", MAIN, "--json")
        require_tools(ending)
        return ending

    def read(self, result, kernel, launch):
        for finding in result["findings"][:1]:
            if finding.get("file") == MAIN:
                return Counted(f"its result: {finding['message']}")
            at = ", ".join(f"{name} {json.dumps(finding[name])}" for name in ("line", "block", "thread")
                           if finding.get(name) is not None)
            return Counted(f"{finding['kind']} at {at}: {finding['message']}")
        counters = result["counters"] if not self.whole else next(
            each for each in result["kernels"] if each["kernel"].partition("(")[0] == kernel)
        counted = Counted("", counters)
        for number, problem_of in launch.outputs.items():
            counted.problem = counted.problem or problem_of(self.bench.array(written(number)))
        if counted.problem:
            counted.problem = "; ".join([counted.problem, *result.get("warnings", [])[:1]])
        return counted


def has_main(text):
    """True for a file that launches its kernels."""
    return bool(re.search(r"\bmain\s*\(|<<<", text))


def written(number):
    return f"written_{number}.npy"


def size_of(shape):
    size = 1
    for length in shape:
        size *= length
    return size


def require_tools(ending):
    if ending.status == MISSING:
        raise CannotGrade(wrong_end(ending))


def wrong_end(ending):
    return "\n".join(ending.error.splitlines()[:4]) or ending.said


def too_many(count, most, words):
    """Empty when the count is at most `most`. Otherwise both as text."""
    return "" if count <= most else f"{count:.0f} {words}, and at most {most:.0f} are asked for"


def bank_problem(counted):
    """Bank conflicts may cost a twentieth."""
    return too_many(counted.wavefronts, 1.05 * counted.shared,
                    f"passes through the banks for {counted.shared:.0f} requests of shared memory")


def add_counted(report, counted, name, points, problem_of):
    report.exact(name, points, ONLY_IF_RIGHT if counted.problem else problem_of(counted))
