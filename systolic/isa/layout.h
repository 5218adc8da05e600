// The one table of operands: where each member of an instruction's struct lies in the 256 bits.
// Encoding, decoding, assembler, disassembler, SystemVerilog package and manual are made from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "systolic/isa/isa.h"
#include "systolic/isa/vector_operations.h"

namespace triptych::mmu {

/// A field and the struct's member that holds its number.
template <class T>
struct FieldMember {
  Field field;
  std::variant<std::uint32_t T::*, std::int32_t T::*, bool T::*> member;
};

template <class T>
constexpr FieldMember<T> operand(std::uint32_t T::*member, std::string_view name, int word,
                                 int shift, int bits, std::string_view meaning) {
  return {{name, word, shift, bits, false, meaning}, member};
}
template <class T>
constexpr FieldMember<T> operand(std::int32_t T::*member, std::string_view name, int word,
                                 int shift, int bits, std::string_view meaning) {
  return {{name, word, shift, bits, true, meaning}, member};
}
template <class T>
constexpr FieldMember<T> choice(std::uint32_t T::*member, std::string_view name, int word,
                                int shift, int bits, std::span<const std::string_view> names,
                                std::string_view meaning) {
  return {{name, word, shift, bits, false, meaning, names}, member};
}
template <class T>
constexpr FieldMember<T> flag(bool T::*member, std::string_view name, int shift,
                              std::string_view meaning) {
  return {{name, 0, shift, 1, false, meaning}, member};
}

template <class T>
struct Layout;

template <>
struct Layout<Load> {
  static constexpr Opcode kOpcode = Opcode::Load;
  static constexpr std::array kOperands{
      operand(&Load::address, "address", 1, 0, 32, "DRAM byte address of the first line"),
      operand(&Load::pitch, "pitch", 2, 0, 32, "bytes from one line to the next"),
      operand(&Load::buffer_row, "buffer_row", 3, 0, 32, "buffer row of the first line"),
      operand(&Load::buffer_pitch, "buffer_pitch", 4, 0, 32, "buffer rows from line to line"),
      operand(&Load::units, "units", 5, 0, 32, "buffer rows per line, one group each"),
      operand(&Load::lines, "lines", 6, 0, 32, "number of lines"),
      operand(&Load::log2_group, "log2_group", 7, 0, 4,
              "log2 of the group g: lane r gets element r mod g")};
};

template <>
struct Layout<WeightLoad> {
  static constexpr Opcode kOpcode = Opcode::WeightLoad;
  static constexpr std::array kOperands{
      flag(&WeightLoad::stream, "stream", 16, "the tile is for an output-stationary matmul"),
      operand(&WeightLoad::address, "address", 1, 0, 32, "DRAM byte address of the top row"),
      operand(&WeightLoad::pitch, "pitch", 2, 0, 32, "bytes from one row to the next"),
      operand(&WeightLoad::rows, "rows", 3, 0, 16, "rows of the tile, 1 to R"),
      operand(&WeightLoad::columns, "columns", 3, 16, 16, "columns of the tile, 1 to C")};
};

template <>
struct Layout<SetStream> {
  static constexpr Opcode kOpcode = Opcode::SetStream;
  static constexpr std::array kOperands{
      operand(&SetStream::in_height, "in_height", 1, 0, 16, "input rows"),
      operand(&SetStream::in_width, "in_width", 1, 16, 16, "input columns"),
      operand(&SetStream::stride_y, "stride_y", 2, 0, 16, "input rows per output row"),
      operand(&SetStream::stride_x, "stride_x", 2, 16, 16, "input columns per output column"),
      operand(&SetStream::restart_y, "restart_y", 3, 0, 16, "input row of an image's first"),
      operand(&SetStream::restart_x, "restart_x", 3, 16, 16, "input column of a row's first"),
      operand(&SetStream::out_height, "out_height", 4, 0, 16, "output rows"),
      operand(&SetStream::out_width, "out_width", 4, 16, 16, "output columns"),
      operand(&SetStream::step_x, "step_x", 5, 0, 32, "buffer rows to the next position"),
      operand(&SetStream::wrap_y, "wrap_y", 6, 0, 32, "buffer rows to the next output row"),
      operand(&SetStream::wrap_n, "wrap_n", 7, 0, 32, "buffer rows to the next image")};
};

template <>
struct Layout<SetTaps> {
  static constexpr Opcode kOpcode = Opcode::SetTaps;
  static constexpr std::array kOperands{
      operand(&SetTaps::channels, "channels", 1, 0, 16, "values per tap"),
      operand(&SetTaps::kernel_width, "kernel_width", 1, 16, 16, "taps per kernel row"),
      operand(&SetTaps::step_dy, "step_dy", 2, 0, 16, "input rows per kernel row"),
      operand(&SetTaps::step_dx, "step_dx", 2, 16, 16, "input columns per kernel column"),
      operand(&SetTaps::restart_dx, "restart_dx", 3, 0, 16, "dx of a kernel row's first tap"),
      operand(&SetTaps::log2_group, "log2_group", 3, 16, 4, "log2 of the group g"),
      operand(&SetTaps::jump_x, "jump_x", 4, 0, 32, "offset change to the next tap"),
      operand(&SetTaps::jump_y, "jump_y", 5, 0, 32, "offset change to the next kernel row")};
};

template <>
struct Layout<Matmul> {
  static constexpr Opcode kOpcode = Opcode::Matmul;
  static constexpr std::array kOperands{
      flag(&Matmul::accumulate, "accumulate", 16, "chain on to the accumulators"),
      flag(&Matmul::keep, "keep", 17, "go on with the active weights"),
      flag(&Matmul::transpose, "transpose", 18, "positions along the array rows"),
      flag(&Matmul::abut, "abut", 19, "transposed: the next one's values follow at once"),
      flag(&Matmul::output_stationary, "output_stationary", 20, "sums stay, a tile streams"),
      flag(&Matmul::drain, "drain", 21, "output-stationary: sums move to the accumulators"),
      operand(&Matmul::address, "address", 1, 0, 32, "buffer row of the first position"),
      operand(&Matmul::offset, "offset", 2, 0, 32, "buffer rows from position to first tap"),
      operand(&Matmul::y, "y", 3, 0, 16, "input row of the first position"),
      operand(&Matmul::x, "x", 3, 16, 16, "its input column"),
      operand(&Matmul::rows_left, "rows_left", 4, 0, 16, "output rows to the image's end"),
      operand(&Matmul::columns_left, "columns_left", 4, 16, 16, "columns to the row's end"),
      operand(&Matmul::dy, "dy", 5, 0, 16, "input rows from position to first tap"),
      operand(&Matmul::dx, "dx", 5, 16, 16, "input columns from position to first tap"),
      operand(&Matmul::count, "count", 6, 0, 16, "positions (transposed: values) streamed"),
      operand(&Matmul::accumulator, "accumulator", 6, 16, 16, "first accumulator row"),
      operand(&Matmul::channel, "channel", 7, 0, 16, "channel of the first value"),
      operand(&Matmul::kernel_x, "kernel_x", 7, 16, 16, "kernel column of the first value")};
};

template <>
struct Layout<SetOutput> {
  static constexpr Opcode kOpcode = Opcode::SetOutput;
  static constexpr std::array kOperands{
      operand(&SetOutput::out_height, "out_height", 1, 0, 16, "output rows"),
      operand(&SetOutput::out_width, "out_width", 1, 16, 16, "output columns"),
      operand(&SetOutput::step_x, "step_x", 2, 0, 32, "bytes (buffer rows) to the next position"),
      operand(&SetOutput::wrap_y, "wrap_y", 3, 0, 32, "bytes (rows) to the next output row"),
      operand(&SetOutput::wrap_n, "wrap_n", 4, 0, 32, "bytes (rows) to the next image"),
      operand(&SetOutput::pool_pitch, "pool_pitch", 5, 0, 16,
              "accumulator rows to the row below, for pools"),
      operand(&SetOutput::pool_wrap_y, "pool_wrap_y", 6, 0, 16,
              "accumulator rows to the next pooled row"),
      operand(&SetOutput::pool_wrap_n, "pool_wrap_n", 6, 16, 16,
              "accumulator rows to the next pooled image")};
};

template <>
struct Layout<LoadRegisters> {
  static constexpr Opcode kOpcode = Opcode::LoadRegisters;
  static constexpr std::array kOperands{
      operand(&LoadRegisters::address, "address", 1, 0, 32, "DRAM byte address"),
      operand(&LoadRegisters::columns, "columns", 2, 0, 16, "registers written, 1 to C"),
      operand(&LoadRegisters::file, "file", 2, 16, 2, "0: bias, 1: multiplier, 2: shift"),
      operand(&LoadRegisters::more, "more", 2, 18, 2, "files written after that one"),
      operand(&LoadRegisters::pitch, "pitch", 3, 0, 32, "bytes from one file's to the next one's")};
};

template <>
struct Layout<Store> {
  static constexpr Opcode kOpcode = Opcode::Store;
  static constexpr std::array kOperands{
      flag(&Store::bias, "bias", 16, "add the bias registers"),
      flag(&Store::relu, "relu", 17, "x > 0 ? x : +0"),
      flag(&Store::narrow, "narrow", 18, "round to bf16, or cut to int8"),
      flag(&Store::scale, "scale", 19, "multiply by the multiplier registers, or requantise"),
      flag(&Store::pool, "pool", 20, "the largest of 2 x 2 positions"),
      flag(&Store::mask, "mask", 21, "write a bit per value: x > 0"),
      flag(&Store::residual, "residual", 22, "add the operand"),
      flag(&Store::select, "select", 23, "+0 where the operand's bit is 0"),
      flag(&Store::buffer, "buffer", 24, "to the unified buffer, not to DRAM"),
      operand(&Store::address, "address", 1, 0, 32, "DRAM byte (buffer row) of the first position"),
      operand(&Store::count, "count", 2, 0, 16, "positions stored"),
      operand(&Store::accumulator, "accumulator", 2, 16, 16, "first accumulator row"),
      operand(&Store::rows_left, "rows_left", 3, 0, 16, "output rows to the image's end"),
      operand(&Store::columns_left, "columns_left", 3, 16, 16, "columns to the row's end"),
      operand(&Store::columns, "columns", 4, 0, 16, "values per position, 1 to C"),
      operand(&Store::log2_group, "log2_group", 4, 16, 4,
              "to the buffer: log2 of the group g: lane r gets value r mod g"),
      operand(&Store::operand, "operand", 5, 0, 32, "DRAM byte address of the operand's first")};
};

template <>
struct Layout<SetOperand> {
  static constexpr Opcode kOpcode = Opcode::SetOperand;
  static constexpr std::array kOperands{
      operand(&SetOperand::step_x, "step_x", 1, 0, 32, "bytes to the next position"),
      operand(&SetOperand::wrap_y, "wrap_y", 2, 0, 32, "bytes to the next output row"),
      operand(&SetOperand::wrap_n, "wrap_n", 3, 0, 32, "bytes to the next image")};
};

template <>
struct Layout<VectorLoad> {
  static constexpr Opcode kOpcode = Opcode::VectorLoad;
  static constexpr std::array kOperands{
      flag(&VectorLoad::narrow, "narrow", 16, "bf16 in DRAM, not binary32"),
      operand(&VectorLoad::address, "address", 1, 0, 32, "DRAM byte address of the first row"),
      operand(&VectorLoad::pitch, "pitch", 2, 0, 32, "bytes from one row to the next"),
      operand(&VectorLoad::row, "row", 3, 0, 16, "first row of the vector memory"),
      operand(&VectorLoad::count, "count", 3, 16, 16, "rows loaded"),
      operand(&VectorLoad::columns, "columns", 4, 0, 16, "values per row, 1 to C")};
};

template <>
struct Layout<VectorStore> {
  static constexpr Opcode kOpcode = Opcode::VectorStore;
  static constexpr std::array kOperands{
      flag(&VectorStore::narrow, "narrow", 16, "round to bf16"),
      operand(&VectorStore::address, "address", 1, 0, 32, "DRAM byte address of the first row"),
      operand(&VectorStore::pitch, "pitch", 2, 0, 32, "bytes from one row to the next"),
      operand(&VectorStore::row, "row", 3, 0, 16, "first row of the vector memory"),
      operand(&VectorStore::count, "count", 3, 16, 16, "rows stored"),
      operand(&VectorStore::columns, "columns", 4, 0, 16, "values per row, 1 to C")};
};

template <>
struct Layout<VectorOp> {
  static constexpr Opcode kOpcode = Opcode::VectorOp;
  static constexpr std::array kOperands{
      flag(&VectorOp::accumulators, "accumulators", 16, "a is in the accumulators"),
      flag(&VectorOp::constant, "constant", 17, "b is the scalar in every lane"),
      operand(&VectorOp::destination, "destination", 1, 0, 16, "first row of the result"),
      operand(&VectorOp::step, "step", 1, 16, 16, "rows to the next row of the result"),
      operand(&VectorOp::a, "a", 2, 0, 16, "first row of operand a"),
      operand(&VectorOp::a_step, "a_step", 2, 16, 16, "rows to its next one"),
      operand(&VectorOp::b, "b", 3, 0, 16, "first row of operand b"),
      operand(&VectorOp::b_step, "b_step", 3, 16, 16, "rows to its next one"),
      operand(&VectorOp::c, "c", 4, 0, 16, "first row of operand c"),
      operand(&VectorOp::c_step, "c_step", 4, 16, 16, "rows to its next one"),
      operand(&VectorOp::count, "count", 5, 0, 16, "rows of the result"),
      choice(&VectorOp::operation, "operation", 5, 16, 5, kVectorOperationNames,
             "the operation, by name or number"),
      operand(&VectorOp::scalar, "scalar", 6, 0, 32, "bits of a constant, or a lane's number")};
};

}  // namespace triptych::mmu
