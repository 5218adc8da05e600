#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code that nvcc makes of the kernels, read without a GPU: PTX, ptxas's words, and SASS where cuobjdump
and nvdisasm are found (in PATH or beside nvcc; NVIDIA's toolkit and its Python packages have them).

    check_ptx.py [FILE...]      files of backends/cuda/kernels without .cu; none: all of them

Every kernel for compute capability 8.0 and 9.0a: no spilled registers; no product of a warpgroup
that ptxas must wait for (C7508, C7510 and their kin); no approximate function, and no arithmetic
that keeps subnormals; no sign turned by an instruction that flushes them where arithmetic does not
flush them anyway; no sum of a warpgroup's products read before the wait for them; and accesses as
wide as they are written; no maximum that ptxas makes of a choice.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
NO_KERNELS = {"kernel_table"}  # lists them all, from a header that a build makes
FLAGS = ("-std=c++20 -I. -O3 -fmad=false -ftz=true --expt-relaxed-constexpr "
         "-Xptxas -v -cubin --keep").split()

# Accesses of a kernel by their instructions in PTX, as many as there are in the source once its
# loops of known length are unrolled; what is not named here may be any number.
LADDER = {"ld.shared": 2, "ld.shared.v2": 0, "ld.shared.v4": 0, "st.shared": 2, "st.global": 1}
ACCESSES = [
    (r"\bvectorised_gemm_kernel<MatMulProblem<",
     {"ld.global.v4": 4, "st.global.v4": 16, "st.global": 0, "ld.shared.v4": 16, "ld.shared": 0}),
    (r"\bmatmul_tiled_kernel<", {**LADDER, "ld.global": 4}),
    (r"\bmatmul_(naive|coalesced)_kernel<", {"ld.global": 4, "st.global": 1}),
    (r"\bgemm_kernel<MatMulProblem<", {"ld.shared": 0}),
    (r"\bhopper_gemm_kernel<(?!.*BFloat16)", {"st.global.v2": 64, "st.global": 128}),
    (r"\bhopper_gemm_kernel<.*BFloat16", {"st.global.v4": 16, "st.global.v2": 0, "st.global": 0}),
    (r"\bround_rows_kernel<true>",
     {"ld.global.v4": 1, "ld.global": 0, "st.global.v2": 1, "st.global": 0}),
    (r"\bround_rows_kernel<false>", {"st.global.v2": 1, "st.global": 0}),
    (r"\bround_weights_kernel\b", {"st.global.v4": 1, "st.global": 0}),
    (r"\bround_images_kernel<4>", {"ld.global.v4": 8, "ld.global": 0, "st.global.v4": 4, "st.global": 0}),
    (r"\bround_images_kernel<1>", {"st.global.v4": 1, "st.global": 0}),
    (r"\bmap_fours_kernel<(?:UnaryFormula<|GeluTanh)", {"ld.global.v4": 1, "st.global.v4": 1}),
    (r"\bmap_fours_kernel<BinaryFormula<", {"ld.global.v4": 2, "st.global.v4": 1}),
    (r"\bfused_fours_kernel\b", {"st.global.v4": 1}),
    (r"\bdropout_kernel<true>", {"ld.global.v4": 1, "st.global.v4": 1}),
    (r"\bscaled_contiguous_kernel<Quantize>", {"ld.global.v4": 1}),
    (r"\bscaled_contiguous_kernel<Dequantize<", {"st.global.v4": 1}),
    (r"\bchannel_sums_kernel<4>", {"ld.global": 0, "ld.global.v2": 0}),
    (r"\bchannel_squares_kernel<4>", {"ld.global": 3, "ld.global.v2": 0}),
    (r"\bgradient_sums_kernel<4>", {"ld.global": 4, "ld.global.v2": 0}),
    (r"\bnormalize_kernel<\w+, 4>", {"ld.global.v4": 3, "st.global.v4": 3}),
    (r"\bnormalize_gradient_kernel<4>", {"ld.global.v4": 6, "st.global.v4": 3}),
    (r"\bnormalize_(gradient_)?channels_last_kernel<(\w+, )?4>", {"st.global.v4": 4, "st.global": 0}),
    (r"\bpiece_moments_kernel\b", {"ld.global.v4": 8, "ld.global": 0}),
    (r"\bgradient_pieces_kernel<PieceSources<LastPieces<.*LastPieces<", {"ld.global.v4": 8}),
    (r"\bnormalize_pieces_kernel<\w+, LastPieces<",
     {"ld.global.v4": 4, "st.global.v4": 4, "st.global": 0}),
    (r"\bnormalize_gradient_pieces_kernel<PieceSources<LastPieces<.*LastPieces<.*LastPieces<",
     {"ld.global.v4": 8, "st.global.v4": 4, "st.global": 0}),
    (r"\badd_pieces_kernel\b",
     {"ld.global.v4": 8, "ld.global": 0, "st.global.v4": 4, "st.global": 0}),
    (r"\bmax_pool_spread_kernel<4>",
     {"ld.global.v4": 20, "ld.global": 8, "st.global.v4": 16, "st.global": 0}),
    (r"\bfold_pieces_kernel\b", {"ld.global.v4": 4, "ld.global": 0}),
    (r"\bthin_spread_kernel<\d, LastPieces<", {"st.global.v4": 1, "st.global": 0}),
    (r"\bthin_gather_kernel<LastPieces<", {"ld.global.v4": 4}),
    (r"\bthin_weight_gradient_kernel<1, LastPieces<", {"ld.global.v4": 4}),
    (r"\bthin_weight_gradient_kernel<9, LastPieces<", {"ld.global.v4": 2}),
    (r"\bfold_rows_kernel<\w+<float>, 4>", {"ld.global": 0, "ld.global.v2": 0}),
    (r"\bbinary_cross_entropy_kernel<4>", {"ld.global": 0, "ld.global.v2": 0}),
    (r"\bbinary_cross_entropy_gradient_kernel<4>", {"ld.global.v4": 2, "st.global.v4": 1}),
    (r"\bloss_sums_kernel<4>", {"ld.global": 0, "ld.global.v2": 0}),
    (r"\bmax_pool_groups_kernel<2>", {"ld.global.v4": 2, "ld.global": 0, "st.global.v2": 1}),
    (r"\bmax_pool_gradient_groups_kernel<2>",
     {"ld.global.v4": 2, "ld.global.v2": 1, "ld.global": 0, "st.global.v4": 2, "st.global": 0}),
    (r"\bmax_pool_index_groups_kernel<2>", {"ld.global.v4": 2, "ld.global": 0, "st.global.v2": 1}),
    (r"\bmax_pool_index_gradient_groups_kernel<2>",
     {"ld.global.v2.u8": 1, "ld.global.v2": 1, "ld.global.v4": 2, "ld.global": 0,
      "st.global.v4": 2, "st.global": 0}),
    (r"\badam_kernel<", {"ld.global.v4": 4, "st.global.v4": 3}),
    (r"\bsgd_kernel<ParameterTable<2,", {"ld.global.v4": 2, "st.global.v4": 1}),
    (r"\bsgd_kernel<ParameterTable<3,", {"ld.global.v4": 3, "st.global.v4": 2}),
    (r"\bflash_attention_kernel<\w+, 64>", {"st.global.v4": 4}),
    (r"\bflash_attention_kernel<\w+, 128>", {"st.global.v4": 8}),
    (r"\bflash_attention_key_gradient_kernel<", {"ld.shared": 0, "st.shared.v4": 8}),
    (r"\bflash_attention_query_gradient_kernel<", {"ld.shared": 0, "st.shared.v4": 4}),
    (r"\bstrided_copy_kernel<Vector<unsigned long, 2>", {"ld.global.v2": 1, "st.global.v2": 1}),
]
# The same instructions in SASS; what moves 64-bit elements is as wide in bytes.
SASS_NAMES = {"ld": "LD", "st": "ST", "global": "G", "shared": "S"}
SASS_WIDTHS = {"": "", "v2.u8": "U16", "v2": "64", "v4": "128"}

ACCESS = re.compile(r"^\s*(?:@!?%\w+\s+)?"
                    r"((?:ld|st)\.(?:global|shared)(?:\.v2\.u8|\.v[24])?)[.\s]", re.M)
APPROXIMATE = re.compile(r"\b(?:\w+\.approx|div\.full)\b[\w.]*")
COMPUTES = r"(?:add|sub|mul|fma|div|sqrt|rcp|min|max)"
# ptxas makes it of a choice by a comparison with 0, whose PTX flushes subnormals and keeps NaN's bits.
MAXIMUM_WITH_ZERO = re.compile(r"\bFMNMX\.NAN .*\bRZ\b")
KEEPS_SUBNORMALS = re.compile(rf"\b(?:{COMPUTES}|neg)(?:\.r[nzmp])?\.f32\b")
ARITHMETIC = re.compile(rf"^(?:{COMPUTES}|setp|set|cvt\.\w+\.ftz)\b")
REGISTER = re.compile(r"%\w+")


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def output_of(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def plain(names):
    """Mangled names as a reader wants them: without namespaces, result and parameters."""
    text = output_of(["c++filt", *names])
    spaces = r"\(anonymous namespace\)::|\b(?:triptych|cuda|gpu)::|^void "
    text = re.sub(spaces, "", text, flags=re.M)
    lines = [re.sub(r">\s*\(.*$", ">", line) for line in text.splitlines()]
    return {name: line[:line.rindex(">") + 1] if "<" in line else line.split("(")[0]
            for name, line in zip(names, lines)}


def functions_of(ptx):
    """Name and body of each kernel."""
    for match in re.finditer(r"\.entry (\w+)\(.*?^}", ptx, re.S | re.M):
        yield match.group(1), match.group(0)


def instructions_of(body):
    """Each statement as its words without a guard; inline assembly of several is one."""
    for line in body.splitlines():
        text = re.sub(r"^@!?%\w+\s+", "", line.strip())
        if text and text[0] not in "./{}$" or text.startswith("{ "):
            yield text


def signs_turned(body):
    """Registers that neg.ftz writes and something else than arithmetic reads, unless they come out
    of arithmetic, too."""
    texts = list(instructions_of(body))
    computed = {REGISTER.search(text).group(0) for text in texts
                if ARITHMETIC.match(text) and ".ftz" in text}
    turned = set()
    for text in texts:
        if text.startswith("neg.ftz.f32"):
            target, source = REGISTER.findall(text)
            if source not in computed:
                turned.add(target)
    for text in texts:
        operands = REGISTER.findall(text)
        for register in turned.intersection(operands if text.startswith("st.") else operands[1:]):
            if not ARITHMETIC.match(text):
                yield f"neg.ftz writes {register} and flushes subnormals, and this reads it: {text}"


def sums_read_early(body):
    """Reads of what wgmma writes before `wgmma.wait_group 0`, in the order of the text; a copy of
    such a register counts as one."""
    pending = set()
    for text in instructions_of(body):
        if "wgmma.mma_async" in text:
            sums = text[text.index("wgmma.mma_async"):].split("}")[0]
            pending |= set(REGISTER.findall(sums))
        elif "wgmma.wait_group.sync.aligned 0" in text:
            pending.clear()
        elif pending:
            operands = REGISTER.findall(text)
            read = pending.intersection(operands if text.startswith("st.") else operands[1:])
            if read and text.startswith("mov."):
                pending.add(operands[0])
            elif read:
                yield f"reads {min(read)} before the products are waited for: {text}"
    if pending:
        yield "ends without a wait for its products"


def sums_read_early_in_sass(lines):
    pending = set()
    for line in lines:
        registers = {int(number) for number in re.findall(r"\bR(\d+)\b", line)}
        product = re.search(r"HGMMA\.64x(\d+)x\d+\S*\s+R(\d+)", line)
        if product:
            first = int(product.group(2))
            pending |= set(range(first, first + int(product.group(1)) // 2))
        elif re.search(r"WARPGROUP\.DEPBAR\.LE \w+, 0x0", line):
            pending.clear()
        elif pending & registers:
            first = min(pending & registers)
            yield f"touches R{first} before the products are waited for: {line.strip()}"


def access_problems(name, counts, sass=False):
    for pattern, expected in ACCESSES:
        if not re.search(pattern, name):
            continue
        for instruction, count in expected.items():
            key = instruction
            if sass:
                kind, space, *width = instruction.split(".")
                units = SASS_WIDTHS[".".join(width)]
                if "unsigned long" in name and units:
                    units = str(2 * int(units))
                key = SASS_NAMES[kind] + SASS_NAMES[space] + units
            if counts[key] != count and not (sass and not re.search(r"\.v", instruction)):
                yield f"has {counts[key]} times {key} instead of {count}"


def sass_problems(cubin):
    """Per kernel, from the disassembler's listing."""
    listing = output_of(["cuobjdump", "-sass", str(cubin)])
    parts = re.split(r"^\s*Function : (\w+)$", listing, flags=re.M)[1:]
    names = plain(parts[0::2])
    for mangled, body in zip(parts[0::2], parts[1::2]):
        name = names[mangled]
        lines = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", body, re.M)
        counts = collections.Counter()
        for line in lines:
            match = re.search(r"\b(LDG|STG|LDS|STS)\.?([\w.]*)", line)
            if match:
                width = re.search(r"\b(U16|64|128)\b", match.group(2))
                counts[match.group(1) + (width.group(1) if width else "")] += 1
        problems = [*access_problems(name, counts, sass=True), *sums_read_early_in_sass(lines)]
        problems += sorted({f"has a maximum with 0 for a choice, which keeps subnormals: {line}"
                            for line in lines if MAXIMUM_WITH_ZERO.search(line)})
        yield from (f"{name}: SASS {problem}" for problem in problems)


def ptx_problems(ptx, log):
    kernels = dict(functions_of(ptx))
    names = plain(list(kernels))
    for mangled, body in kernels.items():
        counts = collections.Counter(ACCESS.findall(body))
        problems = list(access_problems(names[mangled], counts))
        problems += sorted({f"is approximate: {text}" for text in APPROXIMATE.findall(body)})
        problems += sorted({f"keeps subnormals: {text}" for text in KEEPS_SUBNORMALS.findall(body)})
        problems += list(signs_turned(body)) + list(sums_read_early(body))
        yield from (f"{names[mangled]}: {problem}" for problem in problems)
    spills = re.findall(r"Compiling entry function '(\w+)'.*?"
                        r"(\d+) bytes spill stores, (\d+) bytes spill loads", log, re.S)
    if len(spills) != len(kernels):
        yield f"ptxas tells of {len(spills)} kernels, and there are {len(kernels)}"
    for mangled, stores, loads in spills:
        if int(stores) + int(loads) > 0:
            yield f"{names.get(mangled, mangled)}: spills {stores} bytes"
    yield from re.findall(r".*\(C75\d\d\).*", log)


def check(nvcc, file, architecture, disassembles):
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder, "kernel.cubin")
        done = subprocess.run(
            [nvcc, *FLAGS, "--keep-dir", folder, "-gencode",
             f"arch=compute_{architecture},code=sm_{architecture}",
             f"backends/cuda/kernels/{file}.cu", "-o", str(cubin)],
            cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            return [done.stderr], 0
        ptx = pathlib.Path(folder, f"{file}.ptx").read_text()
        problems = list(ptx_problems(ptx, done.stderr + done.stdout))
        if disassembles:
            problems += list(sass_problems(cubin))
        return problems, len(re.findall(r"\.entry ", ptx))


def main():
    nvcc = find_nvcc()
    if nvcc is None:
        print("skipped: nvcc is not installed (it comes with the CUDA toolkit)")
        return 77
    os.environ["PATH"] += os.pathsep + str(pathlib.Path(nvcc).parent)
    disassembles = all(shutil.which(tool) for tool in ("cuobjdump", "nvdisasm"))
    sources = (ROOT / "backends/cuda/kernels").glob("*.cu")
    files = sys.argv[1:] or sorted(source.stem for source in sources if source.stem not in NO_KERNELS)
    units = [(file, architecture) for file in files for architecture in ("80", "90a")]
    kernels, failed = 0, False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda unit: check(nvcc, *unit, disassembles), units)
        for (file, architecture), (problems, count) in zip(units, results):
            kernels += count
            for problem in problems:
                failed = True
                print(f"{file}.cu for {architecture}: {problem}")
    print(f"{kernels} kernels of {len(files)} files read in PTX" +
          (" and SASS" if disassembles else
           "; SASS was not, since cuobjdump and nvdisasm are not installed"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
