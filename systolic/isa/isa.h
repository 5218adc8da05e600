// The instruction set of the MMU: one table of fields, the source of the encoding, the assembler,
// the disassembler, the SystemVerilog package and the manual's tables. docs/reference/mmu.md
// describes the instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::mmu {

/// The four decoupled units. Each executes its instructions in order.
enum class Unit : std::uint8_t { Load, Weights, Compute, Store };
inline constexpr int kUnits = 4;

enum class Opcode : std::uint8_t {
  Halt = 1,           ///< waits until every unit is idle, then ends the program
  Load = 2,           ///< DRAM -> unified buffer
  WeightLoad = 3,     ///< DRAM -> weight FIFO, one tile
  SetStream = 4,      ///< how a matmul walks over output positions
  SetTaps = 5,        ///< how a matmul walks over kernel row, kernel column, channel
  Matmul = 6,         ///< streams activations through the array
  SetOutput = 7,      ///< how a store walks over DRAM or the unified buffer
  LoadRegisters = 8,  ///< DRAM -> registers of the output unit
  Store = 9,          ///< accumulators -> output unit -> DRAM or unified buffer
  SetOperand = 10,    ///< how a store walks over its second operand
  VectorLoad = 11,    ///< DRAM -> vector memory
  VectorStore = 12,   ///< vector memory -> DRAM
  VectorOp = 13,      ///< one operation on rows of the vector memory
};

/// 256 bits. Word 0: opcode in bits 7:0, wait in 11:8, signal in 15:12 (bit u of either stands for
/// Unit u), flags in 31:16. Words 1 to 7: operands.
struct Instruction {
  std::array<std::uint32_t, 8> words{};

  Opcode opcode() const { return static_cast<Opcode>(words[0] & 0xFF); }
  unsigned wait() const { return words[0] >> 8 & 0xF; }
  unsigned signal() const { return words[0] >> 12 & 0xF; }
  bool operator==(const Instruction&) const = default;
};

using Program = std::vector<Instruction>;

/// One operand: bits shift + bits - 1 : shift of a word.
struct Field {
  std::string_view name;
  int word;
  int shift;
  int bits;
  bool is_signed;
  std::string_view meaning;
  std::span<const std::string_view> names = {};  ///< of its numbers from 0 on. Empty: it has none
};

struct OpcodeInfo {
  Opcode opcode;
  std::string_view mnemonic;
  Unit unit;  ///< of Halt: none is meant
  std::span<const Field> fields;
  std::string_view summary;
};

std::span<const OpcodeInfo> opcodes();
/// nullptr: no such opcode.
const OpcodeInfo* find_opcode(Opcode opcode);
std::string_view to_string(Unit unit);

/// The operands of each instruction as numbers. encode() checks that each fits its field and throws
/// std::invalid_argument naming the field.
struct Tokens {
  unsigned wait = 0;    ///< takes one token from each Unit u with bit u set
  unsigned signal = 0;  ///< gives one token to each Unit u with bit u set
};

struct Load {
  std::uint32_t address = 0;  ///< bytes in DRAM
  std::uint32_t pitch = 0;    ///< bytes from one line to the next
  std::uint32_t buffer_row = 0;
  std::uint32_t buffer_pitch = 0;  ///< buffer rows from one line to the next
  std::uint32_t units = 0;         ///< buffer rows per line. Each holds one group of a line
  std::uint32_t lines = 0;
  std::uint32_t log2_group = 0;  ///< lane r receives element r mod g of the unit's group, of g
};

struct WeightLoad {
  std::uint32_t address = 0;
  std::uint32_t pitch = 0;  ///< bytes from one row of the tile to the next
  std::uint32_t rows = 0;   ///< 1 .. array rows
  std::uint32_t columns = 0;
  bool stream = false;  ///< an output-stationary matmul streams the tile. No matmul swaps it in
};

struct SetStream {
  std::uint32_t in_height = 0, in_width = 0;
  std::int32_t stride_y = 0, stride_x = 0;    ///< input rows / columns per output row / column
  std::int32_t restart_y = 0, restart_x = 0;  ///< input row of an image's, column of a row's first
  std::uint32_t out_height = 0, out_width = 0;
  std::int32_t step_x = 0;  ///< buffer rows from one position to the next of an output row
  std::int32_t wrap_y = 0;  ///< from the last position of an output row to the next row's first
  std::int32_t wrap_n = 0;  ///< from the last position of an image to the next image's first
};

struct SetTaps {
  std::uint32_t channels = 0, kernel_width = 0;
  std::uint32_t log2_group = 0;
  std::int32_t step_dy = 0, step_dx = 0;  ///< input rows / columns per kernel row / column
  std::int32_t restart_dx = 0;            ///< dx of a kernel row's first tap
  std::int32_t jump_x = 0;  ///< offset change from a tap's last channel to the next tap's first
  std::int32_t jump_y = 0;  ///< the same from a kernel row's last tap to the next row's first
};

