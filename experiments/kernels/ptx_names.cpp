// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/ptx_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <utility>

#include "experiments/kernels/assembly_text.h"

namespace triptych::kernels {
namespace {

using cuda::plain::PtxClass;
using cuda::plain::PtxComparison;
using cuda::plain::PtxElement;
using cuda::plain::PtxKind;
using cuda::plain::PtxOperation;
using cuda::plain::PtxShape;

struct OperationRow {
  std::string_view text;  ///< without the type
  PtxOperation operation;
  std::size_t operands;
};
constexpr OperationRow kOperations[] = {
    {"mov", PtxOperation::Move, 2},
    {"cvta.shared", PtxOperation::Move, 2},
    {"cvta.to.shared", PtxOperation::Move, 2},
    {"cvta.global", PtxOperation::Move, 2},
    {"cvta.to.global", PtxOperation::Move, 2},
    {"add", PtxOperation::Add, 3},
    {"sub", PtxOperation::Subtract, 3},
    {"mul.lo", PtxOperation::MultiplyLow, 3},
    {"mul", PtxOperation::Multiply, 3},
    {"mul.hi", PtxOperation::MultiplyHigh, 3},
    {"mul.wide", PtxOperation::MultiplyWide, 3},
    {"mad.lo", PtxOperation::MultiplyAdd, 4},
    {"fma", PtxOperation::FusedMultiplyAdd, 4},
    {"and", PtxOperation::And, 3},
    {"or", PtxOperation::Or, 3},
    {"xor", PtxOperation::Xor, 3},
    {"not", PtxOperation::Not, 2},
    {"shl", PtxOperation::ShiftLeft, 3},
    {"shr", PtxOperation::ShiftRight, 3},
    {"min", PtxOperation::Minimum, 3},
    {"max", PtxOperation::Maximum, 3},
    {"abs", PtxOperation::Absolute, 2},
    {"neg", PtxOperation::Negate, 2},
    {"lop3", PtxOperation::Logic3, 5},
    {"prmt", PtxOperation::Permute, 4},
    {"bfe", PtxOperation::ExtractBits, 4},
    {"bfi", PtxOperation::InsertBits, 5},
    {"bfind", PtxOperation::FindBit, 2},
    {"popc", PtxOperation::CountBits, 2},
    {"clz", PtxOperation::CountZeros, 2},
    {"brev", PtxOperation::ReverseBits, 2},
    {"sad", PtxOperation::SumDifference, 4},
    {"shf.l.wrap", PtxOperation::FunnelLeft, 4},
    {"shf.r.wrap", PtxOperation::FunnelRight, 4},
    {"vabsdiff4.u32.u32.u32.add", PtxOperation::ByteDifferences, 4},
    {"selp", PtxOperation::Select, 4},
    {"ex2.approx", PtxOperation::PowerOfTwo, 2},
    {"lg2.approx", PtxOperation::Logarithm, 2},
    {"rcp.approx", PtxOperation::Reciprocal, 2},
    {"sqrt.approx", PtxOperation::SquareRoot, 2},
    {"rsqrt.approx", PtxOperation::ReciprocalRoot, 2},
    {"tanh.approx", PtxOperation::Tangent, 2},
    {"shfl.sync.up", PtxOperation::ShuffleUp, 5},
    {"shfl.sync.down", PtxOperation::ShuffleDown, 5},
    {"shfl.sync.bfly", PtxOperation::ShuffleXor, 5},
    {"shfl.sync.idx", PtxOperation::ShuffleIndex, 5},
    {"vote.sync.ballot", PtxOperation::Ballot, 3},
    {"membar.cta", PtxOperation::FenceBlock, 0},
    {"membar.gl", PtxOperation::FenceDevice, 0},
    {"membar.sys", PtxOperation::FenceSystem, 0},
    {"bar.sync", PtxOperation::BlockBarrier, 1},
    {"barrier.sync", PtxOperation::BlockBarrier, 1},
    {"bar.warp.sync", PtxOperation::WarpBarrier, 1},
    {"cp.async.commit_group", PtxOperation::CommitCopies, 0},
    {"cp.async.wait_group", PtxOperation::AwaitCopies, 1},
    {"cp.async.wait_all", PtxOperation::AwaitAllCopies, 0}};

constexpr std::pair<std::string_view, PtxComparison> kComparisons[] = {
    {"eq", PtxComparison::Equal},   {"ne", PtxComparison::NotEqual},
    {"lt", PtxComparison::Less},    {"le", PtxComparison::LessOrEqual},
    {"gt", PtxComparison::Greater}, {"ge", PtxComparison::GreaterOrEqual},
    {"lo", PtxComparison::Less},    {"ls", PtxComparison::LessOrEqual},
    {"hi", PtxComparison::Greater}, {"hs", PtxComparison::GreaterOrEqual}};

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_one_of_operations(PtxOperation operation, std::initializer_list<PtxOperation> list) {
  return std::ranges::find(list, operation) != list.end();
}

/// The type of the parts of a wider register.
bool takes_parts(PtxStatement& of, std::size_t count) {
  of.type.bytes /= static_cast<std::int64_t>(count);
  return of.type.bytes > 0 && (count == 2 || count == 4);
}

bool can_compute(const PtxStatement& of) {
  const bool is_general = is_one_of_operations(
      of.operation, {PtxOperation::Move, PtxOperation::Select, PtxOperation::And, PtxOperation::Or,
                     PtxOperation::Xor, PtxOperation::Not});
  if (is_general) return !of.type.is_pair;
  const bool is_for_floats = is_one_of_operations(
      of.operation, {PtxOperation::Add, PtxOperation::Subtract, PtxOperation::Multiply,
                     PtxOperation::Minimum, PtxOperation::Maximum, PtxOperation::Absolute,
                     PtxOperation::Negate, PtxOperation::FusedMultiplyAdd, PtxOperation::PowerOfTwo,
                     PtxOperation::Logarithm, PtxOperation::Reciprocal, PtxOperation::SquareRoot,
                     PtxOperation::ReciprocalRoot, PtxOperation::Tangent});
  const bool is_only_for_floats = is_for_floats && (of.operation >= PtxOperation::PowerOfTwo ||
                                                    of.operation == PtxOperation::Multiply ||
                                                    of.operation == PtxOperation::FusedMultiplyAdd);
  if (of.type.kind == PtxClass::Bfloat || of.type.is_pair) return false;
  if (of.type.kind == PtxClass::Float) return is_for_floats && of.type.bytes >= 4;
  return !is_only_for_floats && of.type.bytes >= 4;
}
bool name_other(PtxStatement& of, WordList words) {
  const auto type = ptx_type(words.back());
  if (type && words.size() > 1 && !words[0].starts_with("vabsdiff")) {
    of.type = *type;
    words.pop_back();
  }
  // The rounding of floats is the usual one. Subnormal numbers stay.
  if (of.type.kind == PtxClass::Float) {
    std::erase_if(words, [](auto word) { return is_one_of(word, {"rn", "ftz"}); });
  }
  const auto* row =
      std::ranges::find(kOperations, fmt::format("{}", fmt::join(words, ".")), &OperationRow::text);
  if (row == std::end(kOperations)) return false;
  of.operation = row->operation;
  if (of.operation == PtxOperation::Move && of.has_groups({1, of.groups.back().size()}) &&
      of.groups[1].size() > 1) {
    of.operation = PtxOperation::Pack;
    return takes_parts(of, of.groups[1].size());
  }
  if (of.operation == PtxOperation::Move && of.groups.size() == 2 && of.groups[0].size() > 1) {
    of.operation = PtxOperation::Unpack;
    return of.groups[1].size() == 1 && takes_parts(of, of.groups[0].size());
  }
  const bool is_single =
      std::ranges::all_of(of.groups, [](auto& each) { return each.size() == 1; });
  if (of.groups.size() != row->operands || !is_single) return false;
  if (of.operation == PtxOperation::BlockBarrier) {
    return of.groups[0][0].kind == PtxKind::Number && of.groups[0][0].value == 0;
  }
  if (of.operation == PtxOperation::AwaitCopies) return of.groups[0][0].kind == PtxKind::Number;
  return can_compute(of);
}

bool name_access(PtxStatement& of, const WordList& words) {
  const bool is_load = words[0] == "ld";
  const auto type = ptx_type(words.back());
  if (!type || type->is_pair || words.size() < 2) return false;
  of.type = *type;
  std::size_t count = 1;
  for (const auto word : WordList(words.begin() + 1, words.end() - 1)) {
    if (is_one_of(word, {"shared", "shared::cta"})) {
      of.detail |= cuda::plain::kPtxShared;
    } else if (word == "volatile") {
      of.detail |= cuda::plain::kPtxVolatile;
    } else if (word == "v2" || word == "v4") {
      count = word == "v2" ? 2 : 4;
    } else if (!is_one_of(word, {"global", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt"}) &&
               !word.starts_with("L1::") && !word.starts_with("L2::")) {
      return false;
    }
  }
  of.operation = is_load ? PtxOperation::Load : PtxOperation::Store;
  return is_load ? of.has_groups({count, 1}) : of.has_groups({1, count});
}

/// cp.async.{ca,cg}.shared.global [to], [from], bytes{, source bytes}
bool name_copy(PtxStatement& of, const WordList& words) {
  if (words.size() < 5 || words[1] != "async" || !is_one_of(words[2], {"ca", "cg"}) ||
      !is_one_of(words[3], {"shared", "shared::cta"}) || words[4] != "global") {
    return false;
  }
  if (!std::all_of(words.begin() + 5, words.end(),
                   [](auto word) { return word.starts_with("L2::"); })) {
    return false;
  }
  if (of.has_groups({1, 1, 1})) of.groups.push_back(of.groups[2]);
  if (!of.has_groups({1, 1, 1, 1}) || of.groups[2][0].kind != PtxKind::Number) return false;
  of.operation = PtxOperation::CopyLate;
  const auto bytes = of.groups[2][0].value;
  return bytes == 16 || (words[2] == "ca" && (bytes == 4 || bytes == 8));
}

/// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {results}, [address]
bool name_matrices(PtxStatement& of, const WordList& words) {
  if (words.size() < 7 || words[1] != "sync" || words[2] != "aligned") return false;
  std::size_t count = 0;
  bool is_shared = false;
  for (const auto word : WordList(words.begin() + 3, words.end() - 1)) {
    if (word == "x1") count = 1;
    if (word == "x2") count = 2;
    if (word == "x4") count = 4;
    if (word == "trans") of.detail = 1;
    if (is_one_of(word, {"shared", "shared::cta"})) is_shared = true;
    if (!is_one_of(word, {"x1", "x2", "x4", "trans", "shared", "shared::cta", "m8n8"})) {
      return false;
    }
  }
  if (words.back() != "b16" || !is_shared || count == 0) return false;
  const bool is_load = words[0] == "ldmatrix";
  of.operation = is_load ? PtxOperation::LoadMatrices : PtxOperation::StoreMatrices;
  return is_load ? of.has_groups({count, 1}) : of.has_groups({1, count});
}

std::optional<PtxElement> element_of(std::string_view word) {
  constexpr std::pair<std::string_view, PtxElement> elements[] = {
      {"f16", PtxElement::Half},   {"bf16", PtxElement::Bfloat},  {"tf32", PtxElement::Tf32},
      {"s8", PtxElement::Signed8}, {"u8", PtxElement::Unsigned8}, {"f64", PtxElement::Double}};
  for (const auto& [text, element] : elements) {
    if (text == word) return element;
  }
  return {};
}

/// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {c}
bool name_product(PtxStatement& of, const WordList& words) {
  if (words.size() != 10 || words[1] != "sync" || words[2] != "aligned" || words[4] != "row" ||
      words[5] != "col" || words[6] != words[9]) {
    return false;
  }
  const auto a = element_of(words[7]), b = element_of(words[8]);
  if (!a || !b) return false;
  const auto sums = words[6];
  PtxShape shape = {0, 8, 0, *a, *b, sums == "f16"};
  struct Row {
    std::string_view text;
    int m, k, bits;
  };
  constexpr Row shapes[] = {{"m16n8k16", 16, 16, 16}, {"m16n8k8", 16, 8, 16},
                            {"m16n8k8", 16, 8, 32},   {"m16n8k4", 16, 4, 32},
                            {"m16n8k32", 16, 32, 8},  {"m16n8k16", 16, 16, 8},
                            {"m8n8k16", 8, 16, 8},    {"m8n8k4", 8, 4, 64}};
  const auto* row = std::ranges::find_if(
      shapes, [&](const Row& each) { return each.text == words[3] && each.bits == shape.bits(); });
  if (row == std::end(shapes)) return false;
  shape.m = row->m;
  shape.k = row->k;
  const bool has_right_sums = row->bits == 8           ? sums == "s32"
                              : row->bits == 64        ? sums == "f64"
                              : *a == PtxElement::Half ? sums == "f16" || sums == "f32"
                                                       : sums == "f32";
  const bool has_right_factors =
      row->bits == 8 ? PtxShape{0, 0, 0, *b, *b, false}.bits() == 8 : a == b;
  if (!has_right_sums || !has_right_factors) return false;
  of.operation = PtxOperation::MultiplyMatrices;
  of.detail = shape.packed();
  const auto registers = [](int count) { return static_cast<std::size_t>(count); };
  return of.has_groups({registers(shape.registers_c()), registers(shape.registers_a()),
                        registers(shape.registers_b()), registers(shape.registers_c())});
}

/// setp.ne.b32 p, a, b
bool name_comparison(PtxStatement& of, const WordList& words) {
  const auto type = ptx_type(words.back());
  if (words.size() != 3 || !type || type->bytes < 4) return false;
  of.type = *type;
  for (const auto& [text, comparison] : kComparisons) {
    if (text != words[1]) continue;
    of.operation = PtxOperation::Compare;
    of.detail = static_cast<std::int64_t>(comparison);
    return of.has_groups({1, 1, 1});
  }
  return false;
}

/// cvt.rn.f16.f32 d, a; cvt.rn.f16x2.f32 d, a, b
bool name_conversion(PtxStatement& of, WordList words) {
  std::erase_if(words, [](auto word) { return is_one_of(word, {"rn", "rna", "ftz"}); });
  if (words.size() != 3) return false;
  const auto to = ptx_type(words[1]), from = ptx_type(words[2]);
  if (!to || !from || from->is_pair) return false;
  const auto is_float = [](const PtxType& each) { return each.kind >= PtxClass::Float; };
  if (is_float(*to) != is_float(*from) && words[1] != "tf32") return false;
  of.operation = words[1] == "tf32" ? PtxOperation::RoundToTf32 : PtxOperation::Convert;
  of.type = *to;
  of.detail = static_cast<std::int64_t>(from->kind) | from->bytes << cuda::plain::kPtxClassBits;
  return to->is_pair ? of.has_groups({1, 1, 1}) : of.has_groups({1, 1});
}

}  // namespace

std::optional<std::int64_t> ptx_integer(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  int base = text.starts_with("0x") || text.starts_with("0X") ? 16 : 10;
  if (text.starts_with("0f") || text.starts_with("0F") || text.starts_with("0d")) base = 16;
  if (base == 16) text.remove_prefix(2);
  if (text.ends_with('U')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size())
    return {};
  return static_cast<std::int64_t>(is_negative ? 0 - value : value);
}

/// "u32", "f16x2".
std::optional<PtxType> ptx_type(std::string_view text) {
  if (text == "pred") return PtxType{1, PtxClass::Unsigned};
  if (text == "bf16") return PtxType{2, PtxClass::Bfloat};
  if (text == "bf16x2") return PtxType{2, PtxClass::Bfloat, true};
  if (text == "f16x2") return PtxType{2, PtxClass::Float, true};
  if (text == "tf32") return PtxType{4, PtxClass::Unsigned};
  if (text.empty() || std::string_view("bsuf").find(text[0]) == text.npos) return {};
  const auto kind = text[0] == 's'   ? PtxClass::Signed
                    : text[0] == 'f' ? PtxClass::Float
                                     : PtxClass::Unsigned;
  const auto bits = ptx_integer(text.substr(1));
  if (!bits || !(*bits == 8 || *bits == 16 || *bits == 32 || *bits == 64)) return {};
  return PtxType{*bits / 8, kind};
}

bool name_ptx(PtxStatement& of, std::string_view name) {
  auto words = split_outside(name, '.', "", "");
  if (words.empty()) return false;
  if (words[0] == "ld" || words[0] == "st") return name_access(of, words);
  if (words[0] == "cp" && words.size() > 2 &&
      !is_one_of(words[2], {"commit_group", "wait_group", "wait_all"})) {
    return name_copy(of, words);
  }
  if (words[0] == "ldmatrix" || words[0] == "stmatrix") return name_matrices(of, words);
  if (words[0] == "mma") return name_product(of, words);
  if (words[0] == "setp") return name_comparison(of, words);
  if (words[0] == "cvt") return name_conversion(of, words);
  return name_other(of, words);
}

}  // namespace triptych::kernels
