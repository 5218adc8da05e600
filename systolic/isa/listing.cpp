// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "systolic/isa/field.h"
#include "systolic/isa/simulator.h"

namespace triptych::mmu {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kMostDimensions = 8;

/// A piece of a line, and the column of its first character, from 1.
struct Word {
  std::string_view text;
  std::size_t column = 1;

  Word from(std::size_t at) const { return {text.substr(at), column + at}; }
  Word first(std::size_t length) const { return {text.substr(0, length), column}; }
};

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t begin = 0; (begin = line.find_first_not_of(kBlanks, begin)) != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back({line.substr(begin, end - begin), begin + 1});
    begin = end;
  }
  return words;
}

/// The text with bytes that no terminal shows as \\xNN.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool prints = c >= ' ' && c != '\x7F';
    result += prints ? std::string(1, c) : fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

/// visit(number from 1, line without its comment) for each line.
template <class Visit>
void visit_lines(std::string_view text, std::string_view comment, Visit visit) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    visit(number, line.substr(0, std::min(line.find(comment), line.size())));
  }
}

std::vector<std::string_view> names_of(std::span<const Field> fields) {
  std::vector<std::string_view> names{"wait", "signal"};
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

/// Reads one line after the other.
class Reader {
 public:
  void read(std::size_t number, std::string_view line) {
    number_ = number;
    const auto words = words_of(line);
    if (words.empty()) return;
    if (words[0].text == ".values" || words[0].text == ".expect")
      read_values(words);
    else if (words[0].text.starts_with('.'))
      read_array(words);
    else
      read_instruction(words);
  }
  Listing take() {
    for (const DramArray& array : listing_.arrays)
      if (!array.values.empty() && array.values.size() != array.elements())
        throw ListingError(array.line, 1,
                           fmt::format("'{}' takes {} values, the text has {}", array.name,
                                       array.elements(), array.values.size()));
    return std::move(listing_);
  }

 private:
  [[noreturn]] void reject(const Word& at, const std::string& problem) const {
    throw ListingError(number_, at.column, problem);
  }

  /// "name=value" in two. Each name may stand once.
  std::pair<Word, Word> operand(const Word& word, std::vector<std::string_view>& given) const {
    const std::size_t equals = word.text.find('=');
    if (equals == word.text.npos)
      reject(word, fmt::format("'{}': write name=value, without blanks", word.text));
    const Word name = word.first(equals);
    if (std::ranges::count(given, name.text) > 0)
      reject(name, fmt::format("'{}' is given twice", name.text));
    given.push_back(name.text);
    return {name, word.from(equals + 1)};
  }

  void read_instruction(const std::vector<Word>& words) {
    const auto info = std::ranges::find(opcodes(), words[0].text, &OpcodeInfo::mnemonic);
    if (info == opcodes().end()) {
      std::vector<std::string_view> names;
      for (const OpcodeInfo& known : opcodes()) names.push_back(known.mnemonic);
      reject(words[0],
             fmt::format("no instruction '{}'; there are {}, and .input, .output, .values "
                         "and .expect",
                         shown(words[0].text), fmt::join(names, ", ")));
    }
    Instruction instruction;
    instruction.words[0] = static_cast<std::uint32_t>(info->opcode);
    std::vector<std::string_view> given;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto [name, value] = operand(words[i], given);
      if (name.text == "wait" || name.text == "signal")
        instruction.words[0] |= units(value) << (name.text == "wait" ? 8 : 12);
      else
        set_operand(instruction, *info, name, value);
    }
    listing_.program.push_back(instruction);
    listing_.lines.push_back(number_);
  }

  void set_operand(Instruction& instruction, const OpcodeInfo& info, const Word& name,
                   const Word& value) const {
    const auto field = std::ranges::find(info.fields, name.text, &Field::name);
    if (field == info.fields.end())
      reject(name, fmt::format("{} has no operand '{}'; it has {}", info.mnemonic, name.text,
                               fmt::join(names_of(info.fields), ", ")));
    const std::int64_t number =
        field->names.empty() ? sum(name, value) : choice(field->names, name, value);
    if (const auto problem = misfit(*field, number); !problem.empty()) reject(value, problem);
    set_field(instruction, *field, number);
  }

  /// A name, or its number.
  std::int64_t choice(std::span<const std::string_view> names, const Word& name,
                      const Word& value) const {
    const auto found = std::ranges::find(names, value.text);
    if (found != names.end()) return found - names.begin();
    if (value.text.find_first_not_of("0123456789") == value.text.npos) return sum(name, value);
    reject(value, fmt::format("no {} '{}'; there are {}", name.text, shown(value.text),
                              fmt::join(names, ", ")));
  }

  unsigned units(Word value) const {
    unsigned mask = 0;
    while (true) {
      const std::size_t comma = std::min(value.text.find(','), value.text.size());
      const Word name = value.first(comma);
      int unit = 0;
      while (unit < kUnits && to_string(static_cast<Unit>(unit)) != name.text) ++unit;
      if (unit == kUnits)
        reject(name, fmt::format("no unit '{}': use load, weights, compute, store", name.text));
      mask |= 1U << unit;
      if (comma == value.text.size()) return mask;
      value = value.from(comma + 1);
    }
  }

  /// "12", "-0x40", "x+32": every term is a number or an array's address.
  std::int64_t sum(const Word& name, const Word& value) const {
    std::int64_t total = 0;
    bool negative = value.text.starts_with('-');
    for (std::size_t at = negative ? 1 : 0;;) {
      const std::size_t end = std::min(value.text.find_first_of("+-", at), value.text.size());
      const std::int64_t number = term(name, value.from(at).first(end - at));
      total += negative ? -number : number;
      if (end == value.text.size()) return total;
      negative = value.text[end] == '-';
      at = end + 1;
    }
  }

  std::int64_t term(const Word& name, const Word& value) const {
    const auto array = std::ranges::find(listing_.arrays, value.text, &DramArray::name);
    if (array != listing_.arrays.end()) return array->address;
    std::string_view digits = value.text;
    const bool hexadecimal = digits.starts_with("0x");
    if (hexadecimal) digits.remove_prefix(2);
    std::uint64_t number = 0;
    const char* last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, number, hexadecimal ? 16 : 10);
    if (error == std::errc() && end == last && number >> 33 == 0)
      return static_cast<std::int64_t>(number);
    std::vector<std::string_view> known;
    for (const DramArray& other : listing_.arrays) known.push_back(other.name);
    reject(value, fmt::format("{}: '{}' is no number below 2^33 and no array above this line{}",
                              name.text, value.text,
                              known.empty() ? "" : fmt::format(" ({})", fmt::join(known, ", "))));
  }

  void read_array(const std::vector<Word>& words) {
    const bool is_input = words[0].text == ".input";
    if (!is_input && words[0].text != ".output")
      reject(words[0], fmt::format("'{}': use .input, .output, .values or .expect", words[0].text));
    if (words.size() < 2) reject(words[0], "give the array a name");
    DramArray array;
    array.is_input = is_input;
    array.line = number_;
    array.name = name_of_array(words[1]);
    std::vector<std::string_view> given;
    for (std::size_t i = 2; i < words.size(); ++i) read_property(words[i], given, array);
    for (const std::string_view property : {"address", "type", "shape"})
      if (std::ranges::count(given, property) == 0)
        reject(words[0], fmt::format("the array '{}' lacks its {}: write, for example, .input x "
                                     "address=0 type=bf16 shape=4x4",
                                     array.name, property));
    if (array.address + array.bytes() > std::uint64_t{1} << 32)
      reject(words[1], fmt::format("the array '{}' ends beyond 4 GiB", array.name));
    check_apart(words[1], array);
    listing_.arrays.push_back(std::move(array));
  }

  void read_property(const Word& word, std::vector<std::string_view>& given, DramArray& array) {
    const auto [name, value] = operand(word, given);
    if (name.text == "address") {
      const std::int64_t address = sum(name, value);
      if (address < 0 || address > std::numeric_limits<std::uint32_t>::max())
        reject(value, fmt::format("address = {}: give 0 to 2^32 - 1", address));
      array.address = static_cast<std::uint32_t>(address);
    } else if (name.text == "type") {
      array.type = type(value);
    } else if (name.text == "shape") {
      array.shape = shape(value);
    } else {
      reject(name, fmt::format("an array has no '{}'; it has address, type, shape", name.text));
    }
  }

  std::string name_of_array(const Word& word) const {
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const bool well_formed = is_letter(word.text[0]) && std::ranges::all_of(word.text, [&](char c) {
                               return is_letter(c) || (c >= '0' && c <= '9');
                             });
    if (!well_formed)
      reject(word, fmt::format("'{}': a name has letters, digits and '_', and begins with no digit",
                               word.text));
    if (std::ranges::find(listing_.arrays, word.text, &DramArray::name) != listing_.arrays.end())
      reject(word, fmt::format("there is an array '{}' already", word.text));
    return std::string(word.text);
  }

  ElementType type(const Word& value) const {
    std::vector<std::string_view> names;
    for (const auto& [type, name] : kElementTypeNames) {
      if (name == value.text) return type;
      names.push_back(name);
    }
    reject(value, fmt::format("no type '{}': use {}", value.text, fmt::join(names, ", ")));
  }

  std::vector<std::uint32_t> shape(Word value) const {
    std::vector<std::uint32_t> dimensions;
    std::uint64_t elements = 1;
    while (true) {
      const std::size_t end = std::min(value.text.find('x'), value.text.size());
      const Word side = value.first(end);
      std::uint32_t number = 0;
      const char* last = side.text.data() + side.text.size();
      const auto [stop, error] = std::from_chars(side.text.data(), last, number);
      elements *= number;
      if (error != std::errc() || stop != last || number == 0 || elements > std::uint64_t{1} << 32)
        reject(side, fmt::format("shape: '{}': write sides of at least 1 as 4x4, at most 2^32 "
                                 "elements in all",
                                 value.text));
      dimensions.push_back(number);
      if (dimensions.size() > kMostDimensions)
        reject(side, fmt::format("shape: at most {} dimensions", kMostDimensions));
      if (end == value.text.size()) return dimensions;
      value = value.from(end + 1);
    }
  }

  /// ".values x 1 2", ".expect y 1 2", ".expect cycles 76".
  void read_values(const std::vector<Word>& words) {
    const bool given = words[0].text == ".values";
    if (words.size() < 3)
      reject(words[0], fmt::format("{} takes a name and values", words[0].text));
    const auto array = std::ranges::find_if(listing_.arrays, [&](const DramArray& each) {
      return each.name == words[1].text && each.is_input == given;
    });
    if (array != listing_.arrays.end()) {
      for (std::size_t i = 2; i < words.size(); ++i)
        array->values.push_back(read_value(array->type, !given, words[i]));
      return;
    }
    if (!given && is_counter(words[1].text)) return read_count(words);
    reject(words[1], fmt::format("no {} '{}' stands above this line{}", given ? "input" : "output",
                                 words[1].text, given ? "" : ", and no counter is called so"));
  }

  void read_count(const std::vector<Word>& words) {
    const Word& word = words[2];
    ListedCount count = {std::string(words[1].text), 0, number_};
    const char* last = word.text.data() + word.text.size();
    const auto [end, error] = std::from_chars(word.text.data(), last, count.value);
    if (error != std::errc() || end != last || words.size() > 3)
      reject(word, fmt::format("the counter '{}' takes one whole number", count.name));
    listing_.counts.push_back(std::move(count));
  }

  ListedValue read_value(ElementType type, bool may_be_any, const Word& word) const {
    if (may_be_any && word.text == "_") return {.bits = 0, .any = true};
    const auto bits = type == ElementType::Bf16 || type == ElementType::F32
                          ? float_bits(word.text)
                          : whole_bits(type, word.text);
    if (bits) return {.bits = *bits};
    reject(word, fmt::format("'{}' is no value of {}: write {}{}", word.text, to_string(type),
                             type == ElementType::Bf16 || type == ElementType::F32
                                 ? "1, -0.5, 1e-3, inf, nan or the bits of a binary32, 0x7FC00000"
                                 : "a whole number in its range",
                             may_be_any ? ", or _ for any" : ""));
  }

  static std::optional<std::uint32_t> float_bits(std::string_view text) {
    const char* last = text.data() + text.size();
    if (text.starts_with("0x")) {
      std::uint32_t bits = 0;
      const auto [end, error] = std::from_chars(text.data() + 2, last, bits, 16);
      if (error == std::errc() && end == last) return bits;
      return std::nullopt;
    }
    if (text == "nan") return 0x7FC0'0000;  // the one that the machine makes
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc() || end != last || std::isnan(value)) return std::nullopt;
    return std::bit_cast<std::uint32_t>(value);
  }

  static std::optional<std::uint32_t> whole_bits(ElementType type, std::string_view text) {
    const std::int64_t lowest = type == ElementType::Int32  ? std::numeric_limits<int>::min()
                                : type == ElementType::Int8 ? -128
                                                            : 0;
    const std::int64_t most = type == ElementType::Int32  ? std::numeric_limits<int>::max()
                              : type == ElementType::Int8 ? 127
                                                          : 255;
    std::int64_t value = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc() || end != last || value < lowest || value > most) return std::nullopt;
    return static_cast<std::uint32_t>(value);
  }

  void check_apart(const Word& at, const DramArray& array) const {
    for (const DramArray& other : listing_.arrays)
      if (other.is_input == array.is_input && array.address < other.address + other.bytes() &&
          other.address < array.address + array.bytes())
        reject(at, fmt::format("'{}' overlaps '{}' (line {}), which takes bytes {} to {}",
                               array.name, other.name, other.line, other.address,
                               other.address + other.bytes() - 1));
  }

  Listing listing_;
  std::size_t number_ = 0;
};

