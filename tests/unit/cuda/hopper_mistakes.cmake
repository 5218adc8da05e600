# Plants mistakes in the product of Hopper, one each: a copy of kernels/hopper_gemm.cuh and
# hopper_matmul.cu in which one place is replaced, in a namespace of its own. A place that is not
# there exactly once ends the configuration: whoever changes the kernel changes the mistake.
# SPDX-License-Identifier: Apache-2.0
set(kernel_folder ${PROJECT_SOURCE_DIR}/backends/cuda/kernels)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${kernel_folder}/hopper_gemm.cuh ${kernel_folder}/hopper_matmul.cu)
file(READ ${kernel_folder}/hopper_gemm.cuh product)
file(READ ${kernel_folder}/hopper_matmul.cu matmul)
string(REPLACE "#pragma once" "" product "${product}")
string(REPLACE "#include \"backends/cuda/kernels/hopper_gemm.cuh\"" "" matmul "${matmul}")
# #line: faults name the lines of the kernel.
set(kernel_text "#line 1 \"backends/cuda/kernels/hopper_gemm.cuh\"
${product}
#line 1 \"backends/cuda/kernels/hopper_matmul.cu\"
${matmul}")
set(planted "// Generated from hopper_mistakes.cmake.
")
set(entries)

function(plant name right wrong)
  string(FIND "${kernel_text}" "${right}" first)
  string(FIND "${kernel_text}" "${right}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "hopper_mistakes.cmake: the place of ${name} is not in the kernel exactly "
      "once:\n${right}")
  endif()
  string(REPLACE "${right}" "${wrong}" text "${kernel_text}")
  string(REPLACE "namespace triptych::cuda::TRIPTYCH_PLATFORM {"
    "namespace triptych::cuda::TRIPTYCH_PLATFORM::${name} {" text "${text}")
  string(REPLACE "\"hopper\"" "\"${name}\"" text "${text}")
  set(planted "${planted}\n${text}\n" PARENT_SCOPE)
  set(entries "${entries}  ${name}::add_hopper_matmul_kernels(list);\n" PARENT_SCOPE)
endfunction()

plant(none "/// Grid: as many blocks as the GPU" "/// Grid: as many blocks as the GPU")

# Who waits for whom.
plant(stage_released_early "      if (before >= 0) tiles.empty[before].arrive_warpgroup();
      before = place.stage;"
  "      tiles.empty[place.stage].arrive_warpgroup();\n")
plant(stage_never_released "    if (before >= 0) tiles.empty[before].arrive_warpgroup();
    store_sums" "\n    store_sums")
plant(no_wait_for_full "tiles.full[place.stage].wait(place.parity);" "")
plant(no_wait_for_empty "tiles.empty[place.stage].wait(place.parity ^ 1U);" "")
plant(wrong_parity_of_full "full[place.stage].wait(place.parity)"
  "full[place.stage].wait(place.parity ^ 1U)")
plant(wrong_parity_of_empty "wait(place.parity ^ 1U)" "wait(place.parity)")
plant(parity_never_flips "if (stage == 0) parity ^= 1U;" "")
plant(ring_begins_anew_with_each_tile "    int before = -1;" "    place = {}; int before = -1;")
plant(too_few_arrivals "begin_warpgroups(Tiles::kConsumers)" "begin_warpgroups(1)")
plant(too_many_arrivals "begin_warpgroups(Tiles::kConsumers)" "begin_warpgroups(3)")
plant(barriers_not_published "publish_barriers();" "")
plant(no_barrier_behind_begin "  __syncthreads();" "")

# Copies.
plant(too_few_bytes_expected "(kRows + kColumns) * kDepth * 2" "kRows * kDepth * 2")
plant(too_many_bytes_expected "(kRows + kColumns) * kDepth * 2" "(kRows + kColumns) * kDepth * 4")
plant(copy_into_the_first_stage "load_box(tiles.b, stage * HopperTiles::kColumns"
  "load_box(tiles.b, 0")
plant(copy_missing
  "    load_box(tiles.a, stage * HopperTiles::kRows, left, k, tile.left_row, full);" "")
plant(rows_of_no_multiple_of_16_bytes "matrices_.rows(0), sizes.k,"
  "matrices_.rows(0), sizes.k - 1,")
plant(box_of_too_many_rows " HopperTiles::kColumns)," " 2 * HopperTiles::kColumns),")

# Products.
plant(no_fence "fence_products(sums);" "")
plant(no_commit "commit_products(sums);" "")
plant(no_wait_for_products "wait_products<1>(sums);" "")
plant(wait_for_one_group_less "wait_products<1>(sums);" "wait_products<2>(sums);")
plant(no_last_wait "wait_products<0>(sums);" "")
plant(sums_read_before_the_wait "    wait_products<0>(sums);
    if (before >= 0) tiles.empty[before].arrive_warpgroup();
    store_sums(problem, number, consumer, sums);"
  "    store_sums(problem, number, consumer, sums);
    wait_products<0>(sums);
    if (before >= 0) tiles.empty[before].arrive_warpgroup();")
plant(sums_kept_for_the_next_tile
  "  for (std::int64_t number = blockIdx.x; number < count; number += gridDim.x) {
    WarpgroupSums sums[2];"
  "  WarpgroupSums sums[2];
  for (std::int64_t number = blockIdx.x; number < count; number += gridDim.x) {")
plant(descriptor_off_by_a_row "stage * kColumns + part"
  "1 + stage * kColumns + part")
plant(descriptor_off_by_a_swizzle "stage * kRows + consumer"
  "8 + stage * kRows + consumer")
plant(operands_of_two_stages "stage * kColumns + part"
  "(stage + 1) % 4 * kColumns + part")

# Warpgroups and blocks.
plant(lanes_start_different_products "kColumns + part * WarpgroupSums::kColumns);"
  "kColumns + (part ^ static_cast<int>(threadIdx.x & 1)) * WarpgroupSums::kColumns);")
plant(registers_not_left "leave_registers<40>();" "")
plant(both_warpgroups_the_same_rows "consume(tiles, problem, count, warpgroup - 1);"
  "consume(tiles, problem, count, 0);")
plant(blocks_store_the_same_tile "store_sums(problem, number, "
  "store_sums(problem, number / 2 * 2, ")
plant(steps_without_end
  "    return static_cast<int>((sizes.k + HopperTiles::kDepth - 1) / HopperTiles::kDepth);"
  "    return 1 << 24;")
file(CONFIGURE OUTPUT hopper_mistakes.cpp CONTENT "${planted}
namespace triptych::cuda::counted {
std::vector<KernelEntry> hopper_mistakes() {
  KernelList list(90);
${entries}  const auto table = list.table();
  return {table.begin(), table.end()};
}
}  // namespace triptych::cuda::counted
" @ONLY)
set(emulation_flags -Wno-unknown-pragmas)  # as backends/cuda compiles the kernels
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND emulation_flags -march=x86-64-v3)
endif()
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/hopper_mistakes.cpp PROPERTIES
  COMPILE_DEFINITIONS TRIPTYCH_COUNTED COMPILE_OPTIONS "${emulation_flags}"
  SKIP_PRECOMPILE_HEADERS ON)
