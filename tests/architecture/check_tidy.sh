#!/usr/bin/env bash
# clang-tidy over the product's sources that this build compiles: naming and function size are errors.
#   check_tidy.sh BUILD_FOLDER [--all]
# Looks at the sources that differ from the merge base with the branch that TRIPTYCH_LINT_BASE names
# (origin/main by default; on that branch itself, from the commit before); with --all at all of them, and
# again only at those that changed, or whose headers or settings did: eight of a folder at a time, and one by
# one where that finds something, which may be two names that meet. Verdicts are kept in the build folder.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1
scope=${2:-changed}
cd "$(dirname "$0")/../.."
tidy=$(bash tests/architecture/clang_14.sh clang-tidy) || { echo "$tidy"; exit 77; }
folders="core backends systolic parallel experiments"
cache=$(realpath "$build")/tidy
mkdir -p "$cache"
rm -f "$cache"/batch_*.cpp
headers=$(find $folders -name '*.h' -print0 | sort -z |
  xargs -0 cat .clang-tidy | sha256sum)

# Each source has its own command here, those of a batch its batch's, and so have our own batches of eight;
# clang cannot read the precompiled headers of another compiler.
python3 - "$build/compile_commands.json" "$cache" "^$PWD/(${folders// /|})/.*\.cpp$" <<'PROGRAM'
import itertools, json, os, re, sys
commands, cache, product = sys.argv[1:]
alone = []
for unit in json.load(open(commands)):
    command = re.sub(r"-Winvalid-pch -include \S*cmake_pch.hxx|-fpch-preprocess", "", unit["command"])
    files = [unit["file"]]
    if "/Unity/unity_" in unit["file"]:
        files = re.findall(r'#include "(.*)"', open(unit["file"]).read())
    alone += [{"directory": unit["directory"], "file": file, "command": command.replace(unit["file"], file)}
              for file in files]

def flags(entry):
    words = entry["command"].replace(entry["file"], "").split()
    return os.path.dirname(entry["file"]), [word for word in words if not word.endswith(".o")]

alike = sorted((entry for entry in alone if re.match(product, entry["file"])), key=flags)
batches = []
for _, group in itertools.groupby(alike, flags):
    group = list(group)
    for entries in (group[i:i + 8] for i in range(0, len(group), 8)):
        name = f"{cache}/batch_{len(batches)}.cpp"
        with open(name, "w") as file:
            file.writelines(f'#include "{entry["file"]}"\n' for entry in entries)
        first = entries[0]
        batches.append(dict(first, file=name, command=first["command"].replace(first["file"], name)))
with open(cache + "/compile_commands.json", "w") as file:
    json.dump(alone + batches, file, indent=0)
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

# check FILE: a source, or a batch of them.
check() {
  local file=$1 sources=$1 but="" key
  if [[ $file == "$cache"/* ]]; then
    sources=$(sed 's/#include "\(.*\)"/\1/' "$file")
    but=-bugprone-suspicious-include
  fi
  key=$({ echo "$sources $headers"; cat $sources; } | sha256sum | cut -c1-32)
  [ -e "$cache/$key" ] && return 0
  if "$tidy" -p "$cache" --quiet --extra-arg=-w --checks="$but" --header-filter="^$PWD/(${folders// /|})/" "$file" >"$cache/$key.log" 2>/dev/null; then
    mv "$cache/$key.log" "$cache/$key"
    return 0
  fi
  if [ "$file" = "$sources" ]; then
    cat "$cache/$key.log"
  else
    local failed=0
    for file in $sources; do check "$file" || failed=1; done
    [ $failed = 1 ] || touch "$cache/$key"
  fi
  rm -f "$cache/$key.log"
  [ -e "$cache/$key" ]
}
export -f check
export build cache headers folders tidy
if [ "$scope" = --all ]; then
  units=$(ls "$cache"/batch_*.cpp)
  echo "clang-tidy: $found sources in $(echo "$units" | wc -l) batches"
else
  units=$(comm -12 <(echo "$compiled") <(changed_sources))
  echo "clang-tidy: $(echo "$units" | grep -c . || true) of $found sources"
fi
[ -z "$units" ] || echo "$units" | xargs -P "$(nproc)" -I{} bash -c 'check "$1"' _ {}
