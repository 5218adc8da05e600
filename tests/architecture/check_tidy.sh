#!/usr/bin/env bash
# clang-tidy over the product's sources that this build compiles: naming and function size are errors.
#   check_tidy.sh BUILD_FOLDER [--all]
# Looks at the sources that differ from the merge base with the branch that TRIPTYCH_LINT_BASE names
# (origin/main by default; on that branch itself, from the commit before); with --all at all of them, and
# again only at those that changed, or whose headers or settings did. Verdicts are kept in the build folder.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1
scope=${2:-changed}
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

# Each source has its own command here, those of a batch its batch's; clang cannot read the precompiled
# headers of another compiler.
python3 - "$build/compile_commands.json" >"$cache/compile_commands.json" <<'PROGRAM'
import json, re, sys
alone = []
for unit in json.load(open(sys.argv[1])):
    command = re.sub(r"-Winvalid-pch -include \S*cmake_pch.hxx|-fpch-preprocess", "", unit["command"])
    files = [unit["file"]]
    if "/Unity/unity_" in unit["file"]:
        files = re.findall(r'#include "(.*)"', open(unit["file"]).read())
    alone += [{"directory": unit["directory"], "file": file, "command": command.replace(unit["file"], file)}
              for file in files]
json.dump(alone, sys.stdout, indent=0)
PROGRAM

compiled=$(sed -n 's/^"file": "\(.*\)".*$/\1/p' "$cache/compile_commands.json" |
  grep -E "^$PWD/(${folders// /|})/.*\.cpp$" | sort -u)
found=$(echo "$compiled" | wc -l)
all=$(find $folders -name '*.cpp' | wc -l)
if [ "$found" -lt $((all / 2)) ]; then  # some want a library that is not there
  echo "only $found of $all sources are in $build/compile_commands.json"
  exit 1
fi

# changed_sources: absolute paths, of commits and of what is not committed.
changed_sources() {
  local base
  base=$(git merge-base HEAD "${TRIPTYCH_LINT_BASE:-origin/main}" 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=HEAD~1; fi
  { git diff --name-only "$base" 2>/dev/null || true; git ls-files --others --exclude-standard; } |
    sed "s|^|$PWD/|" | sort -u
}

check() {
  local file=$1 key
  key=$(echo "$file $headers" | cat - "$file" | sha256sum | cut -c1-32)
  [ -e "$cache/$key" ] && return 0
  if clang-tidy -p "$cache" --quiet --extra-arg=-w --header-filter="^$PWD/(${folders// /|})/" "$file" >"$cache/$key.log" 2>/dev/null; then
    mv "$cache/$key.log" "$cache/$key"
  else
    cat "$cache/$key.log"
    rm -f "$cache/$key.log"
    return 1
  fi
}
export -f check
export build cache headers folders
units=$compiled
[ "$scope" = --all ] || units=$(comm -12 <(echo "$compiled") <(changed_sources))
echo "clang-tidy: $(echo "$units" | grep -c . || true) of $found sources"
[ -z "$units" ] || echo "$units" | xargs -P "$(nproc)" -I{} bash -c 'check "$1"' _ {}
