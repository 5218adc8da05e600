// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/ptx/float_control.h"
#include "tests/ptx/memory.h"

namespace triptych::ptx {
namespace {

constexpr std::pair<std::string_view, Special> kSpecials[] = {
    {"%tid.x", Special::TidX},       {"%tid.y", Special::TidY},
    {"%tid.z", Special::TidZ},       {"%ntid.x", Special::NtidX},
    {"%ntid.y", Special::NtidY},     {"%ntid.z", Special::NtidZ},
    {"%ctaid.x", Special::CtaidX},   {"%ctaid.y", Special::CtaidY},
    {"%ctaid.z", Special::CtaidZ},   {"%nctaid.x", Special::NctaidX},
    {"%nctaid.y", Special::NctaidY}, {"%nctaid.z", Special::NctaidZ},
    {"%laneid", Special::LaneId},    {"%warpid", Special::WarpId}};

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"u8", Type::U8},   {"s8", Type::S8},   {"b8", Type::U8},     {"u16", Type::U16},
    {"s16", Type::S16}, {"b16", Type::U16}, {"u32", Type::U32},   {"s32", Type::S32},
    {"b32", Type::U32}, {"u64", Type::U64}, {"s64", Type::S64},   {"b64", Type::U64},
    {"f32", Type::F32}, {"f64", Type::F64}, {"bf16", Type::Bf16}, {"pred", Type::Pred}};

const Type* type_of(std::string_view word) {
  const auto* found =
      std::ranges::find(kTypes, word, [](const auto& entry) { return entry.first; });
  return found == std::end(kTypes) ? nullptr : &found->second;
}

std::size_t rounded_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

