#!/usr/bin/env bash
# A GPU session on a machine that has nothing but glibc, bash, coreutils and python3, rehearsed in a
# folder that becomes its root: packs what BUILD holds, runs part A there up to "no GPU", and looks at
# the exit code and the document. SYSTEM is such a folder, which debootstrap made with python3; without
# it one is made of this machine's files.
#
#   bare_gpu_machine.sh BUILD [SYSTEM]
#
# Exit code: 0 as expected, 1 not, 77 this machine allows no chroot or has no packed programs.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=${1:?usage: bare_gpu_machine.sh BUILD [SYSTEM]}
source=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

skip() {
  echo "skipped: $1"
  exit 77
}
python=/usr/bin/python3
[ -x $python ] || skip "there is no $python"
[ -x "$build/tests/conformance/backend_test" ] || skip "$build has no backend_test"
[ "$(id -u)" = 0 ] && chroot / true 2> /dev/null || skip "only root may chroot"

# A file with what it links to and needs.
bring() {
  local file
  for file in "$@" $(ldd "$@" 2> /dev/null | grep -o '/[^ :]*' | sort -u); do
    [ -e "$root$file" ] && continue
    mkdir -p "$root${file%/*}"
    cp -L "$file" "$root$file"
  done
}
make_system() {
  local library module
  bring /bin/bash $python /usr/bin/{env,cat,ls,mktemp,rm,uname}
  library=$($python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
  mkdir -p "$root$library" "$root/tmp" "$root/dev" "$root/proc"
  tar -C "$library" --exclude=__pycache__ --exclude=test --exclude='config-*' -cf - . |
    tar -C "$root$library" -xf -
  for module in "$library"/lib-dynload/*.so; do bring "$module"; done
  : > "$root/dev/null"
}
if [ $# -gt 1 ]; then cp -a "$2/." "$root"; else make_system; fi

"$source/experiments/studies/rivals/gpu_session.sh" --pack "$root/pack" --build "$build" --as-built
code=0
env -i PATH=/usr/bin:/bin HOME=/tmp "$(command -v chroot)" "$root" /pack/gpu_session.sh --part A --out /out || code=$?
[ $code = 3 ] || { echo "exit code $code instead of 3"; exit 1; }

$python - "$root"/out/gpu-*.json <<'PYTHON'
import json, sys
(path,) = sys.argv[1:]
document = json.load(open(path))
items = {item["name"]: item for item in document["items"]}
assert document["state"] == "not run" and document["running"] is None, document["state"]
assert "GPU" in document["why"] or "driver" in document["why"], document["why"]
assert items["devices"]["exit_code"] == 0, items["devices"]
assert items["conformance"]["not_run"] == document["why"], items["conformance"]
assert len(items) > 30, len(items)
for library in document["machine"]["libraries"]:
    assert not library["available"] and "no lib" in library["reason"], library
    print(library["name"], library["reason"])
print(f"as expected: {document['why']}")
PYTHON
