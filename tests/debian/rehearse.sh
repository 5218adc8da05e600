#!/usr/bin/env bash
# Follows the README on a bare Debian: installs the packages, runs the quickstart, then the short form of the
# tests, in a system that debootstrap makes. It tests the last commit, not edited files.
#   rehearse.sh [--folder FOLDER] [--mirror URL] [--only COMMAND] RELEASE...
# FOLDER (build/debian) keeps a system of about 6 GB per release, with its own compiler cache, for later runs.
# The mirror is the host's own Debian mirror, as apt knows it. --only replaces the quickstart and the tests by
# a command in the clone, such as 'cmake --preset test && cmake --build build/test -- -k 0'.
# Exit status 4: a tool or a right is missing.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
sources=$(cd "$(dirname "$0")/../.." && pwd)

missing() {
  echo "tests/debian/rehearse.sh: $1" >&2
  exit 4
}

usage() {
  echo "tests/debian/rehearse.sh: $1; rehearse.sh [--folder FOLDER] [--mirror URL] [--only COMMAND] RELEASE..." >&2
  exit 2
}

# The mirror in apt's configuration; Debian's own where the host is another distribution.
find_mirror() {
  local uri
  uri=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null |
    awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
  echo "${uri:-http://deb.debian.org/debian}"
}

# make_system RELEASE ROOT MIRROR: a minimal system that uses the host's proxy
make_system() {
  [ ! -e "$2/.complete" ] || return 0
  local proxy
  proxy=$(apt-config shell proxy Acquire::http::Proxy | sed -n "s/^proxy='\(.*\)'$/\1/p")
  rm -rf "$2"
  mkdir -p "$2"
  echo "$1: making a system from $3"
  ${proxy:+env http_proxy="$proxy"} debootstrap --variant=minbase --include=ca-certificates,git "$1" "$2" "$3" \
    >"$2.log" || { tail -n 20 "$2.log" >&2; return 1; }
  [ -z "$proxy" ] || echo "Acquire::http::Proxy \"$proxy\";" >"$2/etc/apt/apt.conf.d/proxy"
  echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe-io"  # after a crash it is made again
  touch "$2/.complete"
}

# enter ROOT COMMAND: with a file system, processes and temporary files of its own. The root is the namespace's
# root (not a chroot), because sandboxed commands make user namespaces.
enter() {
  unshare --mount --pid --ipc --fork --kill-child bash -euc '
    mount --bind "$1" "$1"
    cd "$1"
    mkdir -p .host
    mount --rbind /dev dev
    mount --rbind /sys sys
    mount -t proc proc proc
    mount -t tmpfs -o mode=1777 shm dev/shm
    cp --remove-destination /etc/resolv.conf /etc/hosts etc/
    pivot_root . .host
    cd /
    umount -l /.host
    exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 bash -euc "cd /root/triptych; $2"
  ' enter "$1" "$2"
}

# rehearse RELEASE FOLDER MIRROR COMMAND
rehearse() {
  local root=$2/$1 started=$SECONDS
  make_system "$1" "$root" "$3"
  if [ ! -e "$root/root/triptych/.git" ]; then
    git clone --quiet --no-hardlinks "$sources" "$root/root/triptych"
  fi
  git -C "$root/root/triptych" fetch --quiet "$sources" HEAD
  git -C "$root/root/triptych" checkout --quiet --force --detach FETCH_HEAD
  enter "$root" "$4"
  echo "$1: passed in $((SECONDS - started)) s"
}

main() {
  local folder=$sources/build/debian mirror='' release releases=()
  local command='bash experiments/quickstart.sh && bash tests/run.sh'
  while [ $# -gt 0 ]; do
    [[ "$1" != --* || $# -ge 2 ]] || usage "$1 needs a value"
    case $1 in
      --folder) folder=$2; shift 2 ;;
      --mirror) mirror=$2; shift 2 ;;
      --only) command=$2; shift 2 ;;
      --*) usage "no option $1" ;;
      *) releases+=("$1"); shift ;;
    esac
  done
  [ ${#releases[@]} -gt 0 ] || usage "no release"
  [ "$(id -u)" -eq 0 ] || missing "needs root, which debootstrap and unshare ask for"
  local tool
  for tool in debootstrap unshare pivot_root git; do
    command -v "$tool" >/dev/null || missing "needs $tool: apt-get install debootstrap util-linux git"
  done
  unshare --mount --pid --fork true 2>/dev/null || missing "may not make namespaces here (unshare fails)"
  mkdir -p "$folder"
  for release in "${releases[@]}"; do
    rehearse "$release" "$(cd "$folder" && pwd)" "${mirror:-$(find_mirror)}" "$command"
  done
}
main "$@"
