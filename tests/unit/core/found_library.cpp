// Library that shared_library_test.cpp looks for.
// SPDX-License-Identifier: Apache-2.0

extern "C" int found_answer() { return 42; }
