"""Library of the labs' graders. A grader asks the program for everything outside this process.

A grader is a module with grade(submission, bench, report, hidden) and predictions(bench). Commands
run on the bench, confined. Standard library only.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import ctypes
import json
import signal
import struct
import sys
import traceback

from formula import Refused, evaluate

PR_SET_DUMPABLE = 4
MACHINE_BYTES = 8 << 30  # a simulated machine maps its DRAM, up to 4 GiB, and touches little of it
BUILD = {"seconds": 60, "bytes": 4 << 30}  # limits of a command that compiles RTL


class CannotGrade(Exception):
    """This machine cannot grade anybody, for example because a tool is missing."""


class Program:
    """The program `triptych lab check`, at the other end of a socket. One JSON value per line."""

    def __init__(self, stream):
        self.stream = stream

    def call(self, request, /, **arguments):
        self.stream.write(json.dumps({"call": request, **arguments}) + "\n")
        self.stream.flush()
        reply = json.loads(self.stream.readline())
        if "refused" in reply:
            raise Refused(reply["refused"])
        return reply["value"]


class Ending:
    """End of a command: `good`, its exit `status` or None, its `output`, the first lines of `error` and of the output
    (`printed`), and `said`, how it ended."""

    def __init__(self, values):
        self.values = values
        self.good, self.status, self.output, self.error, self.printed, self.said = (
            values[key] for key in ("good", "status", "output", "error", "printed", "said"))

    def why(self):
        """The reason of a failure, in the program's words where it has some."""
        return self.values["why"]

    def results(self):
        """The results of a command with --json. Raises Refused when the output is no such document."""
        try:
            results = json.loads(self.output)["results"]
        except (ValueError, TypeError, LookupError, RecursionError):
            results = None
        if not isinstance(results, (list, dict)) or not results:  # that of compare is one record
            raise Refused("the output is no document")
        return results


class Array:
    """An .npy file: its `spec` ("f32[16, 8]"), `shape`, and elements."""

    def __init__(self, name, values):
        self.name, self.spec, self.shape = name, values["spec"], values["shape"]
        self.bytes = bytes.fromhex(values["bytes"])

    def floats(self):
        """The elements of an array of float32. Raises Refused for another type."""
        return self.numbers("f32", "f")

    def integers(self):
        """The elements of an array of int32. Raises Refused for another type."""
        return self.numbers("i32", "i")

    def numbers(self, type, code):
        if not self.spec.startswith(f"{type}["):
            raise Refused(f"{self.name} should hold {type}, and is {self.spec}")
        return struct.unpack(f"<{len(self.bytes) // 4}{code}", self.bytes)


class Bench:
    """A temporary directory and confined commands in it."""

    def __init__(self, program):
        self.program = program

    def put(self, name, content):
        """Writes a text file."""
        self.program.call("put", name=name, content=content)

    def put_array(self, name, shape, values, type="f32"):
        """Writes an .npy file, of float32 or another type such as "i32"."""
        self.program.call("put_array", name=name, shape=shape, values=values, type=type)

    def remove(self, name):
        """Deletes a file if it exists."""
        self.program.call("remove", name=name)

    def array(self, name):
        """An .npy file that commands wrote. Raises Refused like text()."""
        return Array(name, self.program.call("array", name=name))

    def lab_text(self, name):
        """A file of the labs: graders, handouts, benches."""
        return self.program.call("lab_text", name=name)

    def require(self, tool):
        """Raises CannotGrade when there is no such program on the PATH."""
        if not self.program.call("has_tool", name=tool):
            raise CannotGrade(f'this lab needs the program "{tool}", which is not on the PATH; '
                              "triptych doctor has the package")

    def text(self, name):
        """A file that commands wrote. Raises Refused if there is none, or it is a link."""
        return self.program.call("text", name=name)

    @contextlib.contextmanager
    def kept_runtime(self):
        """While a machine is built, its bench has the user's compiled part of Verilator, and then the reverse. No code
        of students may have run on the bench."""
        self.program.call("take_runtime")
        yield
        self.program.call("keep_runtime")

    def run(self, *command, seconds=10, bytes=1 << 30):
        """Runs a command within limits of processor time and memory. "triptych" means this program."""
        command = [str(word) for word in command]
        return Ending(self.program.call("run", command=command, seconds=seconds, bytes=bytes))

    def put_verilator_runtime(self, verilate, make, seconds, bytes):
        """Writes Verilator's compiled run time beside the model that it has written, from the user's cache."""
        self.program.call("put_verilator_runtime", verilate=verilate, make=make, seconds=seconds, bytes=bytes)

    def results(self, *command, **limits):
        """The results of `triptych COMMAND --json`. Raises Refused with its words if it fails."""
        ending = self.run("triptych", *command, "--json", **limits)
        if not ending.good:
            raise Refused(ending.why())
        return ending.results()

    def counters(self, *arguments):
        """Counters of the only node of `triptych trace ARGUMENTS`, by their names in json.md."""
        return self.node(*arguments)["counters"]

    def energy(self, *arguments):
        """Joule of each part of that node's energy."""
        return {part["part"]: part["joule"] for part in self.node(*arguments)["energy"]["parts"]}

    def node(self, *arguments):
        """The only node of `triptych trace ARGUMENTS`."""
        return self.results("trace", *arguments, bytes=MACHINE_BYTES)[0]["array"]["nodes"][0]


    def price(self, steps, world_size, elements, wires, alpha_s, bytes_per_s, late_s=0):
        """Modelled seconds of a collective on buffers of float32, with wires "ring" or "switched". A step is a list of
        messages (from, to, chunk, adds), chunk -1 is the whole buffer. Rank 1 begins `late_s` late."""
        return self.program.call("price", steps=steps, world_size=world_size, elements=elements, wires=wires,
                                 link=[alpha_s, bytes_per_s], late_s=late_s)


