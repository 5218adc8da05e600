"""Grader of lab 8: all-reduces as schedules that a student writes, their bytes and their price."""
# SPDX-License-Identifier: Apache-2.0
from grading import CannotGrade, Refused, Sheet, f32_bits
from schedule import ALL, bytes_by_link, first_wrong_sum, read_schedule, run_on

ELEMENT_BYTES = 4
WIRE = {"alpha_s": 2e-6, "bytes_per_s": 5e9}
TRAIN = ("train", "--contract", "bf16-exact", "--synthetic-images", "32", "--batch", "4", "--epochs", "1",
         "--validation", "0", "--ranks", "4", "--seed", "1")


def world_sizes(hidden):
    """Numbers of ranks for which schedules are tried: a few that the handout mentions, and hidden ones."""
    return sorted([1, 2, 3, 4] + [5 + hidden.below(9) for _ in range(3)])


def first_wrong_bit(steps, world_size, hidden):
    """The first element that is not the sum over all ranks, or not the same on all of them, as text."""
    elements = world_size + hidden.below(4 * world_size + 4)
    before = [hidden.floats(elements, 1) for _ in range(world_size)]
    after = run_on(steps, before)
    for i in range(elements):
        total = sum(buffer[i] for buffer in before)
        size = sum(abs(buffer[i]) for buffer in before)
        for rank in range(world_size):
            got, first = after[rank][i], after[0][i]
            if not abs(got - total) <= 2**-23 * world_size * size:
                return (f"with {world_size} ranks, element {i} of rank {rank} is {got:.9g}, and the sum is {total:.9g}")
            if f32_bits(got) != f32_bits(first):
                return (f"with {world_size} ranks, element {i} is {first:.9g} on rank 0 and {got:.9g} on rank {rank}: sums "
                        "of float32 depend on their order, and all ranks must get the same one")
    return ""


class Answer:
    """A schedule of the submission: its `steps` by number of ranks, or the `problem` of the first wrong one."""

    def __init__(self, submission, name, sizes, hidden):
        self.problem, self.steps = "", {}
        try:
            text = submission.text(name)
            for size in sizes:
                self.steps[size] = read_schedule(text, size)
                self.problem = (first_wrong_sum(self.steps[size], size)
                                or first_wrong_bit(self.steps[size], size, hidden))
                if self.problem:
                    return
        except Refused as refused:
            self.problem = f"{name}: {refused}"

    def first_problem(self, problem_of):
        """The problem for the first number of ranks that has one."""
        if self.problem:
            return "counts when the sums are right"
        return next(filter(None, (problem_of(self.steps[size], size) for size in sorted(self.steps))), "")


def even_elements(world_size):
    """Elements of a buffer with chunks of equal length."""
    return 1000 * world_size


def server_bytes_problem(steps, world_size):
    elements = even_elements(world_size)
    size = elements * ELEMENT_BYTES
    sent = bytes_by_link(steps, world_size, elements)
    for source in range(world_size):
        for to in range(world_size):
            expected = size if source != to and 0 in (source, to) else 0
            if sent[source][to] != expected:
                return (f"with {world_size} ranks and S = {size}, rank {source} sends {sent[source][to]} bytes to rank "
                        f"{to}, and {expected} are enough when rank 0 alone adds")
    return ""


def ring_bytes_problem(steps, world_size):
    elements = even_elements(world_size)
    size = elements * ELEMENT_BYTES
    most = 2 * (world_size - 1) * size // world_size
    for source, sent in enumerate(bytes_by_link(steps, world_size, elements)):
        for to in range(world_size):
            if to != (source + 1) % world_size and sent[to]:
                return f"with {world_size} ranks, rank {source} sends to rank {to}, which is not its next one"
        if sum(sent) > most:
            return (f"with {world_size} ranks and S = {size}, rank {source} sends {sum(sent)} bytes, and "
                    f"2 (N - 1) / N S = {most} are enough")
    return ""


def ring_time_problem(bench, steps, world_size):
    elements = even_elements(world_size)
    got = bench.price(steps, world_size, elements, "ring", **WIRE)
    chunk = elements // world_size * ELEMENT_BYTES
    best = 2 * (world_size - 1) * (WIRE["alpha_s"] + chunk / WIRE["bytes_per_s"])
    if got <= best * (1 + 1e-9):
        return ""
    return (f"with {world_size} ranks it takes {got * 1e6:.3f} us (modelled), and {best * 1e6:.3f} are enough: in each of "
            "2 (N - 1) steps every wire carries one chunk")


def ring_steps(n):
    return ([[(r, (r + 1) % n, (r - s) % n, True) for r in range(n)] for s in range(n - 1)]
            + [[(r, (r + 1) % n, (r + 1 - s) % n, False) for r in range(n)] for s in range(n - 1)])


