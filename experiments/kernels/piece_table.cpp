// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/piece_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "backends/cuda/emulation/kernel_costs.h"
#include "backends/cuda/plain/kernel_library.h"
#include "core/base/list_text.h"

namespace triptych::kernels {
namespace {

using cuda::emulation::Arithmetic;

constexpr std::string_view kPieceCall = "__sanitizer_cov_trace_pc", kCheckCall = "__ubsan_handle";

/// Functions of <cmath> that a GPU computes with its function units, without the suffix of floats.
constexpr std::string_view kFunctions[] = {
    "exp",  "exp2", "exp10", "expm1", "log",  "log2",   "log10",  "log1p",  "sin",    "cos",
    "tan",  "sinh", "cosh",  "tanh",  "asin", "acos",   "atan",   "atan2",  "sincos", "pow",
    "cbrt", "erf",  "erfc",  "hypot", "fmod", "tgamma", "lgamma", "erfinv", "normcdf"};

/// An instruction or directive, without comments: "call" and "expf@PLT".
struct Line {
  std::string_view word, rest;
  bool is_label = false;
};

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

Line read_line(std::string_view text) {
  text = without_blanks(text.substr(0, text.find('#')));
  if (text.ends_with(':')) return {text.substr(0, text.size() - 1), {}, true};
  const auto end = std::min(text.find_first_of(" \t"), text.size());
  const Line line = {text.substr(0, end), without_blanks(text.substr(end)), false};
  const bool is_prefix = line.word == "notrack" || line.word == "bnd" || line.word == "rep";
  return is_prefix ? read_line(line.rest) : line;
}

bool is_call(const Line& line) { return line.word == "call" || line.word == "callq"; }

/// A jump that depends on data.
bool is_branch(const Line& line) {
  if (line.is_label || !line.word.starts_with('j')) return false;
  return line.word.starts_with("jmp") ? line.rest.starts_with('*') : true;
}

bool ends_function(const Line& line) {
  return !line.is_label && (line.word.starts_with("ret") || line.word == ".cfi_endproc");
}

bool ends_path(const Line& line) {
  return ends_function(line) || (!line.is_label && line.word.starts_with('j'));
}

/// "vfmadd213ss" is one of floats.
std::optional<Arithmetic> scalar_operation(std::string_view word) {
  if (word.starts_with('v')) word.remove_prefix(1);
  const bool is_float = word.ends_with("ss");
  if (!is_float && !word.ends_with("sd")) return std::nullopt;
  word.remove_suffix(2);
  constexpr std::pair<std::string_view, Arithmetic> words[] = {
      {"add", Arithmetic::Add32},    {"sub", Arithmetic::Add32},      {"min", Arithmetic::Add32},
      {"max", Arithmetic::Add32},    {"mul", Arithmetic::Multiply32}, {"div", Arithmetic::Divide32},
      {"sqrt", Arithmetic::Divide32}};
  constexpr auto doubles =
      static_cast<int>(Arithmetic::Add64) - static_cast<int>(Arithmetic::Add32);
  const auto of_type = [&](Arithmetic kind) {
    return static_cast<Arithmetic>(static_cast<int>(kind) + (is_float ? 0 : doubles));
  };
  if (word.starts_with("fm") || word.starts_with("fnm")) {
    return of_type(Arithmetic::MultiplyAdd32);
  }
  const auto* found =
      std::ranges::find(words, word, &std::pair<std::string_view, Arithmetic>::first);
  if (found == std::end(words)) return std::nullopt;
  return of_type(found->second);
}

std::optional<Arithmetic> called_operation(std::string_view function) {
  function = function.substr(0, function.find('@'));
  const bool is_float = function.ends_with('f') && function != "erf";
  const auto name = is_float ? function.substr(0, function.size() - 1) : function;
  if (name == "fma") return is_float ? Arithmetic::MultiplyAdd32 : Arithmetic::MultiplyAdd64;
  if (std::ranges::find(kFunctions, name) != std::end(kFunctions)) return Arithmetic::Function;
  return std::nullopt;
}

/// The pieces of an assembly. Blocks that the compiler made after it added the calls at the
/// beginning of each piece have none: they belong to the piece that jumps to them.
class PieceTable {
 public:
  explicit PieceTable(std::string_view assembly) : texts_(split_lines(assembly)) {
    for (const auto text : texts_) {
      lines_.push_back(read_line(text));
      if (lines_.back().is_label) labels_[lines_.back().word] = lines_.size() - 1;
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (begins_piece(lines_[i])) pieces_.push_back(follow(i));
    }
  }

