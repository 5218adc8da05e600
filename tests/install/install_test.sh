#!/usr/bin/env bash
# Installs a build into an empty folder, then configures, builds and runs a project that finds it there.
#   install_test.sh BUILD_FOLDER
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$here/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
"$work/build/consumer"
"$work/prefix/bin/triptych" --version
"$work/prefix/bin/triptych" machine list
