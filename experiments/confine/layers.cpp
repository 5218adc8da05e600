// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/layers.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/base/error.h"
#include "experiments/confine/account.h"
#include "experiments/confine/file_rules.h"
#include "experiments/confine/namespaces.h"
#include "experiments/confine/per_user.h"
#include "experiments/confine/system_calls.h"

namespace triptych::confine {
namespace {

constexpr int kSignalsVersion = 6;  // of Landlock

Layer files() {
  const int version = landlock_version();
  return {.name = "files",
          .mechanism = version > 0 ? fmt::format("Landlock {}", version) : "",
          .missing =
              "the kernel has no Landlock, or a container forbids it; use Linux 5.13 or "
              "later with lsm=landlock, and a container runtime that allows its calls"};
}

Layer system_calls() {
  return {.name = "system calls",
          .mechanism = filters_system_calls() ? "seccomp" : "",
          .missing =
              "the kernel has no seccomp filters, or the processor is none of x86-64 and "
              "AArch64; use another computer"};
}

Layer signals() {
  const char* mechanism = landlock_version() >= kSignalsVersion ? "Landlock"
                          : can_become_a_user()                 ? "a user of its own"
                          : has_process_namespaces()            ? "a process namespace"
                                                                : "";
  return {.name = "signals",
          .mechanism = mechanism,
          .missing =
              "code may stop this program and others of its user; use Linux 6.12 or later, "
              "allow user namespaces, or run as root"};
}

Layer user() {
  return {.name = "user",
          .mechanism = can_become_a_user() ? "a user without a name" : "",
          .missing =
              "root may not become another user here; keep the capabilities CHOWN, SETUID "
              "and SETGID, or run as an ordinary user"};
}

/// Without a namespace a process that survives this one ends the rest.
Layer processes() {
  const bool possible = has_process_namespaces();
  return {.name = "processes",
          .mechanism = possible ? "a process namespace" : "a keeper process",
          .missing = "",
          .required = false};
}

}  // namespace

const std::vector<Layer>& layers() {
  static PerUser<std::vector<Layer>> list;
  return list.get([] {
    std::vector<Layer> found = {files(), system_calls(), signals()};
    if (geteuid() == 0) found.push_back(user());
    found.push_back(processes());
    return found;
  });
}

std::string active_layers() {
  std::string text;
  for (const auto& layer : layers())
    if (layer.active())
      text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", layer.name, layer.mechanism);
  return text;
}

std::string missing_layers() {
  std::string text;
  for (const auto& layer : layers())
    if (!layer.active())
      text += fmt::format("{}{}: {}", text.empty() ? "" : ". ", layer.name, layer.missing);
  return text;
}

void require_layers() {
  for (const auto& layer : layers())
    if (layer.required && !layer.active())
      throw DeviceError(fmt::format(
          "the confinement lacks what was required. {}. To run with the other layers, leave out "
          "the word required",
          missing_layers()));
}

}  // namespace triptych::confine
