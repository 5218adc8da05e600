#!/usr/bin/env bash
# Every C++ file is formatted by clang-format with the repository's settings.
#   check_format.sh BUILD_FOLDER
# Verdicts are kept in the build folder: a file is read again when it or the settings have changed.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
format=$(bash tests/architecture/clang_14.sh clang-format) || { echo "$format"; exit 77; }
settings=$({ "$format" --version; cat .clang-format; } | sha256sum | cut -c1-16)
good=$build/formatted_$settings
touch "$good"
files=$(find $(ls -d core backends systolic parallel experiments tests 2>/dev/null) \
  -regex '.*\.\(h\|cpp\|cu\|cuh\)' -print0 | xargs -0 sha256sum | LC_ALL=C sort)
new=$(LC_ALL=C comm -23 <(echo "$files") "$good" | cut -d' ' -f3-)
[ -z "$new" ] || echo "$new" | tr '\n' '\0' | xargs -0 "$format" --dry-run --Werror
echo "$files" >"$good"
