// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/interrupt.h"

namespace triptych::cli {
namespace {

std::atomic<bool> was_interrupted = false;  // set by the signal handler

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction action = {};
  action.sa_handler = [](int) { was_interrupted = true; };
  action.sa_flags = SA_RESETHAND;  // a second Ctrl-C ends the program at once
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

const std::atomic<bool>& InterruptGuard::interrupted() const { return was_interrupted; }

}  // namespace triptych::cli
