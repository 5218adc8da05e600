// Which seeded fault the RTL has; 0: none.
// SPDX-License-Identifier: Apache-2.0
package mutant_pkg;
  int selected /* verilator public_flat_rw */;
endpackage