/// An instruction without the bits that no operand has. The same one, unless there were some.
Instruction known_bits(const Instruction& instruction) {
  Instruction known;
  known.words[0] = instruction.words[0] & 0xFFFF;
  for (const Field& field : find_opcode(instruction.opcode())->fields)
    set_field(known, field, get_field(instruction, field));
  return known;
}

Instruction read_hex_line(std::size_t number, const Word& word) {
  const auto reject = [&](const std::string& problem) {
    throw ListingError(number, word.column, problem);
  };
  Instruction instruction;
  if (word.text.size() != 64)
    reject(
        fmt::format("'{:.80}' has {} digits: an instruction has 64", word.text, word.text.size()));
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string_view digits = word.text.substr(8 * (7 - i), 8);
    const char* last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, instruction.words[i], 16);
    if (error != std::errc() || end != last)
      reject(fmt::format("'{}' is no hexadecimal number", digits));
  }
  if (find_opcode(instruction.opcode()) == nullptr)
    reject(fmt::format("no instruction has the opcode {}", instruction.words[0] & 0xFF));
  if (known_bits(instruction) != instruction)
    reject(fmt::format("'{}' has bits set that no operand has", disassemble(instruction)));
  return instruction;
}

}  // namespace

std::string_view to_string(ElementType type) {
  return kElementTypeNames[static_cast<std::size_t>(type)].second;
}

