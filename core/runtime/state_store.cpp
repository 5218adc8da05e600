// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/state_store.h"

#include <fmt/core.h>

namespace triptych {

namespace {

void require_spec(std::string_view name, const TensorSpec& held, const TensorSpec& given) {
  if (held == given) return;
  throw InvalidArgument(
      fmt::format("the state \"{}\" is {}, not {}", name, to_string(held), to_string(given)));
}

}  // namespace

std::byte* StateStore::require(const std::string& name, const Tensor& initial) {
  if (const auto found = entries_.find(name); found != entries_.end()) {
    require_spec(name, found->second.spec, initial.spec());
    return found->second.memory->data();
  }
  Entry entry{initial.spec(), device_.allocate(initial.bytes().size())};
  auto* memory = entry.memory->data();
  device_.upload(memory, initial.bytes().data(), initial.bytes().size());
  entries_.emplace(name, std::move(entry));
  return memory;
}

const StateStore::Entry& StateStore::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw InvalidArgument(
        fmt::format("there is no state \"{}\" among the {} of this store", name, entries_.size()));
  }
  return found->second;
}

bool StateStore::contains(std::string_view name) const {
  return entries_.find(name) != entries_.end();
}

Tensor StateStore::read(std::string_view name) const {
  const auto& held = entry(name);
  Tensor copy(held.spec);
  device_.download(copy.bytes().data(), held.memory->data(), copy.bytes().size());
  return copy;
}

void StateStore::write(std::string_view name, const Tensor& value) {
  const auto& held = entry(name);
  require_spec(name, held.spec, value.spec());
  device_.upload(held.memory->data(), value.bytes().data(), value.bytes().size());
}

std::vector<std::string> StateStore::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

std::size_t StateStore::bytes() const {
  std::size_t total = 0;
  for (const auto& [name, entry] : entries_) total += entry.spec.bytes();
  return total;
}

}  // namespace triptych
