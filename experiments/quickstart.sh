#!/usr/bin/env bash
# The main job, from a fresh machine: installs what is missing, builds, trains the same small U-Net on
# every machine that there is, prints a table and says where it wrote the page that compares them.
# Options are handed to `triptych compare` (for example --epochs 10, --backends cpu or --data DIR).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
bash experiments/setup.sh
build=build/quickstart
if [ ! -e $build/build.ninja ]; then
  echo "configuring in $build"
  cmake --preset quickstart >/dev/null
fi
echo "building (several minutes the first time)"
cmake --build $build --target triptych >$build/build.log || { grep -A 20 -m 1 '^FAILED' $build/build.log >&2; exit 1; }
tail -n 1 $build/build.log
first=runs/quickstart-$(date +%Y%m%d-%H%M%S)
out=$first
copy=1
mkdir -p runs
until mkdir "$out" 2>/dev/null; do  # another one may have begun in the same second
  [ -d "$out" ] || { echo "cannot make the folder $out" >&2; exit 1; }
  copy=$((copy + 1))
  out=$first-$copy
done
$build/experiments/triptych devices
exec $build/experiments/triptych compare --model unet-s --data synthetic --epochs 4 --seed 1 \
  --lr 0.005 --backends cpu,cuda,cuda-emulated,systolic --contract bf16-exact \
  --runs "$out" --out "$out/report.html" "$@"