std::uint32_t bytes_of(ElementType type) {
  if (type == ElementType::Bf16) return 2;
  return type == ElementType::F32 || type == ElementType::Int32 ? 4 : 1;
}

std::uint64_t DramArray::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

std::string DramArray::element(std::uint64_t index) const {
  std::string place;
  for (std::size_t d = shape.size(); d-- > 0; index /= shape[d])
    place.insert(0, fmt::format("[{}]", index % shape[d]));
  return name + place;
}

ListingError::ListingError(std::size_t line, std::size_t column, const std::string& problem)
    : std::invalid_argument(fmt::format("line {}, column {}: {}", line, column, problem)),
      line_(line),
      column_(column) {}

Listing read_listing(std::string_view text) {
  Reader reader;
  visit_lines(text, "#",
              [&](std::size_t number, std::string_view line) { reader.read(number, line); });
  return reader.take();
}

std::string to_hex(const Instruction& instruction) {
  std::string text;
  for (std::size_t i = instruction.words.size(); i-- > 0;)
    text += fmt::format("{:08x}", instruction.words[i]);
  return text;
}

Program read_hex(std::string_view text) {
  Program program;
  visit_lines(text, "//", [&](std::size_t number, std::string_view line) {
    const auto words = words_of(line);
    if (words.size() > 1) throw ListingError(number, words[1].column, "one instruction per line");
    if (!words.empty()) program.push_back(read_hex_line(number, words[0]));
  });
  return program;
}

}  // namespace triptych::mmu