class Submission:
    """Files of the student."""

    def __init__(self, program):
        self.program = program

    def text(self, name):
        """A file. Raises Refused if it cannot be read."""
        return self.program.call("submitted", name=name)

    def json(self, name):
        """The value in a JSON file. Raises Refused for another file."""
        return self.program.call("submitted_json", name=name)

    def names(self, folder="."):
        """Names in a folder, sorted. None where there is no folder."""
        return self.program.call("submitted_names", folder=folder)


class Report:
    """Items with points."""

    def __init__(self, program):
        self.program = program

    def exact(self, name, points, problem):
        """All points if `problem` is empty, otherwise none, with the problem as reason."""
        self.program.call("exact", id=name, points=points, problem=problem)

    def printed(self, text):
        """First lines of the output of the student's code."""
        self.program.call("printed", text=text)

    def standing(self, name, value):
        """A number for the class ranking. Less is better."""
        self.program.call("standing", name=name, value=value)


class Sheet:
    """A JSON file in which a student fills in formulas and numbers."""

    def __init__(self, submission, name):
        self.name, self.values, self.broken = name, {}, ""
        try:
            self.values = submission.json(name)
            if not isinstance(self.values, dict):
                self.broken = f"{name} is no object {{...}}"
        except Refused as problem:
            self.broken = f"{name} cannot be read: {problem}"

    def missing(self, name):
        if self.broken or self.values.get(name) is not None:
            return self.broken
        return f'not answered yet: "{name}" in {self.name}'

    def problem_of_value(self, name, expected, hint):
        """Empty if the sheet has this number or word under `name`."""
        problem = self.missing(name)
        if problem:
            return problem
        given = self.values[name]
        if given == expected and not isinstance(given, bool):
            return ""
        return f"{name} says {shown(given)}, which is not what the machine gives; {hint}"

    def problem_of_formula(self, name, samples, hint, tolerance=1e-9):
        """Empty if the formula gives the value of each (variables, value), within a relative tolerance."""
        problem = self.missing(name)
        if problem:
            return problem
        given = self.values[name]
        formula = given if isinstance(given, str) else json.dumps(given)
        for variables, value in samples:
            try:
                result = evaluate(formula, variables)
            except Refused as refusal:
                return str(refusal)
            if abs(result - value) > tolerance * abs(value):
                at = ", ".join(f"{key} = {variables[key]:.9g}" for key in sorted(variables))
                return f'"{formula[:200]}" gives {result:.9g} with {at}, and {value:.9g} came; {hint}'
        return ""

    def whole(self, name):
        """The whole number under `name`. Raises Refused if it is none."""
        problem = self.missing(name)
        if not problem and not is_whole(self.values[name]):
            problem = f'"{name}" in {self.name} is no whole number'
        if problem:
            raise Refused(problem)
        return self.values[name]


def philox(counter, key):
    """Ten rounds of Philox4x32 (core/base/random.h), on four words with two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first, second = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (second >> 32) ^ c1 ^ k0, second & 0xFFFFFFFF, (first >> 32) ^ c3 ^ k1, first & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def words(number):
    """The two words of a number of 64 bits, the lower one first."""
    return number & 0xFFFFFFFF, number >> 32


class Hidden:
    """Hidden cases of a seed: the same on every machine, and the numbers of the program's RandomStream."""

    def __init__(self, seed, stream):
        self.seed, self.stream, self.index, self.quad = seed, stream, 0, ()

    def bits(self):
        """A number of 32 random bits."""
        if self.index % 4 == 0:
            self.quad = philox((*words(self.index // 4), *words(self.stream)), words(self.seed))
        self.index += 1
        return self.quad[(self.index - 1) % 4]

    def below(self, bound):
        """A whole number from 0 to bound - 1."""
        return self.bits() * bound >> 32

    def uniform(self, low, high):
        """A float32 from low to high, rounded like float arithmetic in C++."""
        return f32(low + f32((high - low) * ((self.bits() >> 8) / (1 << 24))))

    def floats(self, count, largest):
        """Numbers from -largest to largest."""
        return [self.uniform(-largest, largest) for _ in range(count)]

    def shuffled(self, values):
        values = list(values)
        for last in range(len(values) - 1, 0, -1):
            other = self.below(last + 1)
            values[last], values[other] = values[other], values[last]
        return values


def f32(value):
    """The nearest float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def f32_bits(value):
    """The bits of a float32 as a whole number."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def shown(value):
    return json.dumps(value, ensure_ascii=False)[:200]


def run_part(program, lab, part, seed, number):
    """Calls the part of the grader that the program asks for."""
    bench = Bench(program)
    if part == "grade":
        lab.grade(Submission(program), bench, Report(program), Hidden(seed, number))
        return
    for name, points, value, tolerance in lab.predictions(bench):
        program.call("prediction", id=name, points=points, value=value, tolerance=tolerance)


def serve(stream, lab, part, seed, number):
    """Runs a part of a grader. The program sees every way in which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program stops the grader
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # others cannot read the seed
    program = Program(stream)
    try:
        run_part(program, lab, part, seed, number)
        program.call("end")
    except CannotGrade as problem:
        program.call("cannot_grade", why=str(problem))
    except Exception as problem:
        fail(program, problem)


def fail(program, problem):
    if not isinstance(problem, Refused):
        traceback.print_exc(file=sys.stderr)
    try:
        program.call("failed", why=str(problem) or type(problem).__name__)
    except (OSError, ValueError):
        pass  # the program has ended


def run(stream, arguments):
    """Called by the program."""
    serve(stream, sys.modules["grader"], arguments["part"], arguments["seed"], arguments["number"])
