// The processes below this one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <vector>

namespace triptych::parallel {

/// All that have `ancestor` above them and have not ended.
std::vector<pid_t> descendants(pid_t ancestor);

/// Ends what is below this process, which adopts orphans (PR_SET_CHILD_SUBREAPER): by SIGTERM for a
/// second, then by SIGKILL.
void end_descendants();

}  // namespace triptych::parallel
