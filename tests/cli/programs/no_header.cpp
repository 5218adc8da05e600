// Calls getpid without its header, as older programs do.
// SPDX-License-Identifier: Apache-2.0
int identity() { return static_cast<int>(getpid()); }
