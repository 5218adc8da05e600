// Random programs. All draws share one state of the machine that the program has left so far, so
// one file contains them.
// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/generator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "systolic/isa/accesses.h"
#include "tests/systolic/cosim/dice.h"
#include "tests/systolic/cosim/random_vector.h"

namespace triptych::mmu {
namespace {

std::vector<std::byte> random_memory(std::mt19937& random) {
  Dice dice(random);
  // Sane numbers. Numbers with subnormal products, and numbers that overflow.
  const auto [low, high] = dice.among<std::pair<int, int>>({{120, 132}, {52, 72}, {1, 254}});
  const std::uint32_t rarity = dice.among({1000000U, 500U, 5U});
  const std::uint32_t kept = dice.among({0x807FU, 0x807FU, 0x8078U});  // short ones' sums are ties
  constexpr std::array<std::uint16_t, 10> kSpecial{0x0000, 0x8000, 0x0001, 0x807F, 0x7F80,
                                                   0xFF80, 0x7FC1, 0xFFFF, 0x7F7F, 0x0080};
  std::vector<std::byte> memory(kCaseDramBytes);
  for (std::size_t i = 0; i < memory.size(); i += 2) {
    const auto exponent = static_cast<std::uint32_t>(dice.between(low, high));
    auto bits = static_cast<std::uint16_t>((random() & kept) | exponent << 7);
    if (dice.one_in(rarity)) bits = kSpecial[dice.up_to(kSpecial.size() - 1)];
    std::memcpy(memory.data() + i, &bits, sizeof bits);
  }
  return memory;
}

/// Shifts that leave something of a product, most of the time.
void write_shifts(const Program& program, std::mt19937& random, std::vector<std::byte>& memory) {
  Dice dice(random);
  for (const Instruction& instruction : program) {
    if (instruction.opcode() != Opcode::LoadRegisters) continue;
    const auto load = decode<LoadRegisters>(instruction);
    if (load.file + load.more != LoadRegisters::kShift) continue;
    std::byte* shifts = memory.data() + load.address + load.more * load.pitch;
    for (std::uint32_t c = 0; c < load.columns; ++c, shifts += 4) {
      const int shift = dice.one_in(4) ? dice.between(-3, 66) : dice.between(28, 46);
      std::memcpy(shifts, &shift, sizeof shift);
    }
  }
}

/// Draws instructions that are legal after those drawn before.
class ProgramDice {
 public:
  ProgramDice(const MachineConfig& machine, std::mt19937& random)
      : machine_(machine), dice_(random) {
    for (std::uint32_t log2 = 0; log2 <= 8; ++log2)
      if (machine.has_group(log2)) log2_groups_.push_back(log2);
  }

  Program draw() {
    dense_ = dice_.one_in(4);
    wild_ = dice_.one_in(8);
    draw_stream();
    draw_taps();
    draw_output();
    draw_operand();
    draw_registers();
    for (int loads = 0; loads < 3; ++loads) draw_load();
    if (machine_.has_vector_unit()) add(load_all_vectors(machine_, dice_));
    for (int left = dice_.between(1, dice_.one_in(4) ? 80 : 15); left > 0; --left) draw_one();
    if (machine_.has_vector_unit()) program_.push_back(store_all_vectors(machine_, dice_));
    program_.push_back(encode_halt());
    return std::move(program_);
  }

 private:
  void add(Instruction instruction) {
    const unsigned self = 1U << static_cast<int>(find_opcode(instruction.opcode())->unit);
    if (dice_.one_in(8)) instruction.words[0] |= (dice_.up_to(15) & ~self) << 8;
    program_.push_back(instruction);
  }

