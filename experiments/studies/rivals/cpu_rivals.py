"""Programs that compare_cpu.py runs: the commands of ours and of the rivals, and which of these are here.

A program is asked for some samples of one case, and prints one JSON object.
"""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import glob
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {"unet-s": 64, "unet-m": 128, "unet-l": 256}
MULTIPLY_ADDS = {"unet-s": 36.11e6, "unet-m": 3.008e9, "unet-l": 48.09e9}  # of an image's inference
INSTALL = {
    "fma peak": "a C++ compiler; see fma_peak.log in the build folder",
    "OpenBLAS": "apt-get install libopenblas-dev",
    "oneDNN": "apt-get install libdnnl-dev (oneDNN 2)",
    "ONNX Runtime": "apt-get install nodejs npm python3-torch; npm install --ignore-scripts "
                    "--prefix {build} onnxruntime-node@1.30.0 (or set NODE_PATH)",
    "PyTorch": "apt-get install python3-torch libopenblas0-openmp",
    "OpenVINO": "pip install openvino nncf, beside PyTorch, in an environment whose python PYTHON names",
}


@dataclasses.dataclass
class Entry:
    """One command of a case: `name` is unique in it, `family` is who made the program."""
    name: str
    family: str
    command: list
    threads: int
    environment: dict = dataclasses.field(default_factory=dict)
    beside_another: bool = False  # a process that takes one of the processors
    runs_to_time: int = 0  # whole processes, by the clock; 0: the program prints its samples


def gflop(model, mode, batch):
    return MULTIPLY_ADDS[model] * (2 if mode == "infer" else 6) * batch / 1e9


class Programs:
    def __init__(self, program, build, rivals, most_samples):
        self.program, self.build = program, pathlib.Path(build)
        self.most_samples = most_samples
        self.node_path = os.environ.get("NODE_PATH", str(self.build.resolve() / "node_modules"))
        # With the other OpenBLAS, its threads and PyTorch's share the cores badly.
        self.openmp_blas = next(iter(glob.glob("/usr/lib/*/openblas-openmp")), "")
        families = list(INSTALL) if rivals else ["fma peak"]
        self.missing = {name: INSTALL[name].format(build=os.path.relpath(build)) for name in families
                        if not self.is_here(name)}
        self.families = {"ours"} | set(families) - set(self.missing)

    def is_here(self, family):
        built = {"fma peak": "fma_peak", "OpenBLAS": "gemm_openblas", "oneDNN": "unet_onednn"}
        if family in built:
            return (self.build / built[family]).exists()
        if family == "PyTorch":
            return self.succeeds([sys.executable, "-c", "import torch"])
        if family == "OpenVINO":
            return (self.build / "unet-l.onnx").exists() and self.succeeds([sys.executable, "-c", "import openvino"])
        return (self.build / "unet-l.onnx").exists() and self.succeeds(
            ["node", "-e", "require('onnxruntime-node')"])

    def repeats_for(self, work_gflop):
        """Samples of a round: about a second's worth, three of what takes longer."""
        return min(self.most_samples, max(3, round(120 / work_gflop)))

    def succeeds(self, command):
        try:
            return subprocess.run(command, capture_output=True, timeout=120,
                                  env={**os.environ, "NODE_PATH": self.node_path}).returncode == 0
        except OSError:
            return False

    def ours(self, threads, *arguments, name="ours"):
        command = [self.program, "bench", *arguments, "--threads", threads, "--json"]
        return Entry(name, "ours", command, threads)

    def our_product(self, size, threads, repeats, packed):
        """`packed`: B is laid out before the time starts."""
        return self.ours(threads, "matmul", "--sizes", size, "--repeats", repeats,
                         *(["--constant-b"] if packed else []),
                         name="ours packed" if packed else "ours")

    def our_model(self, model, mode, batch, threads, repeats, name="ours", contract="f32"):
        optimizer = ["--optimizer", "sgd", "--momentum", 0.9] if mode == "train" else []
        return self.ours(threads, "--model", model, "--mode", mode, *optimizer, "--batch", batch,
                         "--contract", contract, "--repeats", repeats, name=name)

    def openvino(self, model, batch, threads, repeats, precision):
        return Entry(f"OpenVINO {precision}", "OpenVINO",
                     [sys.executable, "-B", HERE / "programs/unet_openvino.py", self.build / f"{model}.onnx",
                      SIZES[model], batch, threads, repeats, precision], threads)

    def half_models(self, model, mode, batch, threads, repeats):
        """Ours and the baselines in bfloat16, and OpenVINO in float32."""
        ours = self.our_model(model, mode, batch, threads, repeats, "ours bf16", "bf16")
        if mode == "infer":
            return [ours] + [self.openvino(model, batch, threads, repeats, precision) for precision in ("bf16", "f32")]
        return [ours, Entry("PyTorch bf16", "PyTorch",
                            [sys.executable, "-B", HERE / "programs/unet_torch.py", mode, model, batch, threads,
                             repeats, "channels-last", "bf16"], threads)]

    def fma_peak(self, threads):
        return Entry(f"fma peak, {threads} threads", "fma peak",
                     [self.build / "fma_peak", threads, 10], threads)

    def rival_products(self, size, threads, repeats):
        arguments = [size, threads, repeats]
        return [Entry("OpenBLAS", "OpenBLAS", [self.build / "gemm_openblas", *arguments], threads)
                ] + [Entry(f"oneDNN {kind}", "oneDNN",
                           [self.build / "gemm_onednn", *arguments, kind], threads)
                     for kind in ("plain", "packed")]

    def rival_models(self, model, mode, batch, threads, repeats):
        case = [mode, model, batch, threads, repeats]
        chains = [Entry(f"oneDNN {kind}", "oneDNN", [self.build / "unet_onednn", *case, kind],
                        threads) for kind in ("auto", "winograd")]
        if mode == "infer":
            command = ["node", HERE / "programs/unet_onnxruntime.cjs", "infer",
                       self.build / f"{model}.onnx", SIZES[model], batch, threads, repeats]
            return [Entry("ONNX Runtime", "ONNX Runtime", command, threads,
                          {"NODE_PATH": self.node_path})] + chains
        return [Entry(f"PyTorch {layout}", "PyTorch",
                      [sys.executable, "-B", HERE / "programs/unet_torch.py", *case, layout], threads,
                      {"LD_LIBRARY_PATH": self.openmp_blas} if self.openmp_blas else {})
                for layout in ("contiguous", "channels-last")] + chains
