// SPDX-License-Identifier: Apache-2.0
#include "core/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace triptych {
namespace {

bool is_terminal(int stream) {
  if (isatty(stream) == 0) return false;
  const auto* launched = std::getenv("OMPI_COMM_WORLD_RANK");
  if (launched == nullptr) return true;
  const auto* terminals = std::getenv(kTerminalsVariable);
  return terminals != nullptr &&
         std::string_view(terminals).find(std::to_string(stream)) != std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> output_columns() {
  if (const auto* variable = std::getenv("COLUMNS")) {
    const std::string_view text = variable;
    std::size_t columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc{} && end == text.data() + text.size() && columns > 0) return columns;
  }
  winsize size = {};
  if (!is_terminal(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

std::string terminal_streams() {
  std::string streams;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    if (is_terminal(stream)) streams += std::to_string(stream);
  return streams;
}

bool takes_escapes(std::FILE* stream) {
  const auto* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return !dumb && is_terminal(fileno(stream));
}

}  // namespace triptych
