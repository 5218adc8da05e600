// Which seeded fault the twin has. 0: none. Its sources with faults (mutants.cmake) ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::mmu {

extern int seeded_fault;

}  // namespace triptych::mmu