  void draw_one() {
    if (machine_.has_output_stationary() && dice_.one_in(4)) return draw_chain();
    if (machine_.has_vector_unit() && dice_.one_in(2)) return add(random_vector(machine_, dice_));
    switch (dice_.between(0, dense_ ? 60 : 21)) {
      case 0:
        return draw_stream();
      case 1:
        return draw_taps();
      case 2:
        return dice_.one_in(2) ? draw_output() : draw_operand();
      case 3:
        return draw_registers();
      case 4:
      case 5:
      case 6:
        return draw_load();
      case 7:
      case 8:
      case 9:
      case 10:
        return draw_weights();
      case 11:
      case 12:
      case 13:
        return draw_store();
      case 14:
      case 15:
        return draw_grid();
      default:
        return draw_matmul();
    }
  }

  std::int32_t any_short() { return dice_.between(-32768, 32767); }
  std::int32_t any_word() { return static_cast<std::int32_t>(dice_.up_to(0xFFFFFFFE)); }

  std::uint32_t place(std::uint64_t bytes) {
    return dice_.up_to(static_cast<std::uint32_t>(kCaseDramBytes - bytes));
  }

  /// Most loads and matmuls meet in this many rows of the buffer.
  std::uint32_t window() const { return std::min(machine_.buffer_rows, 32U); }

  std::uint32_t any_group() {
    return log2_groups_[dice_.up_to(static_cast<std::uint32_t>(log2_groups_.size() - 1))];
  }

  void draw_load() {
    Load load;
    load.log2_group = any_group();
    load.units = dice_.size(dice_.one_in(6) ? 90 : 8);
    load.lines = dice_.size(6);
    load.pitch = dice_.up_to(300);
    load.buffer_row =
        dice_.one_in(8) ? dice_.up_to(2 * machine_.buffer_rows) : dice_.up_to(window());
    load.buffer_pitch = dice_.one_in(8) ? dice_.up_to(machine_.buffer_rows) : dice_.up_to(10);
    const std::uint32_t bytes =
        load.units * machine_.group(load.log2_group) * machine_.element_bytes();
    load.address = place(std::uint64_t{load.lines - 1} * load.pitch + bytes);
    add(encode(load));
  }

  void draw_weights() {
    if (tiles_ > machine_.weight_tiles) return draw_matmul();
    add_weights(dice_.size(machine_.rows), dice_.size(machine_.columns));
  }

  void add_weights(std::uint32_t rows, std::uint32_t columns, bool stream = false) {
    ++tiles_;
    WeightLoad load;
    load.stream = stream;
    load.rows = rows;
    load.columns = columns;
    load.pitch = dice_.up_to(200);
    load.address =
        place(std::uint64_t{load.rows - 1} * load.pitch + load.columns * machine_.element_bytes());
    add(encode(load));
  }

  void draw_stream() {
    SetStream set;
    set.in_height = dice_.size(8);
    set.in_width = dice_.size(8);
    set.stride_y = dice_.between(-1, 2);
    set.stride_x = dice_.between(-1, 2);
    set.restart_y = dice_.between(-2, 2);
    set.restart_x = dice_.between(-2, 2);
    set.out_height = dice_.size(6);
    set.out_width = dice_.size(6);
    set.step_x = dice_.between(-3, 6);
    set.wrap_y = dice_.between(-10, 20);
    set.wrap_n = dice_.between(-50, 50);
    if (wild_) {
      set.in_height = dice_.size(65535);
      set.in_width = dice_.size(65535);
      set.stride_y = any_short();
      set.stride_x = any_short();
      set.restart_y = any_short();
      set.restart_x = any_short();
      set.step_x = any_word();
      set.wrap_y = any_word();
      set.wrap_n = any_word();
    }
    add(encode(set));
  }

  void draw_taps() {
    taps_.channels = dice_.size(2 * machine_.rows);
    taps_.kernel_width = dice_.size(4);
    taps_.log2_group = any_group();
    taps_.step_dy = dice_.between(-1, 2);
    taps_.step_dx = dice_.between(-1, 2);
    taps_.restart_dx = dice_.between(-2, 1);
    taps_.jump_x = dice_.between(-4, 4);
    taps_.jump_y = dice_.between(-9, 9);
    if (wild_) {
      taps_.step_dy = any_short();
      taps_.step_dx = any_short();
      taps_.restart_dx = any_short();
      taps_.jump_x = any_word();
      taps_.jump_y = any_word();
    }
    add(encode(taps_));
  }

