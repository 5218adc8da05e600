# Seeded faults of the twin, each of which the co-simulation must find. A mutant is a copy of one
# source or header with one text replaced, linked instead of the original.
#
# add_mutant(<name> <file in systolic/twin> <source compiled with it> <text> <replacement>)
function(add_mutant name file source text replacement)
  file(READ ${PROJECT_SOURCE_DIR}/systolic/twin/${file} original)
  mmu_mutate(${name} systolic/twin/${file} "${original}" "${text}" "${replacement}" mutated)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${PROJECT_SOURCE_DIR}/systolic/twin/${file})
  set(root ${CMAKE_CURRENT_BINARY_DIR}/mutants/${name})
  file(CONFIGURE OUTPUT ${root}/systolic/twin/${file} CONTENT "${mutated}" @ONLY)
  if(file STREQUAL source)
    set(compiled ${root}/systolic/twin/${source})
  else()
    set(compiled ${PROJECT_SOURCE_DIR}/systolic/twin/${source})
  endif()
  add_executable(mmu_mutant_${name} $<TARGET_OBJECTS:mmu_mutant_main> ${compiled})
  target_include_directories(mmu_mutant_${name} BEFORE PRIVATE ${root})
  target_compile_options(mmu_mutant_${name} PRIVATE -O1)
  target_link_libraries(mmu_mutant_${name} PRIVATE triptych_flags mmu_cosim fmt::fmt)
  add_test(NAME mmu_mutant_${name} COMMAND mmu_mutant_${name})
  set_tests_properties(mmu_mutant_${name} PROPERTIES LABELS "systolic;proofs")
  add_dependencies(triptych_proofs_tests mmu_mutant_${name})
endfunction()

add_library(mmu_mutant_main OBJECT mutant.cpp)
target_link_libraries(mmu_mutant_main PRIVATE triptych_flags mmu_cosim)

# time
add_mutant(hazard_a_cycle_early timing.cpp timing.cpp
           "machine_.rows + 2 + matmul" "machine_.rows + 1 + matmul")
add_mutant(in_flight_a_cycle_short timing.cpp timing.cpp "array + 4" "array + 3")
add_mutant(seven_in_flight timing.cpp timing.cpp "kInFlight = 8" "kInFlight = 7")
add_mutant(shadow_free_at_the_swap timing.cpp timing.cpp "swap_ + 1;" "swap_;")
add_mutant(per_column_a_cycle_late timing.cpp timing.cpp
           "swap_ + machine_.rows;" "swap_ + machine_.rows + 1;")
add_mutant(load_token_a_cycle_early timing.cpp timing.cpp
           "slots_over_ + machine_.rows, fillers" "slots_over_ + machine_.rows - 1, fillers")
add_mutant(store_a_cycle_early timing.cpp timing.cpp "cycle + 2 + cycles_per" "cycle + 1 + cycles_per")
add_mutant(queue_room_at_the_pop requests.h timing.cpp
           "ring_[tail_].popped + 1" "ring_[tail_].popped")
add_mutant(fifo_slot_not_skewed timing.cpp timing.cpp
           "moved + machine_.rows + machine_.columns" "moved + machine_.rows")
add_mutant(load_before_store timing.cpp timing.cpp
           "{kWeights, kStore, kOperand, kLoad}" "{kWeights, kLoad, kStore, kOperand}")
add_mutant(no_padding_slots timing.cpp timing.cpp "if (!matmul.transpose) return" "if (true) return")
add_mutant(abutting_values_begin_at_lane_0 functional.cpp functional.cpp
           "matmul.transpose ? next_lane_ : 0" "0")
add_mutant(step_of_other_lanes grid.cpp grid.cpp " && last.lane == lane" "")
add_mutant(stall_of_weights_is_dram timing.cpp timing.cpp
           "stall(Stall::Dram, moved" "stall(Stall::Dram, full")
add_mutant(one_request_less_outstanding requests.h timing.cpp "kLimit = 128" "kLimit = 127")
# values
add_mutant(runs_cross_a_row gather.cpp gather.cpp "lane != 0 && " "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")  # elsewhere the flag does nothing
  add_mutant(subnormals_survive array.cpp array.cpp "0x1F80 | 0x8000 | 0x0040" "0x1F80")
endif()
add_mutant(relu_hides_nan output.cpp output.cpp
           "!(value > 0) && value == value ?" "!(value > 0) ?")
add_mutant(accumulate_ignored_in_remainders functional.cpp functional.cpp
           "part.first_step > 0 || " "")
add_mutant(kept_in_spite_of_a_load activations.cpp activations.cpp "  kept_.clear();\n" "")
add_mutant(columns_of_a_grid_overlap grid.cpp grid.cpp
           "matmul.accumulator >= other.accumulator + matmul.count"
           "matmul.accumulator > other.accumulator")
add_mutant(grid_of_other_positions grid.cpp grid.cpp "a.x == b.x && " "")
add_mutant(step_of_other_columns grid.cpp grid.cpp
           "columns_[column].accumulator == matmul.accumulator &&" "")
add_mutant(chain_of_other_accumulators grid.cpp grid.cpp
           "columns_[0].accumulator != matmul.accumulator ||" "")
add_mutant(keep_swaps functional.cpp functional.cpp "if (!matmul.keep)" "if (!tiles_.empty())")
add_mutant(one_register_written output.cpp output.cpp
           "std::size_t{4} * load.columns" "std::size_t{4}")
add_mutant(narrow_truncates output.cpp output.cpp "to_bf16(value)"
           "static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)")
add_mutant(requantizes_down numerics.h output.cpp "(product + (std::int64_t{1} << (shift - 1)))"
           "(product)")
add_mutant(int8_wraps output.cpp output.cpp "std::clamp(value, -128, 127)" "value")
add_mutant(pool_forgets_nan output.cpp output.cpp "if (value > values[c])" "if (!(value <= values[c]))")
add_mutant(operand_a_cycle_early operand_pipe.h timing.cpp
           "arrivals_[row] + 1" "arrivals_[row]")
add_mutant(operand_a_row_less_ahead operand_pipe.h timing.cpp "kDepth = 64" "kDepth = 63")
add_mutant(residual_is_wide output.cpp output.cpp "if (store.narrow) {" "if (false) {")
add_mutant(residual_wraps numerics.h output.cpp
           "std::clamp(value, std::int64_t{INT32_MIN}, std::int64_t{INT32_MAX})" "value")
add_mutant(mask_of_zeros output.cpp output.cpp "if (values[c] > 0)" "if (values[c] >= 0)")
add_mutant(pools_in_a_cycle timing.cpp timing.cpp
           "stream.presented + cycles_per_position_" "stream.presented + 1")
