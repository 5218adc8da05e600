// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/mmu_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <regex>

#include "core/base/error.h"
#include "core/base/float16.h"
#include "core/base/mapped.h"
#include "core/io/npy.h"
#include "systolic/driver/listed_data.h"
#include "systolic/driver/order.h"
#include "systolic/twin/twin.h"

namespace triptych::measure {
namespace {

std::string_view option_of(bool inputs) { return inputs ? "the option dram" : "the option out"; }

DType dtype_of_array(mmu::ElementType type) {
  switch (type) {
    case mmu::ElementType::Int8:
      return DType::I8;
    case mmu::ElementType::Int32:
      return DType::I32;
    case mmu::ElementType::Uint8:
      return DType::U8;
    case mmu::ElementType::Bf16:
    case mmu::ElementType::F32:
      break;
  }
  return DType::F32;
}

TensorSpec spec_of(const mmu::DramArray& array) {
  return {dtype_of_array(array.type),
          Shape(std::vector<std::int64_t>(array.shape.begin(), array.shape.end()))};
}

/// "product.s, line 3".
std::string place_of(const ProgramRequest& request, const mmu::DramArray& array) {
  return fmt::format("{}, line {}", request.source, array.line);
}

void check_fits(const ProgramRequest& request) {
  for (const auto& array : request.listing.arrays)
    if (const auto problem = mmu::misfit(array, request.machine); !problem.empty())
      throw InvalidArgument(fmt::format("{}: {}", place_of(request, array), problem));
}

/// Writes the array's file, else the text's values, to its bytes in `dram`.
void read_input(const ProgramRequest& request, const mmu::DramArray& array,
                const std::filesystem::path& file, std::span<std::byte> dram) {
  if (file.empty() && !array.values.empty()) return mmu::put_values(array, dram);
  if (file.empty())
    throw InvalidArgument(
        fmt::format("{}: the input '{}' has no file; give the option dram {}=FILE.npy, "
                    "or lines .values {} ...",
                    place_of(request, array), array.name, array.name, array.name));
  const Tensor tensor = load_npy(file);
  if (tensor.spec() != spec_of(array))
    throw InvalidArgument(fmt::format(
        "\"{}\" is {}, but '{}' of {} takes {}{}", file.string(), to_string(tensor.spec()),
        array.name, place_of(request, array), to_string(spec_of(array)),
        array.type == mmu::ElementType::Bf16 ? ", whose values are rounded to bf16" : ""));
  const auto target = dram.subspan(array.address, array.bytes());
  if (array.type != mmu::ElementType::Bf16) {
    std::ranges::copy(tensor.bytes(), target.begin());
    return;
  }
  std::size_t at = 0;
  for (const float value : tensor.as<float>()) {
    const std::uint16_t bits = bf16_bits(value);
    std::memcpy(target.data() + at, &bits, sizeof bits);
    at += sizeof bits;
  }
}

Tensor read_output(const mmu::DramArray& array, mmu::Machine& machine) {
  Tensor tensor(spec_of(array));
  const auto source = machine.dram().subspan(array.address, array.bytes());
  if (array.type != mmu::ElementType::Bf16) {
    std::ranges::copy(source, tensor.bytes().begin());
    return tensor;
  }
  std::size_t at = 0;
  for (float& value : tensor.as<float>()) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, source.data() + at, sizeof bits);
    value = bf16_to_float(bits);
    at += sizeof bits;
  }
  return tensor;
}

/// The message with the lines of the instructions that it mentions. The first one's line is in
/// front, "product.s, line 13: instruction 4 (matmul ...): ...", that of others behind their
/// number, "instruction 0 (line 7: load ...)".
std::string with_lines(const ProgramRequest& request, const std::string& message) {
  static const std::regex named("instruction ([0-9]+) \\(");
  std::string head = request.source, text;
  auto rest = message.begin();
  for (std::sregex_iterator match(message.begin(), message.end(), named), end; match != end;
       ++match) {
    const std::size_t number = std::stoul((*match)[1]);
    text.append(rest, (*match)[0].second);
    rest = (*match)[0].second;
    if (number >= request.listing.lines.size()) continue;
    if (match->position() == 0)
      head += fmt::format(", line {}", request.listing.lines[number]);
    else
      text += fmt::format("line {}: ", request.listing.lines[number]);
  }
  text.append(rest, message.end());
  return fmt::format("{}: {}", head, text);
}

