"""Makes the folder from which gpu_session.sh runs on a GPU machine that has only a driver:

  gpu_session.sh, bench/   the session          bin/        stripped programs, kernels for sm_90a
  lib/                     their libraries      pack.json   commit, architectures, each file's size

cuBLASLt, cuDNN and NCCL are not in it: the programs look for them when they run.
"""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = (HERE / "../../..").resolve()  # of the sources; a packed folder has none, and may lie at /
SCHEMA = 1  # of pack.json
ARCHITECTURES = "90a-real"
PROGRAMS = {"triptych": "experiments/triptych", "backend_test": "tests/conformance/backend_test"}
SCRIPTS = ("gpu_items.py", "gpu_pack.py", "gpu_report.py", "gpu_session.py", "torch_rivals.py")
# glibc comes with the machine, libraries with these prefixes with its driver.
GLIBC = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|mvec|dl|pthread|rt|util|resolv|anl))\.so.*")
DRIVER = ("libcuda.so", "libnvidia")
FOUND_AT_RUN_TIME = ("libcublas", "libcudnn", "libnccl")


class Problem(Exception):
    """The folder cannot be created or read, with the reason."""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def require(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Problem(f"{tool} is missing, which makes the folder; install it")


def build_programs(build):
    require("cmake", "ninja")
    run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        "-DTRIPTYCH_ENABLE_CUDA=ON", f"-DTRIPTYCH_CUDA_ARCHITECTURES={ARCHITECTURES}",
        "-DTRIPTYCH_ENABLE_MPI=OFF", "-DTRIPTYCH_ENABLE_RTL=OFF")
    run("cmake", "--build", build, "--target", *PROGRAMS)


def linked_libraries(program):
    """The files that the program loads at its start, by soname, without the machine's own."""
    found = {}
    for line in run("ldd", program).splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if not match or GLIBC.fullmatch(match[1]) or match[1].startswith(DRIVER):
            continue
        if match[2] == "not":
            raise Problem(f"{program.name} needs {match[1]}, which is not here")
        if match[1].startswith(FOUND_AT_RUN_TIME):
            raise Problem(f"{program.name} is linked with {match[1]}, which it should look for "
                          "when it runs")
        found[match[1]] = pathlib.Path(match[2])
    return found


def needed_glibc(files):
    """"2.36": the newest version of glibc whose symbols one of the files asks for."""
    newest = (2, 0)
    for file in files:
        for version in re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", file)):
            newest = max(newest, tuple(int(n) for n in version))
    return ".".join(str(n) for n in newest)


def commit():
    try:
        return run("git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=40")
    except (Problem, OSError) as problem:
        return f"unknown: {problem}"


def architectures(build):
    """["sm_90a"] of what the build folder was configured with."""
    cache = (build / "CMakeCache.txt").read_text()
    found = re.search(r"^TRIPTYCH_CUDA_ARCHITECTURES:\w+=(.+)$", cache, re.MULTILINE)
    return ["sm_" + name.replace("-real", "") for name in found[1].split(";")] if found else []


def listed(folder):
    return [{"path": str(path.relative_to(folder)), "bytes": path.stat().st_size,
             "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for path in sorted(folder.rglob("*")) if path.is_file()]


def clear(folder):
    """Removes what an earlier call made, and nothing else: other files are a Problem."""
    made = {"pack.json"}
    if (folder / "pack.json").exists():
        made |= {file["path"] for file in json.loads((folder / "pack.json").read_text())["files"]}
    if any(file["path"] not in made for file in listed(folder)):
        raise Problem(f"{folder} holds other files; name another folder for --pack")
    if folder.exists():
        shutil.rmtree(folder)
    for name in ("bin", "bench", "lib"):
        (folder / name).mkdir(parents=True)


def copy_all(folder, build):
    programs = []
    for name, place in PROGRAMS.items():
        if not (build / place).exists():
            raise Problem(f"{build / place} is not there; leave out --as-built")
        target = folder / "bin" / name
        run("strip", "-o", target, build / place)
        programs.append(target)
        for soname, file in linked_libraries(build / place).items():
            shutil.copyfile(file, folder / "lib" / soname)
    for script in SCRIPTS:
        shutil.copyfile(HERE / script, folder / "bench" / script)
    shutil.copy(HERE / "gpu_session.sh", folder / "gpu_session.sh")
    return programs


def archive_of(folder):
    """FOLDER.tar.xz, a quarter of the folder's size."""
    archive = folder.with_name(folder.name + ".tar.xz")
    with tarfile.open(archive, "w:xz", preset=2) as tar:
        tar.add(folder, folder.name)
    print(f"{archive.stat().st_size:10}  {archive}")
    return archive


def make(folder, build, as_built=False):
    """Builds, packs and lists; the archive FOLDER.tar.xz holds the same. `as_built`: takes a build as it is, no archive."""
    require("strip", "ldd", "objdump", "git")
    if not as_built:
        build_programs(build)
    clear(folder)
    programs = copy_all(folder, build)
    files = listed(folder)
    pack = {"schema": SCHEMA, "commit": commit().strip(), "architectures": architectures(build),
            "glibc": needed_glibc([*programs, *(folder / "lib").iterdir()]), "files": files}
    (folder / "pack.json").write_text(json.dumps(pack, indent=1) + "\n")
    total = sum(file["bytes"] for file in files)
    for file in files:
        print(f"{file['bytes']:10}  {file['path']}")
    print(f"{total:10}  in all, {total / (1 << 20):.1f} MiB; needs glibc {pack['glibc']}; "
          f"kernels for {', '.join(pack['architectures'])}")
    copied = folder if as_built else archive_of(folder)
    print(f"copy {copied} to the GPU machine and run its gpu_session.sh")


def read(folder):
    """Files that make() wrote, after each file's presence and size."""
    try:
        pack = json.loads((folder / "pack.json").read_text())
    except (OSError, ValueError) as problem:
        raise Problem(f"{folder} is no folder of gpu_session.sh --pack: {problem}") from None
    if pack.get("schema") != SCHEMA:
        raise Problem(f"{folder} has schema {pack.get('schema')}, this version reads {SCHEMA}; pack again")
    for file in pack["files"]:
        path = folder / file["path"]
        if not path.exists() or path.stat().st_size != file["bytes"]:
            raise Problem(f"{path} is missing or was cut short; copy the folder again")
        if file["path"].startswith("bin/"):
            if not os.access(path, os.X_OK):  # some ways of copying lose it
                os.chmod(path, 0o755)
    return pack
