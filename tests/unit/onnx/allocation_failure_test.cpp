// Memory that ends at any moment: each allocation of a load, an import, a plan and a step is made
// to fail in turn. What was asked for ends with an exception, and the next try works. In an
// executable of its own, as it replaces operator new.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>

#include "backends/all_backends.h"
#include "core/graph/passes/passes.h"
#include "core/io/checkpoint.h"
#include "core/io/npy.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/onnx/trainable.h"
#include "core/runtime/executor.h"
#include "tests/unit/onnx/samples.h"

namespace {

/// Allocations of this thread that still succeed; below 0: all do.
thread_local std::int64_t allowed = -1;

bool refused() {
  if (allowed < 0) return false;
  if (allowed == 0) return true;
  --allowed;
  return false;
}

void* aligned(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}

}  // namespace

// Never inlined, or g++ takes the pairs for mismatched.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return refused() ? nullptr : std::malloc(size);
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  if (void* memory = refused() ? nullptr : aligned(size, alignment)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace triptych {
namespace {

constexpr std::int64_t kMostPoints = 20000;

/// Runs `work` with its n-th allocation failing, for every n up to the first with which it
/// succeeds, which is returned; `step` leaves some out.
std::int64_t fail_each(const std::function<void()>& work, std::int64_t step = 1) {
  work();  // what is kept for good is there
  for (std::int64_t n = 0; n < kMostPoints; n += step) {
    allowed = n;
    bool succeeded = false;
    try {
      work();
      succeeded = allowed > 0;
    } catch (const std::exception&) {  // of the allocation, or what was made of it
    }
    allowed = -1;
    if (succeeded) return n;
  }
  ADD_FAILURE() << "it did not succeed with " << kMostPoints << " allocations";
  return 0;
}

TEST(AllocationFailure, of_a_load_is_an_exception) {
  const test::TemporaryFolder folder;
  const Tensor tensor(Shape{3}, std::vector<float>{1, 2, 3});
  save_npy(folder / "x.npy", tensor);
  TensorMap tensors;
  tensors.emplace("w", tensor.clone());
  save_checkpoint(folder / "c", tensors, {.step = 1});
  test::image_sample().save(folder / "m.onnx");
  EXPECT_GT(fail_each([&] { load_npy(folder / "x.npy"); }), 3);
  EXPECT_GT(fail_each([&] { load_checkpoint(folder / "c"); }), 20);
  EXPECT_GT(fail_each([&] { onnx::load_model(folder / "m.onnx"); }), 50);
  EXPECT_GT(fail_each([&] { save_checkpoint(folder / "c", tensors, {.step = 2}); }), 20);
  EXPECT_EQ(load_checkpoint(folder / "c").info.step, 2);
}

TEST(AllocationFailure, of_an_import_a_plan_and_a_run_is_an_exception) {
  const test::TemporaryFolder folder;
  const auto model = onnx::load_model(test::image_sample().save(folder / "m.onnx"));
  EXPECT_GT(fail_each([&] { onnx::import_model(model); }), 50);
  EXPECT_GT(fail_each([&] { onnx::make_trainable(model); }), 20);
  const auto device = open_device("cpu", {.threads = 1});
  const auto graph = onnx::import_model(model).graph;
  const auto run = [&] {
    auto plan = make_plan(optimize(graph.clone(), {.inference = true}), {device.get()});
    StateStore states(*device);
    Executor executor(std::move(plan), states);
    executor.run();
  };
  EXPECT_GT(fail_each(run, 3), 50);
}

}  // namespace
}  // namespace triptych