  void draw_matmul() { add_matmul(any_matmul()); }

  void add_matmul(Matmul matmul) {
    matmul.keep = swapped_ && dice_.one_in(4) != dense_;
    if (!matmul.keep && tiles_ == 0) draw_weights();
    if (!matmul.keep) --tiles_;
    swapped_ = true;
    matmul.transpose |= abuts_;
    matmul.abut = abuts_ = matmul.transpose && matmul.count >= machine_.rows && dice_.one_in(2);
    add(encode(matmul));
  }

  /// Matmuls in parallel and in sequence, as tiles of one large product, some with a slip.
  void draw_grid() {
    if (!drawn_grid_ || dice_.one_in(2)) drawn_grid_ = any_matmul();
    Matmul matmul = *drawn_grid_;  // the same activations again, perhaps of another buffer
    const std::uint32_t columns = 1 + dice_.up_to(3);
    const std::uint32_t steps = 1 + dice_.up_to(2);
    matmul.count = std::min(matmul.count, machine_.accumulator_rows / columns);
    const std::uint32_t width = dice_.size(machine_.columns);
    for (std::uint32_t step = 0; step < steps; ++step) {
      const std::uint32_t rows = dice_.size(machine_.rows);
      for (std::uint32_t column = 0; column < columns; ++column) {
        matmul.accumulator = column * matmul.count;
        Matmul drawn = matmul;
        if (dice_.one_in(step > 0 ? 3 : 8)) drawn.accumulator = dice_.up_to(matmul.accumulator);
        if (dice_.one_in(16)) drawn.x = dice_.between(-2, 4);
        if (dice_.one_in(16)) drawn.accumulate = !drawn.accumulate;
        if (tiles_ == 0) add_weights(rows, dice_.one_in(16) ? 1 : width);
        add_matmul(drawn);
        if (dice_.one_in(16)) return;
      }
      matmul.accumulate = true;
      (matmul.transpose ? matmul.address : matmul.offset) += 1;
    }
  }

  /// An output-stationary chain. Tiles of both kinds share the FIFO in order, so those that wait go
  /// first.
  void draw_chain() {
    while (tiles_ > 0 || abuts_) draw_matmul();
    Matmul matmul = any_matmul();
    matmul.output_stationary = true;
    matmul.count = dice_.size(std::min(machine_.rows, machine_.accumulator_rows));
    matmul.accumulator = dice_.up_to(machine_.accumulator_rows - matmul.count);
    const std::uint32_t columns = dice_.size(machine_.columns), links = dice_.size(5);
    std::uint32_t loaded = 0;
    for (std::uint32_t link = 0; link < links; ++link, --tiles_) {
      while (loaded < links && tiles_ < machine_.weight_tiles && (tiles_ == 0 || dice_.one_in(2))) {
        add_weights(dice_.size(machine_.rows), columns, true);
        ++loaded;
      }
      matmul.accumulate = link > 0;
      matmul.drain = link + 1 == links && !dice_.one_in(8);
      add(encode(matmul));
      matmul.offset += 1;
      if (dice_.one_in(8)) draw_load();
      if (tiles_ == 1 && dice_.one_in(4)) draw_between_links();
    }
  }

  /// The sums of a chain stay in the array while others pass.
  void draw_between_links() {
    tiles_ = 0;
    dice_.one_in(2) ? draw_store() : draw_matmul();
    while (tiles_ > 0 || abuts_) draw_matmul();
    tiles_ = 1;
  }

  /// The remainder of a number of two digits takes more than a table.
  std::uint32_t most_positions() const {
    return 3 * machine_.rows + (std::has_single_bit(machine_.rows) ? 0 : 16);
  }

