#!/usr/bin/env bash
# clang-tidy over the product's sources that this build compiles: naming and function size are
# errors. The sources that a build compiles together (CMAKE_UNITY_BUILD) are looked at together, which
# takes a fraction of the time; they are looked at again only when one of them, a header or the
# settings changed. Verdicts are kept in the build folder.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1
cd "$(dirname "$0")/../.."
if ! command -v clang-tidy >/dev/null; then
  echo "skipped: clang-tidy is not installed (apt-get install clang-tidy)"
  exit 77
fi
folders="core backends systolic parallel experiments"
cache=$build/tidy
mkdir -p "$cache"
headers=$(find $folders -name '*.h' -print0 | sort -z |
  xargs -0 cat .clang-tidy | sha256sum)

# sources_of FILE: itself if it is one of the product, or those that it puts together.
sources_of() {
  local product="$PWD/(${folders// /|})/.*\.cpp"
  if [[ $1 == */Unity/unity_*_cxx.cxx ]]; then
    grep -oE "\"$product\"" "$1" | tr -d '"' || true
  elif [[ $1 =~ ^$product$ ]]; then
    echo "$1"
  fi
}

check() {
  local file=$1 sources key
  sources=$(sources_of "$file")
  [ -z "$sources" ] && return 0
  key=$(echo "$sources $headers" | cat - $sources | sha256sum | cut -c1-32)
  [ -e "$cache/$key" ] && return 0
  if clang-tidy -p "$build" --quiet --extra-arg=-w --header-filter="^$PWD/(${folders// /|})/" "$file" >"$cache/$key.log" 2>/dev/null; then
    mv "$cache/$key.log" "$cache/$key"
  else
    cat "$cache/$key.log"
    rm -f "$cache/$key.log"
    return 1
  fi
}
export -f check sources_of
export build cache headers folders
units=$(sed -n 's/^ *"file": "\(.*\)".*$/\1/p' "$build/compile_commands.json" |
  while read -r file; do
    if [ -n "$(sources_of "$file")" ]; then echo "$file"; fi
  done)
found=$(for file in $units; do sources_of "$file"; done | sort -u | wc -l)
all=$(find $folders -name '*.cpp' | wc -l)
if [ "$found" -lt $((all / 2)) ]; then  # some want a library that is not there
  echo "only $found of $all sources are in $build/compile_commands.json"
  exit 1
fi
echo "$units" | xargs -P "$(nproc)" -I{} bash -c 'check "$1"' _ {}
