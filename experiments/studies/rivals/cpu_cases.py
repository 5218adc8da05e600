"""Measurements of compare_cpu.py: the cases of each part, with the bars that each is to meet."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses

from cpu_report import Bar
from cpu_rivals import gflop


@dataclasses.dataclass
class Case:
    name: str
    entries: list
    bars: list
    most_rounds: int = 1000
    samples: dict = dataclasses.field(default_factory=dict)  # of an entry: one result per round
    errors: dict = dataclasses.field(default_factory=dict)


def products(programs, threads):
    for size in (512, 1024, 2048, 4096):
        for count in sorted({1, threads}):
            work = 2e-9 * size ** 3
            repeats = programs.repeats_for(work)
            bars = [Bar("ours", ("OpenBLAS", "oneDNN plain"), 1.0, work=(work, work)),
                    Bar("ours packed", ("oneDNN packed",), 1.0, work=(work, work))]
            if size >= 1024:
                bars.append(Bar("ours", ("fma peak",), 0.92, work=(work, 1)))
            yield Case(f"gemm {size}, {count} threads",
                       [programs.our_product(size, count, repeats, packed)
                        for packed in (False, True)] + [programs.fma_peak(count)] +
                       programs.rival_products(size, count, repeats), bars)


def model_case(programs, model, mode, batch, threads, bars):
    case = (model, mode, batch, threads, programs.repeats_for(gflop(model, mode, batch)))
    return Case(f"{model} {mode}, batch {batch}, {threads} threads",
                [programs.our_model(*case), *programs.rival_models(*case)], bars)


def inference(programs, threads):
    def beside(onnxruntime, onednn):
        return [Bar("ours", ("ONNX Runtime",), onnxruntime), Bar("ours", ("oneDNN",), onednn)]
    for batch in (1, 8):
        yield model_case(programs, "unet-s", "infer", batch, threads,
                         [Bar("ours", ("ONNX Runtime", "oneDNN"), 1.4)])
    for batch in (1, 8):
        yield model_case(programs, "unet-m", "infer", batch, threads, beside(1.6, 1.15))
    for count in sorted({1, threads}):
        for batch in (1, 4):
            yield model_case(programs, "unet-l", "infer", batch, count, beside(2.0, 1.15))


def training(programs, threads):
    for model, batch, least in (("unet-s", 8, 3.5), ("unet-m", 8, 2.7), ("unet-l", 1, 2.0),
                                ("unet-l", 4, 2.0)):
        yield model_case(programs, model, "train", batch, threads,
                         [Bar("ours", ("PyTorch",), least), Bar("ours", ("oneDNN",), 1.2)])


def half(programs, threads):
    """Under bf16, next to OpenVINO's own choice on a processor with a tile unit and PyTorch's autocast."""
    for model, mode, batch in (("unet-s", "infer", 1), ("unet-s", "infer", 8), ("unet-m", "infer", 1),
                               ("unet-m", "infer", 8), ("unet-l", "infer", 1), ("unet-s", "train", 8),
                               ("unet-m", "train", 8), ("unet-l", "train", 4)):
        case = (model, mode, batch, threads, programs.repeats_for(gflop(model, mode, batch)))
        bar = Bar("ours bf16", ("OpenVINO bf16",), 1.0) if mode == "infer" else Bar("ours bf16", ("PyTorch bf16",), 1.2)
        yield Case(f"bf16 of {model} {mode}, batch {batch}, {threads} threads",
                   [programs.our_model(*case), *programs.half_models(*case)], [bar])


def integers(programs, threads):
    """Under int8, next to the same network quantised by OpenVINO's NNCF, and in its default precision."""
    for count in sorted({1, threads}):
        for batch in (1, 8):
            case = ("unet-m", batch, count, programs.repeats_for(gflop("unet-m", "infer", batch)))
            model, *sizes = case
            yield Case(f"int8 of unet-m infer, batch {batch}, {count} threads",
                       [programs.our_model(model, "infer", *sizes, "ours int8", "int8"),
                        programs.openvino(*case, "int8"), programs.openvino(*case, "bf16")],
                       [Bar("ours int8", ("OpenVINO int8",), 1.0)])


def memory(programs, threads):
    """The whole process at its peak, which a few runs reach."""
    for mode, rival, most in (("infer", "ONNX Runtime", 0.5), ("train", "PyTorch", 0.7)):
        case = ("unet-l", mode, 4, threads, 1)
        others = [entry for entry in programs.rival_models(*case) if entry.family == rival]
        yield Case(f"memory of unet-l {mode}, batch 4", [programs.our_model(*case), *others],
                   [Bar("ours", (rival,), most, smaller=True, quantity="peak_memory_mib")],
                   most_rounds=2)


def scaling(programs, threads):
    """1.85 of 2 threads. A round counts only if the machine itself has that many cores."""
    for model in ("unet-m", "unet-l") if threads > 1 else ():
        for mode in ("infer", "train"):
            entries = []
            for count in (1, threads):
                repeats = programs.repeats_for(gflop(model, mode, 1))
                entries += [programs.our_model(model, mode, 1, count, repeats, f"{count} threads"),
                            programs.fma_peak(count)]
            machine = (f"fma peak, {threads} threads", "fma peak, 1 threads", 0.975 * threads)
            yield Case(f"threads of {model} {mode}, batch 1", entries,
                       [Bar(f"{threads} threads", ("1 threads",), 0.925 * threads,
                            machine=machine)])


def neighbour(programs, threads):
    """Next to a process that never waits, on one of the processors, with baselines for comparison."""
    case = ("unet-m", "infer", 1, threads, programs.repeats_for(gflop("unet-m", "infer", 1)))
    for entry in (programs.our_model(*case), *programs.rival_models(*case)) if threads > 1 else ():
        beside = dataclasses.replace(entry, name=f"{entry.name} beside another",
                                     beside_another=True)
        most = 1.6 if entry.name == "ours" else None
        yield Case(f"neighbour of unet-m infer, batch 1, {threads} threads: {entry.name}",
                   [entry, beside], [Bar(beside.name, (entry.name,), most, smaller=True)])


def first(programs, threads, folder):
    """From the start of the process to the mask, packing of the weights included."""
    entry = programs.ours(threads, name="ours")
    entry.command = [programs.program, "run", folder / "run", "--input",
                     folder / "image/images/00000.png", "--out", folder / "masks", "--threads",
                     threads]
    entry.runs_to_time = 10
    yield Case("first mask of unet-s", [entry], [Bar("ours", (), 0.060, smaller=True)])


PARTS = {"gemm": products, "infer": inference, "train": training, "bf16": half, "int8": integers, "memory": memory,
         "threads": scaling, "neighbour": neighbour, "first": first}


def cases_of(part, programs, threads, folder):
    """Without missing programs. `folder` has the files of prepare_first."""
    cases = list(PARTS[part](programs, threads, *([folder] if part == "first" else [])))
    for case in cases:
        case.entries = [entry for entry in case.entries if entry.family in programs.families]
    return [case for case in cases if case.entries]