std::vector<Family> all_families() {
  std::vector<Family> all;
  for (const auto family :
       {arithmetic_family(), bits_family(), comparison_family(), conversion_family(),
        movement_family(), control_family(), warp_family(), tensor_family(), hopper_family()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

void decode(const Instruction& instruction, Layout& layout, Step& step) {
  static const auto families = all_families();
  Decoder decoder(instruction, layout, step);
  const auto name = std::string_view(instruction.name);
  const auto family = std::ranges::find(families, name.substr(0, name.find('.')), &Family::name);
  if (family == families.end()) decoder.unknown();
  if (instruction.guarded) {
    step.guarded = true;
    step.guard = decoder.predicate(instruction.guard);
  }
  family->decode(decoder);
}

}  // namespace

Layout::Layout(const Function& function, const GlobalAddresses& globals, Program& program)
    : function_(function), program_(program), addresses_(globals) {
  std::size_t offset = static_cast<std::size_t>(Special::Count) * kLanes * sizeof(std::uint32_t);
  for (const auto& one : function.registers) {
    const auto bytes = static_cast<std::size_t>(one.bytes);
    offset = rounded_up(offset, bytes == 0 ? sizeof(std::uint32_t) : 64);
    registers_.push_back({.offset = static_cast<std::uint32_t>(offset),
                          .bytes = static_cast<std::uint8_t>(one.bytes)});
    offset += bytes == 0 ? sizeof(std::uint32_t) : bytes * kLanes;
  }
  program.register_bytes = rounded_up(offset, 64);
  place_parameters(function);
  place_variables(function);
}

void Layout::place_parameters(const Function& function) {
  std::size_t offset = 0;
  for (const auto& parameter : function.parameters) {
    offset = rounded_up(offset, parameter.alignment);
    program_.parameters.push_back({offset, parameter.bytes});
    addresses_[parameter.name] = offset;
    offset += parameter.bytes;
  }
  program_.parameter_bytes = offset;
}

/// Dynamic shared memory follows the variables of fixed size.
void Layout::place_variables(const Function& function) {
  std::size_t shared = 0, local = 0;
  for (const auto& variable : function.variables) {
    auto& end = variable.space == Space::Shared ? shared : local;
    end = rounded_up(end, variable.alignment);
    addresses_[variable.name] = end + (variable.space == Space::Shared ? kSharedStart : 0);
    end += variable.bytes;
  }
  program_.static_shared_bytes = shared;
  program_.local_bytes = rounded_up(local, 16);
  for (auto& [name, address] : addresses_) {
    if (address != kDynamicShared) continue;
    if (shared != 0) throw Fault("shared memory of both kinds in one kernel is not known");
    address = kSharedStart;
  }
}

Slot Layout::constant(std::uint64_t bits, int bytes) {
  const auto [found, is_new] = constants_.try_emplace({bits, bytes});
  if (!is_new) return found->second;
  auto& memory = program_.constants;
  const auto at = rounded_up(memory.size(), 64);
  const int lanes = bytes == 0 ? 1 : kLanes, size = bytes == 0 ? 4 : bytes;
  memory.resize(at + static_cast<std::size_t>(lanes * size));
  for (int lane = 0; lane < lanes; ++lane) {
    std::memcpy(memory.data() + at + static_cast<std::size_t>(lane * size), &bits,
                static_cast<std::size_t>(size));
  }
  found->second = {.offset = static_cast<std::uint32_t>(at),
                   .bytes = static_cast<std::uint8_t>(bytes),
                   .constant = true};
  return found->second;
}

std::uint64_t Layout::address(const std::string& name) const {
  const auto found = addresses_.find(name);
  if (found == addresses_.end()) throw Fault(fmt::format("\"{}\" is not declared", name));
  return found->second;
}

std::size_t Layout::label(const std::string& name) const {
  const auto found = function_.labels.find(name);
  if (found == function_.labels.end()) throw Fault(fmt::format("there is no label {}", name));
  return found->second;
}

Decoder::Decoder(const Instruction& instruction, Layout& layout, Step& step)
    : instruction_(instruction), layout_(layout), step_(step) {
  auto rest = std::string_view(instruction.name);
  for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    rest.remove_prefix(dot + 1);
    modifiers_.push_back(rest.substr(0, rest.find('.')));
  }
}

bool Decoder::take(std::string_view modifier) {
  const auto found = std::ranges::find(modifiers_, modifier);
  if (found == modifiers_.end()) return false;
  modifiers_.erase(found);
  return true;
}

Type Decoder::take_type() {
  const auto found =
      std::ranges::find_if(modifiers_, [](auto word) { return type_of(word) != nullptr; });
  if (found == modifiers_.end()) unknown();
  const auto type = *type_of(*found);
  modifiers_.erase(found);
  return type;
}

std::string_view Decoder::take_front() {
  if (modifiers_.empty()) return {};
  const auto front = modifiers_.front();
  modifiers_.erase(modifiers_.begin());
  return front;
}

const Term& Decoder::term(std::size_t i) const {
  if (i >= terms()) unknown();
  return instruction_.terms[i];
}

Slot Decoder::target(const Term& term, int bytes) const {
  if (term.kind != Term::Kind::Register) unknown();
  const auto slot = layout_.register_slot(term.id);
  if (slot.bytes != bytes) unknown();
  return slot;
}

Slot Decoder::source(const Term& term, int bytes) {
  switch (term.kind) {
    case Term::Kind::Register:
      return target(term, bytes);
    case Term::Kind::Number:
      return layout_.constant(term.bits, bytes);
    case Term::Kind::Name:
      return layout_.constant(layout_.address(term.name) + static_cast<std::uint64_t>(term.offset),
                              bytes);
    case Term::Kind::Special: {
      const auto* found =
          std::ranges::find(kSpecials, term.name, [](const auto& entry) { return entry.first; });
      if (found == std::end(kSpecials) || bytes != 4) unknown();
      return {.offset = static_cast<std::uint32_t>(found->second) * kLanes * 4, .bytes = 4};
    }
    default:
      unknown();
  }
}

Slot Decoder::wide_target(const Term& term, int least_bytes) const {
  if (term.kind != Term::Kind::Register) unknown();
  const auto slot = layout_.register_slot(term.id);
  if (slot.bytes < least_bytes || slot.bytes == 0) unknown();
  return slot;
}

Slot Decoder::wide_source(const Term& term, int least_bytes) {
  return term.kind == Term::Kind::Register ? wide_target(term, least_bytes)
                                           : source(term, least_bytes);
}

Slot Decoder::predicate(const Term& term) {
  auto slot = term.kind == Term::Kind::Number
                  ? layout_.constant(term.bits == 0 ? 0 : 0xFFFFFFFFU, 0)
                  : target(term, 0);
  slot.negated = term.negated;
  return slot;
}

void Decoder::address(std::size_t i, std::size_t place) {
  const auto& whole = term(i);
  if (whole.kind != Term::Kind::Address || whole.parts.empty()) unknown();
  const auto& base = whole.parts.front();
  if (base.kind == Term::Kind::Register) {
    step_.at[place] = wide_target(base, 4);
    step_.offsets[place] = static_cast<std::int32_t>(base.offset);
  } else {
    step_.at[place] = source(base, 8);
  }
}

std::size_t Decoder::label(std::size_t i) const {
  if (term(i).kind != Term::Kind::Name) unknown();
  return layout_.label(term(i).name);
}

std::uint64_t Decoder::number(std::size_t i) const {
  if (term(i).kind != Term::Kind::Number) unknown();
  return term(i).bits;
}

void Decoder::append(Slot slot) {
  auto& list = layout_.program().list;
  if (step_.list_size == 0) step_.list = static_cast<std::uint32_t>(list.size());
  list.push_back(slot);
  ++step_.list_size;
}

void Decoder::finish(Handler handler) {
  if (handler == nullptr || !modifiers_.empty()) unknown();
  step_.run = handler;
}

void Decoder::unknown() const {
  throw Fault(fmt::format("PTX line {}: the instruction {} with these operands is not known",
                          instruction_.line, instruction_.name));
}

std::unique_ptr<Program> make_program(const Function& function, const GlobalAddresses& globals) {
  auto program = std::make_unique<Program>();
  program->name = function.name;
  program->most_threads = function.most_threads;
  Layout layout(function, globals, *program);
  for (const auto& instruction : function.instructions) {
    Step step;
    step.float_control = kRoundToNearest;
    try {
      decode(instruction, layout, step);
    } catch (const Fault& fault) {
      throw Fault(fmt::format("{}: {}", function.name, fault.what()));
    }
    program->steps.push_back(step);
    program->names.push_back(instruction.name);
    program->lines.push_back(instruction.line);
  }
  program->runs.resize(program->steps.size());
  return program;
}

std::vector<std::string> known_instructions() {
  std::vector<std::string> names;
  for (const auto& family : all_families()) names.emplace_back(family.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace triptych::ptx
