"""Tests of the claims of the source documents: measures, and returns a verdict for each claim.

  reproduce.py PROGRAM [--quick] [--claims bandwidth,ring]

prints the results as JSON. `triptych reproduce` contains this program as text and calls run().
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import collections
import json
import signal
import sys
import time

import attention
import communication
import memories
import products
import strategies
import tasks
from program import CommandFailed, Program
from report import figure
from rules import VERDICTS

USAGE = 2  # exit code

#: `claim`: in the words of the source. `rule`: from numbers to verdicts. `examine`: a function of the program.
Claim = collections.namedtuple("Claim", "id title claim source rule examine")

CLAIMS = [
    Claim("bandwidth", "What bandwidth decides",
          "A GPU is faster than a CPU because of the bandwidth of its memory.",
          "survey, figure 1",
          "For each kind of operator of a training step, by the roofline: the speedup, and what is left of it "
          "if the GPU had only the CPU's bandwidth. At least nine tenths of the speedup (in logarithms) are "
          "lost of all kinds: holds here; of some: under conditions; of none: wrong.",
          memories.examine_bandwidth),
    Claim("sram", "SRAM beside HBM",
          "A GPU's SRAM has 19 TB/s, about ten times the 1.5 to 2.0 TB/s of its HBM.",
          "survey of attention on GPUs, memory hierarchy",
          "On-chip over off-chip bandwidth from 7.5 to 13.3 on an A100 and on the newer GPUs: holds here; on "
          "the A100 alone: out of date; not there: wrong.",
          memories.examine_sram),
    Claim("transfer", "Small tasks and transfers",
          "Small tasks lose on an accelerator: copying costs more than it saves.",
          "survey, discussion of figure 3",
          "Convolutions from small to large. Some are faster than on the CPU without the copies and slower with "
          "them: holds, here if the largest is faster with them, else under conditions; none: wrong.",
          tasks.examine_transfers),
    Claim("batch", "Speedup and batch",
          "The speedup over the CPU grows with the batch.",
          "survey, figure 3",
          "Speedup at the largest batch over that at batch 1. At least 1.5: holds, here if the last doubling "
          "still adds 5 %, else under conditions; at most 1.1: wrong; else under conditions.",
          tasks.examine_batch),
    Claim("reuse", "Reuse of operands",
          "A TPU reuses operands within its matrix unit instead of reading them again.",
          "surveys of TPUs",
          "Reads per multiply-add of the memory nearest to the arithmetic, in one product: the array's at most "
          "half of the least of CPU and GPU kernels: holds here; less: under conditions; else wrong.",
          products.examine_reuse),
    Claim("large-products", "Large products",
          "TPUs pay only for large models that train for weeks.",
          "surveys of TPUs",
          "Utilisation of the array. A small square product above 75 %: wrong. Small below 25 %, large above 75 "
          "%, and shapes of equal work within 1.5 times of each other: holds here; else under conditions: shape "
          "decides, not size or time.",
          products.examine_utilisation),
    Claim("matrix-units", "Matrix units of GPUs",
          "GPUs have matrix units of their own, but to a lesser extent than TPUs.",
          "surveys of TPUs",
          "Matrix units less than twice as fast as the ordinary ones on the newest GPU: holds here; at least as "
          "fast as the newest TPU's: out of date; else under conditions.",
          memories.examine_matrix_units),
    Claim("cpu-parallelism", "Parallelism of a CPU",
          "A CPU has minimal parallelism.",
          "surveys of TPUs",
          "The fastest kernel on all threads over scalar code on one. At most 2: holds here; at least 10: "
          "wrong; else under conditions.",
          products.examine_cpu_parallelism),
    Claim("flash-attention", "FlashAttention",
          "FlashAttention is faster because it moves less between HBM and SRAM.",
          "survey of attention on GPUs",
          "Bytes that an emulated GPU counts. Less than the materialised form, and both within 10 % of their "
          "formulas: holds here; less: under conditions; else wrong.",
          attention.examine_attention),
    Claim("ring", "Ring and parameter server",
          "A parameter server's bandwidth grows with the workers, a ring's does not.",
          "survey of distributed training",
          "Bytes over the busiest link, from the schedules. The server's in proportion to the workers and the "
          "ring's below twice the gradients: holds here; the server's growing faster: under conditions; else "
          "wrong.",
          communication.examine_ring),
    Claim("averaging", "Averaging weights",
          "Averaging weights is faster than synchronous training, but it is not backpropagation.",
          "survey of distributed training",
          "Less communication, and other weights than synchronous training: holds here if they differ by more "
          "than 0.001 even when averaged in every step, else under conditions; not less, or the same weights: "
          "wrong.",
          communication.examine_averaging),
    Claim("model-parallel-gradients", "Gradients under model parallelism",
          "Under model parallelism the devices see the same data and all-reduce their gradients.",
          "survey of distributed training",
          "Elements that the ranks of a model cut into layers sum in a step. At least half as many as data "
          "parallelism sums: holds here; below a hundredth: wrong; else under conditions.",
          communication.examine_model_parallel_gradients),
    Claim("strategies", "Data against model parallelism",
          "On two GPUs data parallelism is 30.5 % faster and model parallelism 4.5 %.",
          "survey, table 2",
          "Modelled speedups on two of its GPUs. Within 5 points of the table from data sheets: holds here; "
          "with the fitted assumptions alone: under conditions; else wrong.",
          strategies.examine_strategies),
]


def find_claims(ids):
    """Claims with these ids, all without any, in the order of the page. Raises CommandFailed with the ids."""
    known = [claim.id for claim in CLAIMS]
    for name in ids:
        if name not in known:
            raise CommandFailed(f'no claim "{name}"; choose from: {", ".join(known)}', USAGE)
    return [claim for claim in CLAIMS if not ids or claim.id in ids]


def examined(claim, program):
    start = time.monotonic()
    found = claim.examine(program)
    return {"id": claim.id, "title": claim.title, "claim": claim.claim, "source": claim.source,
            "verdict": found["verdict"], "rule": claim.rule, "why": found["why"], "commands": found["commands"],
            "tables": found["tables"], "charts": found["charts"],
            "seconds": figure(time.monotonic() - start, "s", "measured")}


def results(program, ids, say):
    """The results of the report. `say` receives each claim before its examination."""
    claims = []
    for claim in find_claims(ids):
        say(f"{claim.id} …")
        claims.append(examined(claim, program))
    summary = {verdict: sum(claim["verdict"] == verdict for claim in claims) for verdict in VERDICTS}
    return {"claims": claims, "summary": summary, "quick": program.quick}


def run(stream, arguments):
    """Called by `triptych reproduce`, which ends this process and its commands by SIGTERM after a signal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # removes temporary files

    def send(message):
        print(json.dumps(message, allow_nan=False), file=stream, flush=True)
    try:
        program = Program(arguments["program"], arguments["quick"], arguments["options"])
        send({"results": results(program, arguments["claims"], lambda text: send({"say": text}))})
    except CommandFailed as problem:
        send({"failed": str(problem), "code": problem.exit_code})


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--claims", default="")
    options = parser.parse_args()
    ids = [name for name in options.claims.split(",") if name]
    try:
        found = results(Program(options.program, options.quick), ids, lambda text: print(text, file=sys.stderr))
    except CommandFailed as problem:
        print(f"reproduce: {problem}", file=sys.stderr)
        return problem.exit_code
    print(json.dumps(found, indent=2, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
