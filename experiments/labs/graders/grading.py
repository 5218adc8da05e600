"""Library of the labs' graders. A grader asks the program for everything outside this process.

A grader is a module with grade(submission, bench, report, hidden) and predictions(bench). Commands
run on the bench, confined. Standard library only.
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import json
import random
import signal
import sys
import traceback

PR_SET_DUMPABLE = 4
MACHINE_BYTES = 8 << 30  # a simulated machine maps its DRAM, up to 4 GiB, and touches little of it


class Refused(Exception):
    """The submission, or a command on it, is wrong. The text states the problem."""


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
    """End of a command: `good`, its `output`, the first lines of its `error`, and `said`, how it ended."""

    def __init__(self, command, values):
        self.command = command
        self.good, self.output, self.error, self.said = (values[key] for key in ("good", "output", "error", "said"))

    def why(self):
        """The reason of a failure, in the program's words where it has some."""
        return "\n".join(self.error.splitlines()[:3]) or f"{self.command[1]} {self.said}"


class Bench:
    """A temporary directory and confined commands in it."""

    def __init__(self, program):
        self.program = program

    def put(self, name, content):
        """Writes a text file."""
        self.program.call("put", name=name, content=content)

    def put_array(self, name, shape, values):
        """Writes an .npy file of float32."""
        self.program.call("put_array", name=name, shape=shape, values=values)

    def remove(self, name):
        """Deletes a file if it exists."""
        self.program.call("remove", name=name)

    def text(self, name):
        """A file that commands wrote. Raises Refused if there is none, or it is a link."""
        return self.program.call("text", name=name)

    def run(self, *command, seconds=10, bytes=1 << 30):
        """Runs a command within limits of processor time and memory. "triptych" means this program."""
        command = [str(word) for word in command]
        return Ending(command, self.program.call("run", command=command, seconds=seconds, bytes=bytes))

    def results(self, *command, **limits):
        """The results of `triptych COMMAND --json`. Raises Refused with its words if it fails."""
        ending = self.run("triptych", *command, "--json", **limits)
        if not ending.good:
            raise Refused(ending.why())
        return json.loads(ending.output)["results"]

    def counters(self, *arguments):
        """Counters of the only node of `triptych trace ARGUMENTS`, by their names in json.md."""
        return self.node(*arguments)["counters"]

    def energy(self, *arguments):
        """Joule of each part of that node's energy."""
        return {part["part"]: part["joule"] for part in self.node(*arguments)["energy"]["parts"]}

    def node(self, *arguments):
        """The only node of `triptych trace ARGUMENTS`."""
        return self.results("trace", *arguments, bytes=MACHINE_BYTES)[0]["array"]["nodes"][0]


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


class Report:
    """Items with points."""

    def __init__(self, program):
        self.program = program

    def exact(self, name, points, problem):
        """All points if `problem` is empty, otherwise none, with the problem as reason."""
        self.program.call("exact", id=name, points=points, problem=problem)


class Sheet:
    """A JSON file in which a student fills in formulas and numbers."""

    def __init__(self, submission, name):
        self.program, self.name, self.values, self.broken = submission.program, name, {}, ""
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
                result = self.program.call("evaluate", formula=formula, variables=variables)
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


class Hidden:
    """Hidden cases of a seed: the same on every machine."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}.{number}")

    def below(self, bound):
        return int(self.random.random() * bound)

    def uniform(self, low, high):
        return low + (high - low) * self.random.random()

    def shuffled(self, values):
        values = list(values)
        for last in range(len(values) - 1, 0, -1):
            other = self.below(last + 1)
            values[last], values[other] = values[other], values[last]
        return values


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