  Matmul any_matmul() {
    Matmul matmul;
    matmul.accumulate = dice_.one_in(dense_ ? 8 : 2);
    matmul.transpose = dice_.one_in(3);
    const std::uint32_t rows = dice_.one_in(8) ? machine_.buffer_rows : window();
    matmul.address = dice_.between(-8, static_cast<int>(rows));
    matmul.y = dice_.between(-2, 4);
    matmul.x = dice_.between(-2, 4);
    matmul.rows_left = dice_.size(6);
    matmul.columns_left = dice_.size(6);
    matmul.count = dice_.size(dense_ ? 1 : std::min(machine_.accumulator_rows, most_positions()));
    if (dense_ && dice_.one_in(4)) matmul.count = dice_.size(3);
    matmul.accumulator = dice_.up_to(std::min(machine_.accumulator_rows - matmul.count, 8U));
    if (dice_.one_in(4)) matmul.accumulator = dice_.up_to(machine_.accumulator_rows - matmul.count);
    matmul.channel = dice_.up_to(taps_.channels - 1);
    matmul.kernel_x = dice_.up_to(taps_.kernel_width - 1);
    matmul.dy = dice_.between(-2, 2);
    matmul.dx = dice_.between(-2, 2);
    matmul.offset = dice_.between(-3, 5);
    if (wild_) {
      matmul.address = any_word();
      matmul.offset = any_word();
      matmul.y = any_short();
      matmul.x = any_short();
      matmul.dy = any_short();
      matmul.dx = any_short();
    }
    return matmul;
  }

  void draw_output() {
    SetOutput& output = geometry_.output;
    output.out_height = dice_.size(6);
    output.out_width = dice_.size(6);
    output.step_x = dice_.between(0, 80);
    output.wrap_y = dice_.between(-100, 200);
    output.wrap_n = dice_.between(-100, 300);
    output.pool_pitch = dice_.up_to(dice_.one_in(8) ? 65535 : 9);
    output.pool_wrap_y = dice_.up_to(dice_.one_in(8) ? 65535 : 12);
    output.pool_wrap_n = dice_.up_to(dice_.one_in(8) ? 65535 : 12);
    add(encode(output));
  }

  void draw_operand() {
    SetOperand& operand = geometry_.operand;
    operand.step_x = dice_.between(0, 80);
    operand.wrap_y = dice_.between(-100, 200);
    operand.wrap_n = dice_.between(-100, 300);
    add(encode(operand));
  }

  void draw_registers() {
    const std::uint32_t files = machine_.pe == PeKind::Bf16 ? LoadRegisters::kShift : 3;
    std::uint32_t file = dice_.up_to(files - 1);
    while (file < files) {
      LoadRegisters load;
      load.file = file;
      load.more = dice_.up_to(files - 1 - file);
      load.columns = dice_.size(machine_.columns);
      load.pitch = 4 * load.columns + dice_.up_to(60);
      load.address = place(load.more * load.pitch + 4 * load.columns);
      for (; file <= load.file + load.more; ++file)
        loaded_[file] = std::max(loaded_[file], load.columns);
      add(encode(load));
    }
  }

  bool can_scale(std::uint32_t columns) const {
    return columns <= loaded_[LoadRegisters::kMultiplier] &&
           (machine_.pe == PeKind::Bf16 || columns <= loaded_[LoadRegisters::kShift]);
  }

  void draw_store() {
    Store store;
    store.columns = dice_.size(machine_.columns);
    store.bias = store.columns <= loaded_[LoadRegisters::kBias] && dice_.one_in(2);
    store.scale = can_scale(store.columns) && dice_.one_in(2);
    store.relu = dice_.one_in(3);
    store.narrow = dice_.one_in(2);
    store.pool = dice_.one_in(3);
    store.mask = dice_.one_in(4);
    const std::uint32_t most = dice_.one_in(6) ? 80 : 3 * machine_.rows;  // some beyond 64 rows
    store.count = dice_.size(std::min(machine_.accumulator_rows, most));
    store.accumulator = dice_.up_to(std::min(machine_.accumulator_rows - store.count, 8U));
    store.rows_left = dice_.size(6);
    store.columns_left = dice_.size(6);
    switch (dice_.between(0, 4)) {
      case 0:
        store.residual = true;
        break;
      case 1:
        store.select = true;
        break;
      case 2:
        return draw_in_place(store);
      default:
        break;
    }
    place_store(store);
    if (drawn_grid_ && dice_.one_in(4)) return draw_between_matmuls(store);
    if (dice_.one_in(3)) aim_at_buffer(store);
    add(encode(store));
  }