def server_steps(n):
    return [[(r, 0, ALL, True) for r in range(1, n)], [(0, r, ALL, False) for r in range(1, n)]]


class Case:
    """A case for the formulas: ranks, elements, link, a delay of rank 1, and steps between two averages."""

    def __init__(self, bench, n, elements, alpha, beta, late=0, every=1):
        self.bench, self.n, self.elements, self.late, self.every = bench, n, elements, late, every
        self.link, self.bytes = {"alpha_s": alpha, "bytes_per_s": beta}, elements * ELEMENT_BYTES

    def variables(self):
        return {"N": self.n, "S": self.bytes, "alpha": self.link["alpha_s"], "beta": self.link["bytes_per_s"],
                "late": self.late, "H": self.every}

    def ring_seconds(self, late=0):
        return self.bench.price(ring_steps(self.n), self.n, self.elements, "ring", late_s=late, **self.link)

    def server_seconds(self, late=0):
        return self.bench.price(server_steps(self.n), self.n, self.elements, "switched", late_s=late, **self.link)

    def ring_bytes(self):
        return 2 * (self.n - 1) * self.bytes / self.n


def formula_cases(bench, hidden):
    cases = []
    for _ in range(3):
        n = 3 + hidden.below(14)
        cases.append(Case(bench, n, n * (1000 + hidden.below(4000)), (1 + hidden.below(20)) * 1e-6,
                          (1 + hidden.below(50)) * 1e9, 1 + hidden.below(9), 2 + hidden.below(31)))
    return cases


FORMULAS = [
    ("ring_bytes", Case.ring_bytes, "a rank sends one chunk of S / N in each of its steps"),
    ("server_bytes", lambda case: (case.n - 1) * case.bytes, "all but the server send all they have"),
    ("ring_seconds", Case.ring_seconds, "how many steps follow one another, and how long is a chunk?"),
    ("server_seconds", Case.server_seconds,
     "there and back; each message crosses two wires, and all of them share the server's"),
    ("ring_late_seconds", lambda case: case.ring_seconds(case.late),
     "every sum waits for the late rank, and goes all the way round after it"),
    ("server_late_seconds", lambda case: case.server_seconds(case.late),
     "the late message has the server's wire for itself; the way back is as before"),
    ("local_bytes", lambda case: case.ring_bytes() / case.every, "one all-reduce in H steps"),
]


def trained_weights(bench, strategy):
    """The first twelve digits of the weights' fingerprint, as the program's table shows them."""
    try:
        run = bench.results(*TRAIN, "--strategy", strategy, "--out", f"run-{strategy[:5]}")[0]
    except Refused as refused:
        raise CannotGrade(f"the training of the lab: {refused}") from None
    return run["weights_sha256"][:12]


def grade_sheet(sheet, bench, report, hidden):
    cases = formula_cases(bench, hidden)
    for name, value, hint in FORMULAS:
        samples = [(case.variables(), value(case)) for case in cases]
        report.exact(f"formula {name}", 2, sheet.problem_of_formula(name, samples, hint))
    for name, strategy in (("dp", "dp"), ("ps_sync", "ps-sync"), ("local_sgd", "local-sgd:4")):
        report.exact(f"weights_{name}", 2, sheet.problem_of_value(
            f"weights_{name}", trained_weights(bench, strategy), "copy the twelve digits that step 6 prints under weights"))


def grade(submission, bench, report, hidden):
    sizes = world_sizes(hidden)
    server = Answer(submission, "server.schedule", sizes, hidden)
    report.exact("server: sums", 8, server.problem)
    report.exact("server: bytes", 4, server.first_problem(server_bytes_problem))
    ring = Answer(submission, "ring.schedule", sizes, hidden)
    report.exact("ring: sums", 16, ring.problem)
    report.exact("ring: bytes", 8, ring.first_problem(ring_bytes_problem))
    report.exact("ring: time", 4, ring.first_problem(lambda steps, size: ring_time_problem(bench, steps, size)))
    grade_sheet(Sheet(submission, "formulas.json"), bench, report, hidden)


def predictions(bench):
    # 64 MB on 8 ranks: a chunk has 8 MB.
    case = Case(bench, 8, 16_000_000, 1e-5, 1e10)
    return [("ring_megabytes", 5, case.ring_bytes() / 1e6, 0.1),
            ("server_megabytes", 5, 7 * case.bytes / 1e6, 0.1),
            ("ring_times_faster", 5, case.server_seconds() / case.ring_seconds(), 0.1),
            ("same_weights", 5, "yes", 0)]
