// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attribute.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/base/error.h"

namespace triptych {

std::string to_string(const Attribute& attribute) {
  return attribute.name + "=" +
         std::visit([](const auto& value) { return fmt::format("{}", value); }, attribute.value);
}

AttributeReader::AttributeReader(std::string_view op, std::span<const Attribute> attributes)
    : op_(op), attributes_(attributes), used_(attributes.size(), false) {}

template <class T>
void AttributeReader::read(std::string_view name, T& member) {
  for (std::size_t i = 0; i < attributes_.size(); ++i) {
    if (attributes_[i].name != name) continue;
    const T* value = std::get_if<T>(&attributes_[i].value);
    if (value == nullptr) throw_invalid(op_, fmt::format("attribute {} has the wrong type", name));
    member = *value;
    used_[i] = true;
  }
}

void AttributeReader::operator()(std::string_view name, std::int64_t& member) {
  read(name, member);
}
void AttributeReader::operator()(std::string_view name, bool& member) {
  std::int64_t flag = member ? 1 : 0;
  read(name, flag);
  member = flag != 0;
}
void AttributeReader::operator()(std::string_view name, float& member) { read(name, member); }
void AttributeReader::operator()(std::string_view name, std::string& member) { read(name, member); }
void AttributeReader::operator()(std::string_view name, std::vector<std::int64_t>& member) {
  read(name, member);
}
void AttributeReader::operator()(std::string_view name, std::vector<float>& member) {
  read(name, member);
}

void AttributeReader::finish() const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) {
      throw_invalid(op_, fmt::format("unknown attribute {}", to_string(attributes_[i])));
    }
  }
}

}  // namespace triptych
