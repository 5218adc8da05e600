// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/nvrtc_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace triptych::cuda::program {
namespace {

/// The use of an option.
enum class Effect {
  Define,
  Undefine,
  Include,
  File,
  Architecture,
  Contract,
  ForBoth,
  Language,
  None
};

/// Two spellings, and whether a value follows.
struct Option {
  std::string_view name, short_name;
  bool has_value;
  Effect effect;
};

/// Options with the effect None change no result of the emulator.
constexpr Option kOptions[] = {
    {"--define-macro", "-D", true, Effect::Define},
    {"--undefine-macro", "-U", true, Effect::Undefine},
    {"--include-path", "-I", true, Effect::Include},
    {"--pre-include", "-include", true, Effect::File},
    {"--gpu-architecture", "-arch", true, Effect::Architecture},
    {"--fmad", "-fmad", true, Effect::Contract},
    {"--device-as-default-execution-space", "-default-device", false, Effect::ForBoth},
    {"--std", "-std", true, Effect::Language},
    {"--use_fast_math", "-use_fast_math", false, Effect::None},
    {"--ftz", "-ftz", true, Effect::None},
    {"--prec-sqrt", "-prec-sqrt", true, Effect::None},
    {"--prec-div", "-prec-div", true, Effect::None},
    {"--extra-device-vectorization", "-extra-device-vectorization", false, Effect::None},
    {"--maxrregcount", "-maxrregcount", true, Effect::None},
    {"--relocatable-device-code", "-rdc", true, Effect::None},
    {"--device-c", "-dc", false, Effect::None},
    {"--device-w", "-dw", false, Effect::None},
    {"--device-debug", "-G", false, Effect::None},
    {"--generate-line-info", "-lineinfo", false, Effect::None},
    {"--dopt", "-dopt", true, Effect::None},
    {"--ptxas-options", "-Xptxas", true, Effect::None},
    {"--restrict", "-restrict", false, Effect::None},
    {"--builtin-move-forward", "-builtin-move-forward", true, Effect::None},
    {"--builtin-initializer-list", "-builtin-initializer-list", true, Effect::None},
    {"--disable-warnings", "-w", false, Effect::None},
    {"--display-error-number", "-err-no", false, Effect::None},
    {"--no-display-error-number", "-no-err-no", false, Effect::None},
    {"--diag-suppress", "-diag-suppress", true, Effect::None},
    {"--split-compile", "-split-compile", true, Effect::None},
};

/// The option of a word, and the part of the word behind its name.
const Option* find(std::string_view word, std::string_view& rest) {
  const auto equals = word.find('=');
  for (const auto& each : kOptions) {
    const bool is_letter = each.has_value && each.short_name.size() == 2;
    if (is_letter && word.starts_with(each.short_name)) {
      rest = word.substr(2);
      return &each;
    }
    const auto name = word.substr(0, equals);
    if (name != each.name && name != each.short_name) continue;
    rest = equals == word.npos ? std::string_view() : word.substr(equals + 1);
    return &each;
  }
  return nullptr;
}

/// 90 of "sm_90", "compute_90a". 0: none.
int read_architecture(std::string_view text) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (!text.starts_with(prefix)) continue;
    int number = 0;
    std::from_chars(text.data() + prefix.size(), text.data() + text.size(), number);
    return number;
  }
  return 0;
}

/// The mistake in the value, or an empty text.
std::string use(const Option& option, std::string_view value, ModuleRequest& request) {
  const std::string text(value);
  switch (option.effect) {
    case Effect::Define:
      request.options.push_back("-D" + text);
      break;
    case Effect::Undefine:
      request.options.push_back("-U" + text);
      break;
    case Effect::Include:
      request.options.push_back("-I" + text);
      break;
    case Effect::File:
      request.options.insert(request.options.end(), {"-include", text});
      break;
    case Effect::Architecture:
      request.architecture = read_architecture(value);
      if (request.architecture < 50) {
        return fmt::format("\"{}\" is no architecture such as sm_90 or compute_90", value);
      }
      break;
    case Effect::Contract:
      if (value != "true" && value != "false") {
        return fmt::format("\"{}\" is neither true nor false", value);
      }
      request.contract = value == "true";
      break;
    case Effect::ForBoth:
      request.for_both = true;
      break;
    case Effect::Language: {
      constexpr std::string_view versions[] = {"c++03", "c++11", "c++14", "c++17", "c++20"};
      if (std::ranges::find(versions, value) == std::end(versions)) {
        return fmt::format("\"{}\" is no version of C++ from c++03 to c++20", value);
      }
      break;  // C++20 is used for all
    }
    case Effect::None:
      break;
  }
  return {};
}

}  // namespace

std::string read_nvrtc_options(std::span<const char* const> options, ModuleRequest& request) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string_view word = options[i];
    std::string_view value;
    const auto* option = find(word, value);
    if (option == nullptr) return fmt::format("the option \"{}\" is not emulated", word);
    if (option->has_value && value.empty()) {
      if (++i == options.size()) return fmt::format("the option \"{}\" needs a value", word);
      value = options[i];
    }
    if (auto wrong = use(*option, value, request); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace triptych::cuda::program
