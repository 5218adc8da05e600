// The terminal of the standard streams.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

namespace triptych {

/// Open MPI connects each rank to a pseudo terminal, whatever its own output is. So a launcher
/// passes its terminal_streams() on to its ranks in this variable.
inline constexpr const char* kTerminalsVariable = "TRIPTYCH_TERMINALS";

/// Columns of standard output: those of the variable COLUMNS, or of the terminal. None for a file
/// or a pipe without that variable.
std::optional<std::size_t> output_columns();

/// The numbers of the standard output streams that are terminals: "", "1", "2" or "12".
std::string terminal_streams();

/// True for a terminal that understands escape sequences: not one with TERM=dumb.
bool takes_escapes(std::FILE* stream);

}  // namespace triptych
