// Attributes of operators as data: for printing, files, ONNX and the documentation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace triptych {

using AttributeValue =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>>;

/// One attribute: ONNX's name and its value. Flags are integers 0 and 1, as in ONNX.
struct Attribute {
  std::string name;
  AttributeValue value;
  bool operator==(const Attribute&) const = default;
};

/// "strides=[2, 2]".
std::string to_string(const Attribute& attribute);

/// The visitor that collects an operator's members into a list.
class AttributeWriter {
 public:
  void operator()(std::string_view name, const auto& member) {
    attributes_.push_back({std::string(name), convert(member)});
  }
  std::vector<Attribute> take() { return std::move(attributes_); }

 private:
  static AttributeValue convert(std::int64_t value) { return value; }
  static AttributeValue convert(bool value) { return std::int64_t{value}; }
  static AttributeValue convert(float value) { return value; }
  static AttributeValue convert(const std::string& value) { return value; }
  static AttributeValue convert(const std::vector<std::int64_t>& value) { return value; }
  static AttributeValue convert(const std::vector<float>& value) { return value; }

  std::vector<Attribute> attributes_;
};

/// The visitor that sets an operator's members from a list. Members not in the list keep their
/// defaults. Throws InvalidArgument for a wrong type and, in `finish`, for unknown names.
class AttributeReader {
 public:
  AttributeReader(std::string_view op, std::span<const Attribute> attributes);

  void operator()(std::string_view name, std::int64_t& member);
  void operator()(std::string_view name, bool& member);
  void operator()(std::string_view name, float& member);
  void operator()(std::string_view name, std::string& member);
  void operator()(std::string_view name, std::vector<std::int64_t>& member);
  void operator()(std::string_view name, std::vector<float>& member);

  /// Throws when an attribute of the list was not asked for.
  void finish() const;

 private:
  template <class T>
  void read(std::string_view name, T& member);

  std::string op_;
  std::span<const Attribute> attributes_;
  std::vector<bool> used_;
};

}  // namespace triptych