struct Matmul {
  bool accumulate = false;  ///< chain on to the accumulators, otherwise start from zero
  bool keep = false;        ///< continue with the active weights, otherwise swap in the next tile
  bool transpose = false;   ///< stream over taps and channels, positions along the array rows
  bool abut = false;        ///< transposed: the next one's values follow without a gap
  /// Sums stay in the PEs: the array's rows are the first `count` results, and the rows of the next
  /// tile are the values (transposed) or positions of the chain.
  bool output_stationary = false;
  bool drain = false;         ///< output-stationary: the sums move to the accumulators afterwards
  std::int32_t address = 0;   ///< buffer row of the first position, before the tap's offset
  std::int32_t y = 0, x = 0;  ///< its input row and column
  std::uint32_t rows_left = 0, columns_left = 0;  ///< output rows to the image's end, columns to
                                                  ///< the row's end, this one included
  std::uint32_t count = 0;                        ///< positions streamed
  std::uint32_t accumulator = 0;                  ///< accumulator row of the first
  std::uint32_t channel = 0, kernel_x = 0;        ///< of k's first value
  std::int32_t dy = 0, dx = 0, offset = 0;        ///< its tap
};

struct SetOutput {
  std::uint32_t out_height = 0, out_width = 0;
  std::int32_t step_x = 0, wrap_y = 0,
               wrap_n = 0;  ///< bytes in DRAM or buffer rows, as SetStream's
  /// Accumulator rows of stores that pool: from one row of the image to the next, and from the last
  /// position of a pooled row to the next row's first, or of an image to the next image's first.
  std::uint32_t pool_pitch = 0, pool_wrap_y = 0, pool_wrap_n = 0;
};

struct LoadRegisters {
  static constexpr std::uint32_t kBias = 0, kMultiplier = 1, kShift = 2, kFiles = 3;
  std::uint32_t file = kBias;  ///< one of the above
  std::uint32_t more = 0;      ///< files after that one
  std::uint32_t address = 0;
  std::uint32_t columns = 0;
  std::uint32_t pitch = 0;  ///< bytes from one file's to the next one's
};

struct Store {
  bool bias = false;
  bool relu = false;
  bool narrow = false;        ///< to bf16 or int8, otherwise f32 or int32
  bool scale = false;         ///< times the multiplier registers (int8 machines: requantise)
  bool pool = false;          ///< each position is the largest of four
  bool mask = false;          ///< a bit per value, x > 0, instead of the values
  bool residual = false;      ///< add the operand: values in the format of the result
  bool select = false;        ///< the operand is a mask: +0 where its bit is 0
  bool buffer = false;        ///< to the unified buffer: rows of it in the place of DRAM's bytes
  std::uint32_t address = 0;  ///< bytes in DRAM or a buffer row
  std::uint32_t count = 0, accumulator = 0;
  std::uint32_t rows_left = 0, columns_left = 0;
  std::uint32_t columns = 0;
  std::uint32_t log2_group = 0;  ///< of a store to the buffer: as Load's
  std::uint32_t operand = 0;     ///< bytes in DRAM, of the first position
};

struct SetOperand {
  std::int32_t step_x = 0, wrap_y = 0, wrap_n = 0;  ///< bytes in DRAM, as SetOutput's
};

/// Rows of the vector memory are modulo its number of rows.
struct VectorLoad {
  bool narrow = false;        ///< from bf16, otherwise from f32
  std::uint32_t address = 0;  ///< bytes in DRAM, of the first row
  std::uint32_t pitch = 0;    ///< bytes from one row to the next
  std::uint32_t row = 0;      ///< the first one in the vector memory
  std::uint32_t count = 0;
  std::uint32_t columns = 0;  ///< lanes from there on become +0
};

struct VectorStore {
  bool narrow = false;        ///< to bf16, otherwise to f32
  std::uint32_t address = 0;  ///< bytes in DRAM, of the first row
  std::uint32_t pitch = 0;
  std::uint32_t row = 0;
  std::uint32_t count = 0;
  std::uint32_t columns = 0;
};

struct VectorOp {
  bool accumulators = false;    ///< operand a consists of rows of the accumulators
  bool constant = false;        ///< operand b is `scalar` in every lane
  std::uint32_t operation = 0;  ///< a VectorOperation
  std::uint32_t destination = 0, a = 0, b = 0, c = 0;         ///< first rows
  std::int32_t step = 0, a_step = 0, b_step = 0, c_step = 0;  ///< from one row to the next
  std::uint32_t count = 0;
  std::uint32_t scalar = 0;  ///< bits of a constant, or the number of a lane
};

Instruction encode_halt();
Instruction encode(const Load& load, Tokens tokens = {});
Instruction encode(const WeightLoad& load, Tokens tokens = {});
Instruction encode(const SetStream& set, Tokens tokens = {});
Instruction encode(const SetTaps& set, Tokens tokens = {});
Instruction encode(const Matmul& matmul, Tokens tokens = {});
Instruction encode(const SetOutput& set, Tokens tokens = {});
Instruction encode(const LoadRegisters& load, Tokens tokens = {});
Instruction encode(const Store& store, Tokens tokens = {});
Instruction encode(const SetOperand& set, Tokens tokens = {});
Instruction encode(const VectorLoad& load, Tokens tokens = {});
Instruction encode(const VectorStore& store, Tokens tokens = {});
Instruction encode(const VectorOp& op, Tokens tokens = {});

/// The operands of an instruction with T's opcode.
template <class T>
T decode(const Instruction& instruction);

/// "matmul wait=load signal=store accumulate=1 address=12 ...": fields that are zero are left out.
std::string disassemble(const Instruction& instruction);
/// The inverse. Throws std::invalid_argument with the line's problem.
Instruction assemble(std::string_view line);
/// The program of read_listing (systolic/isa/listing.h).
Program assemble_program(std::string_view text);

}  // namespace triptych::mmu
