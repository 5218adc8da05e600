"""Typical mistakes of lab 8: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ()
RING = {"ring: sums": 16, "ring: bytes": 8, "ring: time": 4}
SERVER = {"server: sums": 8, "server: bytes": 4}
ALL_TO_ALL = "steps 1\n" + "".join(f"send all to (r + {k}) % N add if N > {k}\n" for k in range(1, 13))


def ring(*edits):
    return {"ring.schedule": list(edits)}


def formula(name, before, after):
    return {"formulas.json": [(f'"{name}": "{before}', f'"{name}": "{after}')]}


WRONG = [
    ("always the same chunk", ring(("send (r - s) % N", "send r")), RING,
     ["after the last step, chunk", "and should hold that of each rank once"]),
    ("passes on what is not complete", ring(("(r + 1 - s) % N", "(r - s) % N")), RING,
     ["with 2 ranks, after the last step, chunk 1 of rank 0 holds contributions of rank 1,",
      "that of rank 0 was there until step 2 of all 2 replaced it"]),
    ("a remainder of a negative number taken for one", ring(("(r - s) % N", "r - s")), RING,
     ['line 3: "r - s" is -1, and chunks are 0 to 2 (N = 3, r = 0, s = 1)']),
    ("a step too many", ring(("steps N - 1", "steps N")), RING, ["line 3: a rank sends to itself (N = 1"]),
    ("one phase alone", ring(("send (r + 1 - s) % N to (r + 1) % N replace", "")), RING, ["with 2 ranks"]),
    ("a server in place of the ring",
     {"ring.schedule": "steps min(1, N - 1)\nsend all to 0 add if r > 0\nsteps N - 1\nsend all to s + 1 replace if r == 0\n"},
     {"ring: bytes": 8, "ring: time": 4}, ["rank 0 sends to rank 2, which is not its next one", "us (modelled)"]),
    ("each adds for itself, in its own order", {"ring.schedule": ALL_TO_ALL}, RING,
     ["sums of float32 depend on their order, and all ranks must get the same one"]),
    ("nobody tells the others", {"server.schedule": "steps min(1, N - 1)\nsend all to 0 add if r > 0\n"}, SERVER,
     ["chunk 0 of rank 1 holds"]),
    ("a ring in place of the server",
     {"server.schedule": "steps N - 1\nsend (r - s) % N to (r + 1) % N add\n"
                         "steps N - 1\nsend (r + 1 - s) % N to (r + 1) % N replace\n"},
     {"server: bytes": 4}, ["are enough when rank 0 alone adds"]),
    ("one = for equal", {"server.schedule": "steps N - 1\nsend all to s + 1 replace if r = 0\n"}, SERVER,
     ['line 2: in "r = 0", at character 3', '"is equal to" is ==']),
    ("a comment of C", ring(("# Reduce-scatter", "// Reduce-scatter")), RING, ["line 1: ", "a comment begins with #"]),
    ("replaces where it should add", {"ring.schedule": "steps N - 1\nsend (r - s) % N to (r + 1) % N replace\n"}, RING,
     ["was there until step 1 of all 1 replaced it"]),
    ("endless", ring(("steps N - 1", "steps 1000000000000")), RING, ["a phase has 0 to 1000 steps"]),
    ("too much", {"ring.schedule": "steps 1000\n" + "send all to (r + 1) % N add if N > 1\n" * 190}, RING,
     ["more than 50000 messages"]),
    ("no schedule", {"ring.schedule": "for s in range(N): send()\n"}, RING,
     ['line 1: "for s in range(N): send()" begins with neither "steps" nor "send"']),
    ("the latency of one wire", formula("server_seconds", "2 * (2 * alpha +", "2 * (alpha +"),
     {"formula server_seconds": 2}, ["each message crosses two wires"]),
    ("the bytes of one phase", formula("ring_bytes", "2 * (N - 1)", "(N - 1)"), {"formula ring_bytes": 2}, ["gives"]),
    ("all wait for the late one alone", formula("server_late_seconds", "late + 4 * alpha + N * S", "late + 4 * alpha + 2 * (N - 1) * S"),
     {"formula server_late_seconds": 2}, ["the late message has the server's wire for itself"]),
    ("a name that is not there", formula("local_bytes", "2 * (N - 1) * S / (N * H)", "2 * (N - 1) * S / (N * steps)"),
     {"formula local_bytes": 2}, ['"steps" is unknown; known are']),
    ("brackets without end", formula("ring_seconds", "2 *", "(" * 500), {"formula ring_seconds": 2},
     ["too many brackets within each other"]),
    ("weights not copied", {"formulas.json": [("daa937115b8c", "4ee2949d018e")]}, {"weights_local_sgd": 2},
     ["which is not what the machine gives"]),
    ("a wrong answer", {"answers.json": [('"q5": "b"', '"q5": "a"')]}, {"q5": 4}, ["what has happened to the weights"]),
]
