#!/usr/bin/env bash
# clang-tidy over the product's sources that this build compiles: naming and function size are
# errors. A file is checked again only when it, a header or the settings changed; verdicts are kept
# in the build folder.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1
cd "$(dirname "$0")/../.."
if ! command -v clang-tidy >/dev/null; then
  echo "skipped: clang-tidy is not installed (apt-get install clang-tidy)"
  exit 77
fi
folders=$(ls -d core backends systolic parallel experiments 2>/dev/null || true)
cache=$build/tidy
mkdir -p "$cache"
headers=$(find $folders -name '*.h' -print0 | sort -z |
  xargs -0 cat .clang-tidy | sha256sum)

check() {
  local file=$1 key
  key=$(echo "$file $headers" | cat - "$file" | sha256sum | cut -c1-32)
  [ -e "$cache/$key" ] && return 0
  if clang-tidy -p "$build" --quiet --extra-arg=-w "$file" >"$cache/$key.log" 2>/dev/null; then
    mv "$cache/$key.log" "$cache/$key"
  else
    cat "$cache/$key.log"
    rm -f "$cache/$key.log"
    return 1
  fi
}
export -f check
export build cache headers
find $folders -name '*.cpp' |
  while read -r file; do  # what needs a library that is not there is not compiled
    if grep -qF "\"file\": \"$PWD/$file\"" "$build/compile_commands.json"; then echo "$file"; fi
  done |
  xargs -P "$(nproc)" -I{} bash -c 'check "$1"' _ {}
