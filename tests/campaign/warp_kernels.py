# SPDX-License-Identifier: Apache-2.0
"""Random CUDA kernels whose warps diverge, as text and as a program of numbered operations.

A kernel is a list of operations with an explicit control flow, drawn together with its text. `c` decides on branches,
`x` is read, `y` is written by its own thread, `s` is shared. All numbers are ints, and all control flow depends on
inputs alone, so that it is the same in every schedule.
"""
import dataclasses
import typing

SHARED, NUMBERS, END = 64, 97, -1
HALVES = "l < 16 ? 0x0000ffffu : 0xffff0000u"


@dataclasses.dataclass
class Operation:
    """One operation of a thread. Its line is that of the text, which has one access at most."""
    kind: str  # load, store, branch, jump, set, add, barrier, warp, halves, shuffle, return
    line: int = 0
    space: str = ""  # c, x, y, shared
    strength: str = "plain"  # or volatile, atomic
    value: typing.Callable = None  # of the thread's variables: an index, a condition, a number
    variable: str = ""
    target: int = 0  # of a jump, and of a branch whose condition is false


@dataclasses.dataclass
class Kernel:
    name: str
    threads: int
    blocks: int
    operations: list
    text: str


class Draw:
    """Draws one kernel."""

    def __init__(self, random, name, first_line):
        self.random = random
        self.name = name
        self.threads = random.choice([32, 32, 64, 64, 40])
        self.blocks = random.choice([1, 2])
        self.may_race = random.random() < 0.75
        self.full_warps = self.threads % 32 == 0
        self.returns = False
        self.depth = 0
        self.loops = 0
        self.counts = 0
        self.enclosing = []  # loops: lists of the jumps that leave and continue them
        self.stores = 0
        self.lines = []
        self.first_line = first_line
        self.operations = []

    def emit(self, text, **fields):
        self.lines.append("  " * (self.depth + 1) + text)
        if not fields:
            return None
        operation = Operation(line=self.first_line + len(self.lines) - 1, **fields)
        self.operations.append(operation)
        return operation

    def silent(self, **fields):
        self.operations.append(Operation(**fields))
        return self.operations[-1]

    def here(self):
        return len(self.operations)

    def index(self):
        """An index into NUMBERS elements: its text and its value."""
        a, b, k = self.random.choice([0, 1, 1, 2, 5, 8]), self.random.choice([0, 1, 3, 32]), self.random.randrange(64)
        loop = self.random.randrange(self.loops) if self.loops and self.random.random() < 0.7 else None
        turn = f" + i{loop} * {b}" if loop is not None else ""

        def value(v):
            return (v["t"] * a + (v[f"i{loop}"] * b if loop is not None else 0) + k) % NUMBERS
        return f"(t * {a}{turn} + {k}) % {NUMBERS}", value

    def load(self):
        text, value = self.index()
        self.emit(f"a += x[{text}];", kind="load", space="x", value=value)

    def slot(self):
        """A place of shared memory: the thread's own, or now and then another one's."""
        if not self.may_race or self.random.random() < 0.3:
            return "t", lambda v: v["t"]
        step = self.random.choice([1, 2, 8, 16])
        return f"t ^ {step}", lambda v: v["t"] ^ step

    def touch_shared(self):
        text, value = self.slot()
        kind = self.random.choice(["load", "store", "load", "store", "atomic"])
        strength = "volatile" if self.may_race and self.random.random() < 0.3 else "plain"
        name = "v" if strength == "volatile" else "s"
        if kind == "atomic":
            self.emit(f"atomicAdd(&s[{text}], 1);", kind="atomic", space="shared", strength="atomic", value=value)
        elif kind == "load":
            self.emit(f"a += {name}[{text}];", kind="load", space="shared", strength=strength, value=value)
        else:
            self.emit(f"{name}[{text}] = a;", kind="store", space="shared", strength=strength, value=value)

    def store(self):
        row = self.stores
        self.stores += 1
        threads = self.threads * self.blocks

        def value(v):
            return row * threads + v["b"] * self.threads + v["t"]
        self.emit(f"y[{row * threads} + b * {self.threads} + t] = a;", kind="store", space="y", value=value)

    def condition(self, otherwise=False):
        """A branch on an input. Its operation gets its target later."""
        text, value = self.index()
        self.emit(f"p = c[{text}];", kind="read", space="c", value=value)
        modulus = self.random.choice([2, 3, 4])
        return f"p % {modulus} == 0", self.silent(kind="branch", value=lambda v: v["p"] % modulus == 0)

    def branch(self, budget):
        text, branch = self.condition()
        self.emit(f"if ({text}) {{")
        self.body(budget)
        if self.random.random() < 0.5:
            self.emit("} else {")
            jump = self.silent(kind="jump")
            branch.target = self.here()
            self.body(budget)
            jump.target = self.here()
        else:
            branch.target = self.here()
        self.emit("}")

    def loop(self, budget):
        number = self.loops
        name = f"i{number}"
        if self.random.random() < 0.5:
            most = self.random.randrange(1, 5)
            count = str(most)

            def times(_):
                return most
        else:
            text, value = self.index()
            self.emit(f"p = c[{text}];", kind="read", space="c", value=value)
            count = f"n{self.counts}"
            self.counts += 1
            self.emit(f"const int {count} = p % 4;")
            self.silent(kind="set", variable=count, value=lambda v: v["p"] % 4)

            def times(v):
                return v[count]
        self.emit(f"for (int {name} = 0; {name} < {count}; ++{name}) {{")
        self.silent(kind="set", variable=name, value=lambda v: 0)
        head = self.here()
        branch = self.silent(kind="branch", value=lambda v: v[name] < times(v))
        self.loops += 1
        self.enclosing.append(([], []))
        self.body(budget)
        leaving, continuing = self.enclosing.pop()
        self.loops -= 1
        for jump in continuing:
            jump.target = self.here()
        self.silent(kind="set", variable=name, value=lambda v: v[name] + 1)
        self.silent(kind="jump", target=head)
        branch.target = self.here()
        for jump in leaving:
            jump.target = self.here()
        self.emit("}")

    def jump_out(self):
        text, branch = self.condition()
        self.emit(f"if ({text}) {{")
        self.depth += 1
        self.load()
        if self.enclosing and self.random.random() < 0.7:
            leaves = self.random.random() < 0.5
            self.emit("break;" if leaves else "continue;")
            self.enclosing[-1][0 if leaves else 1].append(self.silent(kind="jump"))
        else:
            self.store()
            self.emit("return;")
            self.silent(kind="return")
            self.returns = True
        self.depth -= 1
        branch.target = self.here()
        self.emit("}")

    def body(self, budget):
        self.depth += 1
        for _ in range(self.random.randrange(1, 3)):
            self.statement(budget)
        self.depth -= 1

    def statement(self, budget):
        kinds = ["load", "load", *["shared"] * (3 if self.may_race else 1)]
        if budget > 0:
            kinds += ["branch", "branch", "loop", "out"]
        kind = self.random.choice(kinds)
        if kind == "load":
            self.load()
        elif kind == "shared":
            self.touch_shared()
        elif kind == "branch":
            self.branch(budget - 1)
        elif kind == "loop" and len(self.enclosing) < 2:
            self.loop(budget - 1)
        elif kind == "out" and self.depth > 1:
            self.jump_out()
        else:
            self.load()

    def meet(self):
        """An operation of all threads, which is impossible once one has returned."""
        if self.returns:
            return
        kinds = ["barrier"] + ["warp", "warp", "halves", "shuffle"] * self.full_warps
        kind = self.random.choice(kinds)
        text = {"barrier": "__syncthreads();", "warp": "__syncwarp();", "halves": f"__syncwarp({HALVES});",
                "shuffle": "a += __shfl_xor_sync(0xffffffffu, a, 1);"}[kind]
        self.emit(text, kind=kind)

    def kernel(self):
        self.emit(f"__global__ void {self.name}(const int* c, const int* x, int* y) {{")
        self.lines[-1] = self.lines[-1].strip()
        self.emit(f"__shared__ int s[{SHARED}];")
        self.emit("volatile int* v = s;")
        self.emit("const int t = threadIdx.x, l = t % 32, b = blockIdx.x;")
        self.emit("int a = l + (v != nullptr), p = b;")
        self.emit("s[t] = t;", kind="store", space="shared", value=lambda v: v["t"])
        # Without a load the compiler would leave the array out.
        self.emit("a += s[t];", kind="load", space="shared", value=lambda v: v["t"])
        if not self.full_warps:  # t ^ 16 may lie behind the threads' own places
            self.emit("if (t == 0) {")
            branch = self.silent(kind="branch", value=lambda v: v["t"] == 0)
            for slot in range(self.threads, SHARED):
                self.emit(f"s[{slot}] = 0;", kind="store", space="shared", value=lambda v, slot=slot: slot)
            branch.target = self.here()
            self.emit("}")
        self.emit("__syncthreads();", kind="barrier")
        for _ in range(self.random.randrange(2, 6)):
            self.statement(3)
            if self.random.random() < 0.6:
                self.meet()
        self.store()
        self.lines.append("}")
        return Kernel(self.name, self.threads, self.blocks, self.operations, "\n".join(self.lines) + "\n")


def draw_kernel(random, name, first_line):
    return Draw(random, name, first_line).kernel()