/// Calls it. Exceptions of the systolic module become Errors with line numbers.
template <class Call>
auto with_errors(const ProgramRequest& request, Call call) {
  try {
    return call();
  } catch (const std::invalid_argument& error) {
    throw InvalidArgument(with_lines(request, error.what()));
  } catch (const mmu::Mismatch& error) {
    throw NumericError(with_lines(request, error.what()));
  } catch (const mmu::HardwareFault& error) {
    throw NumericError(with_lines(request, error.what()));
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw DeviceError(with_lines(request, error.what()));
  }
}

/// The text without the values of an array.
std::string without_values(std::string_view text, const std::string& array) {
  const std::regex values(fmt::format("[ \t]*\\.values[ \t]+{}[ \t\r]", array));
  std::string kept;
  while (!text.empty()) {
    const auto line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (std::regex_search(line.begin(), line.end(), values, std::regex_constants::match_continuous))
      continue;
    kept.append(line).append("\n");
  }
  return kept;
}

/// Lines .values of an array that starts at the first byte of `dram`, one per row.
std::string values_text(const mmu::DramArray& array, std::span<const std::byte> dram) {
  std::string text;
  for (std::uint64_t i = 0; i < array.elements(); ++i) {
    if (i % array.shape.back() == 0) text += fmt::format("\n.values {}", array.name);
    text += " " + mmu::value_text(array.type, mmu::value_bits(array, dram, i));
  }
  return text + "\n";
}

mmu::RunOptions options_of(const ProgramRequest& request, std::uint64_t foreseen) {
  return {.record_times = true,
          .pes = request.pes == nullptr ? nullptr : &request.pes->watcher(),
          .waves = request.waves,
          .waves_name = request.waves_name,
          .max_cycles = request.max_cycles.value_or(mmu::watchdog_cycles(foreseen))};
}

}  // namespace

std::vector<ArrayFile> parse_array_files(const std::vector<std::string>& texts) {
  std::vector<ArrayFile> files;
  for (const auto& text : texts) {
    const std::size_t equals = text.find('=');
    const std::size_t file = equals == text.npos ? 0 : equals + 1;
    files.push_back({text.substr(0, file == 0 ? 0 : equals), text.substr(file)});
  }
  return files;
}

std::vector<mmu::DramArray> arrays_of(const mmu::Listing& listing, bool inputs) {
  std::vector<mmu::DramArray> arrays;
  std::ranges::copy_if(listing.arrays, std::back_inserter(arrays),
                       [&](const auto& array) { return array.is_input == inputs; });
  return arrays;
}

