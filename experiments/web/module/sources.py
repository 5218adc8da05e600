"""Sources of the module array.wasm.gz with their digests, which show that a module is out of date.

    sources.py BUILD        prints the list for the finished build in BUILD
    sources.py              compares array.sources with the sources; exit code 1 if they differ

A digest ignores comments and spaces. The list covers sources, headers, RTL, machine files and the toolchain file.
Of other CMake files only a new build shows whether they change the module (build.sh --check).
"""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
LIST = FOLDER / "array.sources"
TOOLCHAIN = ROOT / "cmake/wasm32.cmake"
REMEDY = """array.wasm.gz is older than these sources. To build it again (experiments/web/README.md):
  bash experiments/setup.sh --web
  experiments/web/module/build.sh
  cmake --build --preset release --target triptych
  triptych page array --out docs/pages/array.html --overwrite"""
C_COMMENT = re.compile(r"""(?xs) R"(?P<mark>\w*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
                           | (?P<comment> //[^\n]* | /\*.*?\*/ )""")
CMAKE_COMMENT = re.compile(r"(?m)^\s*#.*$")


def digest(path):
    text = path.read_text()
    if path.suffix in (".h", ".cpp", ".in", ".sv", ".svh"):
        text = C_COMMENT.sub(lambda found: " " if found["comment"] else found[0], text)
    elif path.suffix == ".cmake" or path.name == "CMakeLists.txt":
        text = CMAKE_COMMENT.sub("", text)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def tool(build, *arguments):
    return subprocess.run(["ninja", "-C", build, "-t", *arguments], check=True, capture_output=True, text=True).stdout


def sources_of(build):
    """Files of this project that the module in the folder `build` was made from."""
    names = re.findall(r"^ {4}(\S.*)$", tool(build, "deps"), re.M)
    names += tool(build, "inputs", "array_module").splitlines()
    names += re.findall(r"^ {4}(?:\|{1,2} )?(\S.*)$", tool(build, "query", "build.ninja"), re.M)
    build = pathlib.Path(build).resolve()
    paths = {(build / name).resolve() for name in names} | {TOOLCHAIN}
    return sorted(path for path in paths
                  if path.is_file() and path.is_relative_to(ROOT) and not path.is_relative_to(build)
                  and "build" not in path.relative_to(ROOT).parts
                  and (path == TOOLCHAIN or path.suffix != ".cmake" and path.name != "CMakeLists.txt"))


def stale(listing=None):
    """Listed files that are missing or have changed since the module was built."""
    lines = (listing or LIST).read_text().splitlines()
    listed = [line.split("  ", 1) for line in lines if not line.startswith("#")]
    return [name for known, name in listed if not (ROOT / name).is_file() or digest(ROOT / name) != known]


def main():
    if len(sys.argv) > 1:
        for path in sources_of(sys.argv[1]):
            print(f"{digest(path)}  {path.relative_to(ROOT).as_posix()}")
        return 0
    changed = stale()
    if changed:
        print("\n".join(changed), REMEDY, sep="\n", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
