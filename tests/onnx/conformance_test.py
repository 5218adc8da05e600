"""ONNX's own tests, run by the program: what it runs is right, and what it could once it still can.

Usage: conformance_test.py PROGRAM [--few] [--backend NAME] [--same-bits BACKENDS] [--update] [--data FOLDER]

A test passes, is unsupported (exit code 4), or is wrong: every other exit code, an output of another type or shape,
or values beyond ONNX's own tolerance. Nothing may be wrong, and what stands in passing.txt must pass; what passes
and does not stand there is named, and --update adds it. --few takes a few of the list. --same-bits runs each test of
the list under bf16-exact on several machines, whose outputs must have the same bytes; the first must run all.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy

    import suite
except ImportError:
    print("skipped: python3-numpy is missing (apt-get install python3-numpy)")
    sys.exit(77)

LIST = pathlib.Path(__file__).parent / "passing.txt"
FEW = 30
UNSUPPORTED = 4


def run(options, case, folder, *machine):
    """(exit code, message) of the program on the inputs of `case`; outputs lie in `folder`."""
    inputs = []
    for i, array in enumerate(case.arrays("input")):
        numpy.save(folder / f"input_{i}.npy", array, allow_pickle=False)
        inputs += ["--input", str(folder / f"input_{i}.npy")]
    command = [options.program, "run", str(case.model), *inputs, "--out", str(folder / "out"), "--threads", "1",
               *machine]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
    return result.returncode, result.stderr.strip()


def difference(expected, path):
    if not path.is_file():
        return "was not written"
    got = numpy.load(path, allow_pickle=False)
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"is {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind in "iub":
        return "" if numpy.array_equal(got, expected) else "has other numbers"
    close = numpy.isclose(got, expected, rtol=1e-3, atol=1e-7, equal_nan=True)
    return "" if close.all() else f"differs in {(~close).sum()} of {close.size} numbers"


def verdict(options, case):
    """(passed, unsupported or wrong, reason)"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        code, message = run(options, case, folder, "--backend", options.backend)
        if code == UNSUPPORTED:
            return "unsupported", message
        if code != 0:
            return "wrong", f"exit code {code}: {message}"
        for i, expected in enumerate(case.arrays("output")):
            problem = difference(expected, folder / f"out/output_{i}.npy")
            if problem:
                return "wrong", f"output {i} {problem}"
    return "passed", ""


def bits_verdict(options, case):
    seen = {}
    for backend in options.same_bits.split(","):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            code, message = run(options, case, folder, "--backend", backend, "--contract", "bf16-exact")
            if code == UNSUPPORTED and seen:
                continue
            if code != 0:
                return "wrong", f"{backend}: exit code {code}: {message}"
            content = [path.read_bytes() for path in sorted((folder / "out").glob("*.npy"))]
            seen.setdefault(tuple(content), backend)
    return ("passed", "") if len(seen) == 1 else ("wrong", f"other bits on {', '.join(seen.values())}")


def judged(options, chosen):
    judge = bits_verdict if options.same_bits else verdict
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((case.name for case in chosen), pool.map(lambda case: judge(options, case), chosen)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--same-bits", default="")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--data", type=pathlib.Path, help="folder of another version's tests")
    options = parser.parse_args()
    folder = options.data or suite.root()
    if folder is None:
        print("skipped: libonnx-testdata is missing (apt-get install libonnx-testdata)")
        return 77
    kept = LIST.read_text().split()
    chosen = [case for case in suite.cases(folder) if case.expressible()]
    if options.few or options.same_bits:
        names = set(kept[::max(1, len(kept) // FEW)] if options.few else kept)
        chosen = [case for case in chosen if case.name in names]
    results = judged(options, chosen)
    for name, (result, why) in results.items():
        if result == "wrong":
            print(f"WRONG {name}: {why}")
    passed = {name for name, (result, _) in results.items() if result == "passed"}
    lost = [name for name in kept if name in results and name not in passed]
    for name in lost:
        print(f"LOST {name}: {results[name][1]}")
    new = sorted(passed - set(kept))
    for name in new:
        print(f"NEW {name}: add it to the list by --update")
    if options.update:
        LIST.write_text("".join(f"{name}\n" for name in sorted(passed | set(kept))))
    count = {kind: sum(result == kind for result, _ in results.values()) for kind in ("passed", "wrong", "unsupported")}
    print(", ".join(f"{number} {kind}" for kind, number in count.items()))
    return 1 if lost or count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
