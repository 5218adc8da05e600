// A namespace of process numbers: its first process takes all others with it when it ends, and no
// process in it can name one outside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::confine {

/// Makes the next child of the calling process the first process of a new namespace. Without root's
/// rights it also enters a user namespace with the same user, unless the child is to become another
/// user. Returns false where the system does not allow it. Safe between fork and exec.
bool enter_process_namespace(bool has_own_user);
/// Whether that works here, tried in a child.
bool has_process_namespaces();

}  // namespace triptych::confine
