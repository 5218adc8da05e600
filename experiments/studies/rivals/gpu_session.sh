#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proofs for which a GPU is needed, in parts that each take at most nine minutes and can run alone.
#
#   gpu_session.sh --pack FOLDER [--build FOLDER]
#       makes the folder that a GPU machine needs, and FOLDER.tar.xz of it; needs no GPU
#   gpu_session.sh [--prebuilt FOLDER] [--part A|B|C|D] [--out FOLDER]
#       runs from it; without --prebuilt it is made first. The copy of this script in such a folder
#       runs from its own. Needs bash, python3 and the driver.
#
# A: devices, each path in a process of its own, conformance, large products beside references
# B: matrix products, copies, attention    C: U-Nets and their layers    D: counters, sanitizer
# Rivals are PyTorch's, where it is installed. Without --part all four run. --out (default
# experiments/recorded, in a folder that was packed results/): one JSON file, whole after each item.
# Exit code: 0 all of it ran and every bar is met, 1 not, 2 wrong usage or no build, 3 there is no
# GPU for it, 4 this machine cannot run what was packed.
set -uo pipefail

here=${BASH_SOURCE[0]%/*}
[ "$here" = "${BASH_SOURCE[0]}" ] && here=.
[ -d "$here/bench" ] && here=$here/bench
if ! command -v python3 > /dev/null; then
  echo "gpu_session: python3 is missing; install it" >&2
  exit 2
fi
exec python3 -B "$here/gpu_session.py" "$@"