  std::string text() const {
    std::set<std::size_t> branches;
    for (const auto& piece : pieces_) branches.insert(piece.branch);
    std::string result;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (branches.contains(i)) result += fmt::format("{}:\n", branch_label(i));
      result += texts_[i];
      result += '\n';
      if (begins_piece(lines_[i])) result += fmt::format("{}:\n", piece_label(i));
    }
    return result + section();
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Piece {
    std::size_t begin = 0, branch = kNone;  ///< lines
    std::array<unsigned, sizeof(cuda::plain::Piece::arithmetic)> arithmetic{};
  };

  static std::string piece_label(std::size_t line) {
    return fmt::format(".Ltriptych_piece_{}", line);
  }
  static std::string branch_label(std::size_t line) {
    return fmt::format(".Ltriptych_branch_{}", line);
  }
  static bool begins_piece(const Line& line) {
    return is_call(line) && line.rest.starts_with(kPieceCall);
  }

  /// The piece that begins at this call, up to the next calls, with its last branch.
  Piece follow(std::size_t call) const {
    Piece piece = {call, kNone, {}};
    std::set<std::size_t> seen;
    for (auto at = call + 1; at < lines_.size() && seen.insert(at).second;) {
      const Line& line = lines_[at];
      if (begins_piece(line) || ends_function(line)) break;
      if (is_branch(line)) {
        if (!is_check(at)) piece.branch = at;
        at = reports(at + 1) ? target_of(line) : at + 1;
      } else if (line.word.starts_with("jmp")) {
        at = target_of(line);
      } else {
        count(line, piece);
        ++at;
      }
    }
    return piece;
  }

  static void count(const Line& line, Piece& piece) {
    if (line.is_label) return;
    const auto kind = is_call(line) ? called_operation(line.rest) : scalar_operation(line.word);
    if (!kind) return;
    auto& number = piece.arithmetic[static_cast<std::size_t>(*kind)];
    number = std::min(number + 1, 255U);
  }

  /// kNone: in another function.
  std::size_t target_of(const Line& jump) const {
    const auto found = labels_.find(jump.rest);
    return found == labels_.end() ? kNone : found->second;
  }
  /// True when one of the two paths behind a jump reports a failed check.
  bool is_check(std::size_t jump) const {
    return reports(jump + 1) || reports(target_of(lines_[jump]));
  }
  bool reports(std::size_t at) const {
    for (; at < lines_.size() && !ends_path(lines_[at]); ++at) {
      if (!is_call(lines_[at]) || begins_piece(lines_[at])) continue;
      return lines_[at].rest.starts_with(kCheckCall);
    }
    return false;
  }

  std::string section() const {
    std::string text = fmt::format("\t.section {},\"\",@progbits\n", cuda::plain::kPieces);
    for (const auto& piece : pieces_) {
      text += fmt::format("\t.quad {}, {}\n\t.byte {}\n", piece_label(piece.begin),
                          piece.branch == kNone ? "0" : branch_label(piece.branch),
                          fmt::join(piece.arithmetic, ","));
    }
    return text;
  }

  std::vector<std::string_view> texts_;
  std::vector<Line> lines_;
  std::map<std::string_view, std::size_t> labels_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::string with_pieces(std::string_view assembly) {
#if defined(__x86_64__)
  return PieceTable(assembly).text();
#else
  return std::string(assembly);
#endif
}

}  // namespace triptych::kernels
