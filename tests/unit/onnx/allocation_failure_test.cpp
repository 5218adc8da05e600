// Memory that ends at any moment: each allocation of a load, an import, a plan and a step is made
// to fail in turn. A failed request ends with an exception, and the next try works. In an
// executable of its own, as it replaces operator new.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>

#include "backends/all_backends.h"
#include "core/base/folder.h"
#include "core/graph/passes/passes.h"
#include "core/io/checkpoint.h"
#include "core/io/npy.h"
#include "core/io/output_ledger.h"
#include "core/io/temporary_folder.h"
#include "core/nn/training_graph.h"
#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "core/onnx/trainable.h"
#include "core/runtime/executor.h"
#include "tests/unit/onnx/samples.h"

namespace {

/// Allocations of this thread that still succeed. Below 0: all do.
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

/// protobuf loses its parsed content when an allocation fails: docs/decisions/0068.
extern "C" const char* __lsan_default_suppressions() { return "leak:google::protobuf::"; }

namespace triptych {
namespace {

constexpr std::int64_t kMostPoints = 20000;

/// Runs `work` with its n-th allocation failing, for every n up to the first with which it
/// succeeds, which is returned. `step` leaves some out.
std::int64_t fail_each(const std::function<void()>& work, std::int64_t step = 1) {
  work();  // permanent data exist
  for (std::int64_t n = 0; n < kMostPoints; n += step) {
    allowed = n;
    bool succeeded = false;
    try {
      work();
      succeeded = allowed > 0;
    } catch (const std::exception&) {  // of the allocation, or of a copy
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
  test::image_sample().save(folder / "m.onnx");
  EXPECT_GT(fail_each([&] { load_npy(folder / "x.npy"); }), 3);
  EXPECT_GT(fail_each([&] { onnx::load_model(folder / "m.onnx"); }), 50);
}

/// nlohmann::json allocates in its destructors, and so ends a program that has no memory for them.
/// Each try is a process of its own: whether it ends with an exception or is ended, the folder
/// holds the checkpoint from before, or the new one.
TEST(AllocationFailure, of_a_checkpoint_leaves_the_one_before) {
  const test::TemporaryFolder folder;
  TensorMap tensors;
  tensors.emplace("w", Tensor(Shape{3}, std::vector<float>{1, 2, 3}));
  const auto save = [&](std::int64_t step) {
    save_checkpoint(folder / "c", tensors, {.step = step});
  };
  std::int64_t step = 1;
  save(step);
  int refused = 0;
  for (std::int64_t n = 0; n < 1500; n += 11) {
    const auto status = test::status_of(test::in_child([&] {
      if (std::freopen("/dev/null", "w", stderr) == nullptr)
        std::_Exit(1);  // std::terminate prints why
      allowed = n;
      save(step + 1);
      if (allowed == 0) throw std::bad_alloc();  // of this test's own copy
    }));
    const auto after = load_checkpoint(folder / "c").info.step;
    EXPECT_TRUE(after == step || after == step + 1) << after;
    if (status == 0) break;
    ++refused;
    save(step = after + 1);  // which removes the remains of the try
    EXPECT_EQ(test::files_in(folder / "c"), 4);
  }
  EXPECT_GT(refused, 15);
  EXPECT_LT(refused, 130);
}

TEST(AllocationFailure, of_a_list_of_files_is_an_exception) {
  const test::TemporaryFolder folder;
  for (const auto* name : {"a", "b", "a file with a name that is not short"})
    test::put_file(folder / name, "x");
  std::error_code error;
  EXPECT_GT(fail_each([&] { EXPECT_EQ(names_in(folder.path(), error).size(), 3u); }), 2);
  EXPECT_GT(fail_each([&] {
              OutputLedger own(folder.path());
              own.require_all_of("absent", [](const std::string&) { return false; });
            }),
            2);
  EXPECT_GT(fail_each([&] { TemporaryFolder("unused"); }), 2);
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

/// A step itself needs no memory: it continues without any.
TEST(AllocationFailure, of_a_training_step_is_an_exception_before_it_begins) {
  const auto device = open_device("cpu", {.threads = 1});
  const auto prepare = [&](StateStore& states) {
    auto config = model_preset("cnn");
    config.size = 8;
    auto step = build_training_graph(config, {.batch = 1});
    return Executor(make_plan(optimize(std::move(step.graph), {}), {device.get()}), states);
  };
  StateStore states(*device);
  auto executor = prepare(states);
  executor.run();
  allowed = 0;
  EXPECT_NO_THROW(executor.run());
  allowed = -1;
  EXPECT_GT(fail_each(
                [&] {
                  StateStore others(*device);
                  prepare(others).run();
                },
                29),
            1000);
}

}  // namespace
}  // namespace triptych
