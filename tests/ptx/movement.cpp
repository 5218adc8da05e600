// Moves between registers, loads, stores and addresses.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/ptx/lanes.h"

namespace triptych::ptx {
namespace {

template <class T>
void move(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<T>(step.at[0]);
  const auto* a = warp.lanes<T>(step.at[1]);
  for_lanes(mask, [=](int i) { d[i] = a[i]; });
}

void move_predicate(Warp& warp, const Step& step, std::uint32_t mask) {
  warp.set_predicate(step.at[0], mask, warp.predicate(step.at[1]));
}

/// Registers of `list` side by side, the first lowest, from or into the word at[0].
template <bool kPack>
void move_pieces(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto& list = warp.block().launch().program.list;
  auto* whole = warp.lanes<std::uint8_t>(step.at[0]);
  const std::size_t bytes = step.at[0].bytes;
  std::size_t offset = 0;
  for (std::uint32_t k = 0; k < step.list_size; ++k) {
    const auto& slot = list[step.list + k];
    auto* piece = warp.lanes<std::uint8_t>(slot);
    const std::size_t size = slot.bytes;
    for_lanes(mask, [=](int i) {
      const auto lane = static_cast<std::size_t>(i);
      auto* in_whole = whole + lane * bytes + offset;
      if (kPack)
        std::memcpy(in_whole, piece + lane * size, size);
      else
        std::memcpy(piece + lane * size, in_whole, size);
    });
    offset += size;
  }
}

void decode_move(Decoder& decoder) {
  const auto type = decoder.take_type();
  const int bytes = bytes_of(type);
  auto& at = decoder.step().at;
  if (type == Type::Pred) {
    at = {decoder.predicate_target(0), decoder.predicate(decoder.term(1))};
    return decoder.finish(move_predicate);
  }
  for (const std::size_t side : {0U, 1U}) {
    const auto& list = decoder.term(side);
    if (list.kind != Term::Kind::List) continue;
    const int size = bytes / static_cast<int>(list.parts.size());
    for (const auto& part : list.parts) {
      decoder.append(side == 0 ? decoder.target(part, size) : decoder.source(part, size));
    }
    at[0] = side == 0 ? decoder.source(1, bytes) : decoder.target(0, bytes);
    return decoder.finish(side == 0 ? move_pieces<false> : move_pieces<true>);
  }
  at = {decoder.target(0, bytes), decoder.source(1, bytes)};
  decoder.finish(bytes == 2   ? move<std::uint16_t>
                 : bytes == 4 ? move<std::uint32_t>
                 : bytes == 8 ? move<std::uint64_t>
                              : nullptr);
}

/// Elements of T, each into a register of the list, which may be wider.
template <class T>
void load(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto& list = warp.block().launch().program.list;
  for_lanes(mask, [&](int i) {
    const auto address = warp.address_of(step, i);
    const auto* from = warp.memory(step.space, address, step.list_size * sizeof(T), i);
    for (std::uint32_t k = 0; k < step.list_size; ++k) {
      const auto& slot = list[step.list + k];
      T value;
      std::memcpy(&value, from + k * sizeof(T), sizeof(T));
      const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
      std::memcpy(warp.lanes<std::uint8_t>(slot) + i * slot.bytes, &wide, slot.bytes);
    }
  });
}

template <class T>
void store(Warp& warp, const Step& step, std::uint32_t mask) {
  const auto& list = warp.block().launch().program.list;
  for_lanes(mask, [&](int i) {
    const auto address = warp.address_of(step, i);
    auto* to = warp.memory(step.space, address, step.list_size * sizeof(T), i);
    for (std::uint32_t k = 0; k < step.list_size; ++k) {
      const auto& slot = list[step.list + k];
      std::memcpy(to + k * sizeof(T), warp.lanes<std::uint8_t>(slot) + i * slot.bytes, sizeof(T));
    }
  });
}

Space take_space(Decoder& decoder) {
  constexpr std::pair<std::string_view, Space> kSpaces[] = {{"global", Space::Global},
                                                            {"shared::cta", Space::Shared},
                                                            {"shared", Space::Shared},
                                                            {"local", Space::Local},
                                                            {"param", Space::Param}};
  for (const auto& [word, space] : kSpaces) {
    if (decoder.take(word)) return space;
  }
  return Space::Generic;
}

/// Modifiers of a load or store that do not change its value here.
void take_access_modifiers(Decoder& decoder) {
  for (const auto word : {"nc", "volatile", "relaxed", "acquire", "release", "gpu", "cta", "sys",
                          "weak", "L1::no_allocate", "L2::128B", "L2::256B"}) {
    static_cast<void>(decoder.take(word));
  }
}

template <class Register>
void take_elements(Decoder& decoder, const Term& term, Register register_of) {
  if (term.kind != Term::Kind::List) return decoder.append(register_of(term));
  for (const auto& part : term.parts) decoder.append(register_of(part));
}

/// Float values are moved as they are, by the unsigned type of their width.
using Stored =
    TypeList<Type::U8, Type::S8, Type::U16, Type::S16, Type::U32, Type::S32, Type::U64, Type::S64>;
Type stored_type(Type type) {
  return type == Type::F32 ? Type::U32 : type == Type::F64 ? Type::U64 : type;
}

std::size_t take_vector(Decoder& decoder) {
  return decoder.take("v2") ? 2 : decoder.take("v4") ? 4 : 1;
}

std::size_t elements_of(const Term& term) {
  return term.kind == Term::Kind::List ? term.parts.size() : 1;
}

void decode_load(Decoder& decoder) {
  take_access_modifiers(decoder);
  auto& step = decoder.step();
  step.space = take_space(decoder);
  const auto count = take_vector(decoder);
  const auto type = stored_type(decoder.take_type());
  decoder.address(1);
  take_elements(decoder, decoder.term(0),
                [&](const Term& term) { return decoder.wide_target(term, bytes_of(type)); });
  if (elements_of(decoder.term(0)) != count) decoder.unknown();
  decoder.finish(pick(Stored(), type, []<class T>() -> Handler { return load<T>; }));
}

void decode_store(Decoder& decoder) {
  take_access_modifiers(decoder);
  auto& step = decoder.step();
  step.space = take_space(decoder);
  const auto count = take_vector(decoder);
  const auto type = stored_type(decoder.take_type());
  decoder.address(0);
  take_elements(decoder, decoder.term(1),
                [&](const Term& term) { return decoder.wide_source(term, bytes_of(type)); });
  if (elements_of(decoder.term(1)) != count || step.space == Space::Param) decoder.unknown();
  decoder.finish(pick(Stored(), type, []<class T>() -> Handler { return store<T>; }));
}

/// Adds the window to an address of a space, or takes it away.
void shift_address(Warp& warp, const Step& step, std::uint32_t mask) {
  auto* d = warp.lanes<std::uint64_t>(step.at[0]);
  const auto* a = warp.lanes<std::uint64_t>(step.at[1]);
  const auto by = static_cast<std::uint64_t>(step.number);
  for_lanes(mask, [=](int i) { d[i] = a[i] + by; });
}

std::uint64_t window_of(Space space) {
  return space == Space::Shared  ? kSharedWindow
         : space == Space::Local ? kLocalWindow
         : space == Space::Param ? kParameterWindow
                                 : 0;
}

void decode_address(Decoder& decoder) {
  const bool to = decoder.take("to");
  const auto space = take_space(decoder);
  if (space == Space::Generic || decoder.take_type() != Type::U64) decoder.unknown();
  auto& step = decoder.step();
  step.at = {decoder.target(0, 8), decoder.source(1, 8)};
  const auto window = window_of(space);
  step.number = static_cast<std::int64_t>(to ? 0 - window : window);
  decoder.finish(shift_address);
}

}  // namespace

std::span<const Family> movement_family() {
  static constexpr Family kFamily[] = {
      {"mov", decode_move}, {"ld", decode_load}, {"st", decode_store}, {"cvta", decode_address}};
  return kFamily;
}

}  // namespace triptych::ptx
