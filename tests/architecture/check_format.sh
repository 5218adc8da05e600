#!/usr/bin/env bash
# Every C++ file is formatted by clang-format with the repository's settings.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v clang-format >/dev/null; then
  echo "skipped: clang-format is not installed (apt-get install clang-format)"
  exit 77
fi
find $(ls -d core backends systolic parallel experiments tests 2>/dev/null) -regex '.*\.\(h\|cpp\|cu\|cuh\)' -print0 |
  xargs -0 clang-format --dry-run --Werror