std::vector<std::filesystem::path> files_of(const ProgramRequest& request, bool inputs,
                                            const std::vector<ArrayFile>& files) {
  const auto arrays = arrays_of(request.listing, inputs);
  auto names = mapped<std::string>(arrays, [](const auto& array) { return array.name; });
  std::vector<std::filesystem::path> found(arrays.size());
  for (const auto& [array, file] : files) {
    if (array.empty() && names.size() != 1)
      throw InvalidArgument(fmt::format(
          "{} {}: {} has {} {}s{}{}; say for which one the file is, as NAME=FILE",
          option_of(inputs), file.string(), request.source, names.size(),
          inputs ? "input" : "output", names.empty() ? "" : ": ", fmt::join(names, ", ")));
    const auto at = array.empty() ? names.begin() : std::ranges::find(names, array);
    if (at == names.end())
      throw InvalidArgument(
          fmt::format("{} {}={}: {} has no {} '{}'; it has {}", option_of(inputs), array,
                      file.string(), request.source, inputs ? "input" : "output", array,
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
    auto& place = found[static_cast<std::size_t>(at - names.begin())];
    if (!place.empty())
      throw InvalidArgument(fmt::format("{}: '{}' has two files, \"{}\" and \"{}\"",
                                        option_of(inputs), *at, place.string(), file.string()));
    place = file;
  }
  return found;
}

std::string with_values(const ProgramRequest& request, std::string_view text,
                        const std::vector<std::filesystem::path>& inputs) {
  std::string whole(text);
  for (std::size_t i = 0; auto array : arrays_of(request.listing, true)) {
    const auto& file = inputs[i++];
    if (file.empty() && !array.values.empty()) continue;
    array.address = 0;
    std::vector<std::byte> dram(array.bytes());
    read_input(request, array, file, dram);
    whole = without_values(whole, array.name) + values_text(array, dram);
  }
  return whole;
}

ProgramRun run_program(const ProgramRequest& request,
                       const std::vector<std::filesystem::path>& inputs) {
  const auto& program = request.listing.program;
  check_fits(request);
  ProgramRun run;
  run.node.name = request.source;
  run.node.program = program;
  run.node.report = with_errors(request, [&] {
    auto foreseen = mmu::estimate(program, request.machine, {.record_times = true});
    mmu::check_order(program, request.machine, request.listing.arrays);
    return foreseen;
  });
  const auto machine =
      with_errors(request, [&] { return mmu::open_machine(request.machine, request.simulation); });
  for (std::size_t i = 0; const auto& array : arrays_of(request.listing, true))
    read_input(request, array, inputs[i++], machine->dram());
  const auto report = with_errors(
      request, [&] { return machine->run(program, options_of(request, run.node.cycles())); });
  run.stalls_known = report.counters.stall_cycles == run.node.report.counters.stall_cycles;
  if (!run.stalls_known) run.node.report.stalls.clear();
  run.node.report.counters = report.counters;
  run.node.report.times = report.times;
  for (const auto& array : arrays_of(request.listing, false))
    run.outputs.push_back(read_output(array, *machine));
  run.unexpected = mmu::first_unexpected(request.listing, machine->dram(), report.counters);
  return run;
}

namespace {

/// Lines of a timeline: a character stands for `step` cycles.
class Timeline {
 public:
  explicit Timeline(std::uint64_t cycles)
      : cycles_(cycles),
        step_((cycles + kWidth) / kWidth),
        width_(static_cast<std::size_t>(cycles / step_ + 1)) {}

  std::string head() const {
    std::string numbers(width_, ' ');
    for (std::size_t at = 0; at < width_; at += 10) {
      const std::string number = fmt::format("{}", at * step_);
      numbers.resize(std::max(numbers.size(), at + number.size()), ' ');
      numbers.replace(at, number.size(), number);
    }
    numbers.erase(numbers.find_last_not_of(' ') + 1);
    return fmt::format("{:8} {}\n", step_ == 1 ? "cycle" : fmt::format("{} each", step_), numbers);
  }
  void mark(std::uint64_t begin, std::uint64_t end, char with) {
    for (std::uint64_t at = begin / step_; at * step_ < end && at < width_; ++at)
      line_[static_cast<std::size_t>(at)] = with;
  }
  std::string take(std::string_view name) {
    std::string text = fmt::format("{:8} {}\n", name, line_);
    line_.assign(width_, '.');
    return text;
  }

 private:
  static constexpr std::uint64_t kWidth = 90;

  std::uint64_t cycles_, step_;
  std::size_t width_;
  std::string line_ = std::string(width_, '.');
};

constexpr std::array<char, mmu::kStalls> kStallLetters{'.', 'a', 'o', 'm', 'w', 'c', 'f'};

}  // namespace

std::string timeline_text(const ProgramRun& run) {
  const ArrayNode& node = run.node;
  Timeline timeline(node.cycles());
  std::string text = timeline.head();
  for (int u = 0; u < mmu::kUnits; ++u) {
    const auto unit = static_cast<mmu::Unit>(u);
    for (std::size_t i = 0; i < node.program.size(); ++i)
      if (!halts(node.program[i]) && unit_of(node.program[i]) == unit)
        timeline.mark(node.report.times[i].start, node.report.times[i].end, '#');
    text += timeline.take(mmu::to_string(unit));
  }
  if (!run.stalls_known)
    return text + "array    unknown: its stalls are not those that the twin foresees\n";
  for (const auto& stall : node.report.stalls)
    timeline.mark(stall.begin, stall.end, kStallLetters[static_cast<std::size_t>(stall.cause)]);
  for (const auto& [begin, end] : issuing(node)) timeline.mark(begin, end, '#');
  text += timeline.take("array");
  return text +
         "         # works; the array waits for a activations, o output, m weights' DRAM, w "
         "weights, c accumulators, f matmuls in flight\n";
}

}  // namespace triptych::measure
