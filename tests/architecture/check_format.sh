#!/usr/bin/env bash
# Every C++ file is formatted by clang-format with the repository's settings.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
format=$(bash tests/architecture/clang_14.sh clang-format) || { echo "$format"; exit 77; }
find $(ls -d core backends systolic parallel experiments tests 2>/dev/null) -regex '.*\.\(h\|cpp\|cu\|cuh\)' -print0 |
  xargs -0 "$format" --dry-run --Werror
