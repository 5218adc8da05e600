#!/usr/bin/env bash
# Prints the name of a tool of clang 14, which formats and checks the sources. Other releases disagree with it.
#   clang_14.sh clang-format|clang-tidy
# Exit status 77, with the reason: it is not installed.
# SPDX-License-Identifier: Apache-2.0
for name in "$1-14" "$1"; do
  if [[ $("$name" --version 2>/dev/null) == *"version 14."* ]]; then
    echo "$name"
    exit
  fi
done
echo "skipped: there is no $1 of clang 14 (on Debian 12: apt-get install $1)"
exit 77
