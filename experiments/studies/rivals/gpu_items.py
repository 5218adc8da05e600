"""Items of gpu_session.sh: four parts, each a list of items, the most valuable first.

An item is one process with a time of its own, so that what hangs or crashes costs no other. The
times of a part add up to less than nine minutes.
"""
# SPDX-License-Identifier: Apache-2.0
import dataclasses

PART_SECONDS = 530
LADDER = ("naive", "coalesced", "tiled", "tiled-transposed", "tiled-padded")
NCU = {"requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
       "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
       "wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"}


@dataclasses.dataclass
class Item:
    name: str
    seconds: int
    command: list  # "triptych", "backend_test" and "torch_rivals" stand for the packed programs
    needs: str = ""  # a tool that the machine may lack: "torch", "ncu", "compute-sanitizer"
    environment: dict = dataclasses.field(default_factory=dict)


def triptych(name, seconds, words, **more):
    return Item(name, seconds, ["triptych", *words.split(), "--json"], **more)


def torch(what, seconds):
    return Item(f"torch_{what}", seconds, ["torch_rivals", what], needs="torch")


def conformance(name, seconds, cases, backends="cpu,cuda", **more):
    return Item(name, seconds, ["backend_test", "--gtest_brief=1", f"--gtest_filter={cases}"],
                environment={"TRIPTYCH_TEST_BACKENDS": backends}, **more)


def smoke():
    """Every path once, in a process of its own."""
    seconds = 6
    items = []
    for contract, kernels in (
            ("bf16", ("hopper", "tensor-core", "vectorised", "cublaslt")),
            ("f32", ("vectorised", "register-tiled", *LADDER, "cublaslt"))):
        items += [triptych(f"smoke_matmul_{contract}_{kernel}", seconds,
                           f"bench matmul --backend cuda --contract {contract} --kernel {kernel} "
                           "--sizes 256 --repeats 2") for kernel in kernels]
    for contract, kernels in (("bf16", ("hopper", "tensor-core", "cudnn-nhwc", "cudnn-bf16")),
                              ("f32", ("implicit", "cudnn"))):
        for kernel in kernels:
            for direction in ("forward", "data", "weights"):
                items.append(triptych(
                    f"smoke_conv_{contract}_{kernel}_{direction}", seconds,
                    f"bench conv --backend cuda --contract {contract} --kernel {kernel} "
                    f"--shape 64,64,32,32 --pass {direction} --repeats 2"))
    for direction, window in (("forward", 3), ("data", 1), ("weights", 3)):
        items.append(triptych(f"smoke_conv_bf16_thin_{direction}", seconds,
                              "bench conv --backend cuda --contract bf16 --kernel thin --shape "
                              f"1,64,32,32 --window {window} --pass {direction} --repeats 2"))
    for contract, kernel in (("bf16", "flash-tensor-core"), ("f32", "flash")):
        items.append(triptych(f"smoke_attention_{kernel}", seconds,
                              f"bench attention --backend cuda --contract {contract} --kernel "
                              f"{kernel} --head-size 128 --lengths 256 --repeats 2"))
    items.append(triptych("smoke_attention_gradient_flash", seconds,
                          "bench attention --backend cuda --gradient --kernel flash --head-size 128 "
                          "--lengths 256 --repeats 2"))
    for name, option in (("launches", " --no-graph"), ("graph", "")):
        items.append(triptych(f"smoke_step_{name}", seconds,
                              "train --backend cuda --contract bf16-exact --model unet-s --steps 2 "
                              f"--synthetic-images 5 --out WORK/{name}{option}"))
    return items


def part_a():
    return [triptych("devices", 20, "devices"), *smoke(),
            conformance("hopper_references", 90, "*LargeProducts*", backends="cuda"),
            conformance("conformance", 120, "*OnEveryBackend*"),
            triptych("same_bits", 50, "train --model unet-s --steps 20 --contract bf16-exact "
                     "--backends cpu,cuda --out WORK/same_bits")]


def part_b():
    items = [torch("products", 60)]
    items += [triptych(f"matmul_bf16_{kernel}", 20, "bench matmul --backend cuda --contract bf16 "
                       f"--kernel {kernel} --sizes 4096,8192 --repeats 20")
              for kernel in ("hopper", "tensor-core", "cublaslt", "vectorised")]
    items += [torch("copy", 30), triptych("bandwidth", 30, "bench bandwidth --backends cuda"),
              torch("attention", 60)]
    for contract, kernel in (("bf16", "flash-tensor-core"), ("f32", "flash")):
        items.append(triptych(f"attention_{kernel}", 30,
                              f"bench attention --backend cuda --contract {contract} --heads 16 "
                              f"--head-size 128 --lengths 1024..8192 --kernel {kernel} "
                              "--repeats 10"))
    items += [triptych(f"matmul_f32_{kernel}", 15, "bench matmul --backend cuda --contract f32 "
                       f"--kernel {kernel} --sizes 4096 --repeats 5")
              for kernel in ("vectorised", "cublaslt", "register-tiled", "tiled-padded", "tiled",
                             "coalesced", "naive")]
    items.append(triptych("attention_materialised", 30, "bench attention --backend cuda --contract "
                          "f32 --heads 16 --head-size 128 --lengths 1024..4096 --kernel "
                          "materialised --repeats 5"))
    return items


def part_c():
    model = "--backend cuda --model unet-l --batch 8"
    return [triptych("step_unet_l", 60, f"bench {model} --contract bf16 --mode train --repeats 20 "
                     "--layers"),
            torch("eager", 40), torch("convolutions", 90),
            triptych("layers_bf16", 80, f"explain {model} --contract bf16"),
            torch("copy", 30), triptych("bandwidth", 30, "bench bandwidth --backends cuda"),
            triptych("step_unet_s", 20, "bench --backend cuda --contract f32 --model unet-s --mode "
                     "train --batch 1 --repeats 50"),
            torch("compiled", 100),
            triptych("layers_f32", 80, f"explain {model} --contract f32")]


def part_d():
    items = []
    for step in LADDER:
        shape = f"--kernel {step} --sizes 256"
        items.append(triptych(f"counted_{step}", 28,
                              f"bench matmul --backend cuda-emulated {shape}"))
        items.append(Item(f"ncu_{step}", 30, [
            "ncu", "--csv", "--clock-control", "none", "--launch-count", "1", "--kernel-name",
            "regex:matmul", "--metrics", ",".join(NCU.values()), "triptych", "bench", "matmul",
            "--backend", "cuda", *shape.split(), "--repeats", "1"], needs="ncu"))
    for tool, seconds, cases in (
            ("memcheck", 90, "*MatMul*:*Conv*:*Attention*:*BatchNorm*:*MaxPool*:*Softmax*:*Adam*"),
            ("racecheck", 90, "*MatMul*:*Conv_*:*Attention*:*Softmax_*"),
            ("initcheck", 60, "*MatMul*:*Conv_*")):
        item = conformance(tool, seconds, cases, backends="cuda", needs="compute-sanitizer")
        item.command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *item.command]
        items.append(item)
    return items


PARTS = {"A": part_a, "B": part_b, "C": part_c, "D": part_d}