  /// The walk's steps are buffer rows then: any will do.
  void aim_at_buffer(Store& store) {
    store.buffer = store.narrow = true;
    store.mask = false;
    store.log2_group = any_group();
    store.columns = std::min(store.columns, machine_.group(store.log2_group));
    store.address = dice_.one_in(8) ? dice_.up_to(0xFFFFFFFE) : dice_.up_to(window());
  }

  /// Into rows that a matmul before and one after it stream.
  void draw_between_matmuls(Store store) {
    add_matmul(*drawn_grid_);
    aim_at_buffer(store);
    store.address = static_cast<std::uint32_t>(drawn_grid_->address) +
                    static_cast<std::uint32_t>(drawn_grid_->offset) + dice_.up_to(2);
    add(encode(store));
    add_matmul(*drawn_grid_);
  }

  /// Bytes below and above a walk's first position.
  std::pair<std::uint32_t, std::uint32_t> span_of(OutputWalk walk, const Store& store) const {
    std::int32_t low = 0, high = 0;
    for (std::uint32_t m = 0; m < store.count; ++m, walk.next()) {
      low = std::min(low, static_cast<std::int32_t>(walk.address()));
      high = std::max(high, static_cast<std::int32_t>(walk.address()));
    }
    return {-low, static_cast<std::uint32_t>(high) + 4 * store.columns};
  }

  /// The result and the operand side by side, in either order.
  void place_store(Store& store) {
    const auto [below, above] = span_of(OutputWalk(geometry_, store), store);
    const auto [operand_below, operand_above] =
        span_of(OutputWalk::operand(geometry_, store), store);
    const std::uint32_t first = place(below + above + operand_below + operand_above);
    const bool result_first = dice_.one_in(2);
    store.address = first + below + (result_first ? 0 : operand_below + operand_above);
    store.operand = first + operand_below + (result_first ? below + above : 0);
  }

  /// A residual that its result replaces.
  void draw_in_place(Store& store) {
    store.residual = true;
    store.mask = false;
    SetOutput& output = geometry_.output;
    const int bytes = static_cast<int>(4 * store.columns);
    output.step_x = bytes + dice_.between(0, 20);
    output.wrap_y = bytes + dice_.between(0, 99);
    output.wrap_n = bytes + dice_.between(0, 99);
    add(encode(output));
    geometry_.operand = {output.step_x, output.wrap_y, output.wrap_n};
    add(encode(geometry_.operand));
    place_store(store);
    store.operand = store.address;
    add(encode(store));
  }

  const MachineConfig& machine_;
  Dice dice_;
  std::vector<std::uint32_t> log2_groups_;
  Program program_;
  std::uint32_t tiles_ = 0;
  std::array<std::uint32_t, LoadRegisters::kFiles> loaded_{};  ///< registers, by file
  bool swapped_ = false;
  bool abuts_ = false;  ///< the last matmul does, so the next one is transposed
  bool dense_ = false;  ///< mostly short matmuls that keep their weights
  bool wild_ = false;   ///< geometry of any numbers at all
  std::optional<Matmul> drawn_grid_;
  SetTaps taps_;
  StoreGeometry geometry_;
};

}  // namespace

Case random_case(const MachineConfig& machine, std::mt19937& random) {
  Case result{machine, ProgramDice(machine, random).draw(), {}};
  result.dram = random_memory(random);
  write_shifts(result.program, random, result.dram);
  if (machine.has_vector_unit()) write_operands(result.program, random, result.dram);
  return result;
}

}  // namespace triptych::mmu
