// The second version of kernels, from small pieces of LLVM's assembly.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/unwatched_code.h"

#include <gtest/gtest.h>

#include <string>

namespace triptych::kernels {
namespace {

/// The second version has these texts.
void expect(const std::string& assembly, std::initializer_list<const char*> texts) {
  const auto result = unwatched_code(assembly, 3);
  for (const char* text : texts)
    EXPECT_NE(result.find(text), result.npos) << text << "\n" << result;
}

TEST(UnwatchedCode, calls_functions_of_its_own) {
  expect(
      "$f = comdat any\n"
      "define linkonce_odr hidden void @f(i32 noundef %0) #1 comdat {\n"
      "  call void @\"g$1\"(i8* %x) \n  call float @llvm.sin.f32(float %1)\n}\n"
      "define internal void @\"g$1\"(i8* %0) {\n}\ndeclare float @sinf(float)\n"
      "declare float @llvm.sin.f32(float)\n",
      {"$f.unwatched = comdat any\n", "define linkonce_odr hidden void @f.unwatched(i32",
       "call void @g$1.unwatched(i8* %x)", "call float @sinf(float %1)"});
  const auto twice =
      unwatched_code("declare float @sinf(float)\ndeclare float @llvm.sin.f32(float)\n", 0);
  EXPECT_EQ(twice.find("@sinf", twice.find("@sinf") + 1), twice.npos) << twice;
}

TEST(UnwatchedCode, takes_addresses_of_watched_functions) {
  expect(
      "define internal noundef i32 @f(i32 noundef %0) #0 !dbg !4 {\n  ret i32 %0\n}\n"
      "define hidden void @g() {\n"
      "  store i32 (i32)* @f, i32 (i32)** %1\n  store void ()* @g, void ()** %2\n}\n",
      {"store i32 (i32)* @f.unit3, i32", "store void ()* @g, void",
       "define hidden void @g.unwatched()", "\ndeclare noundef i32 @f.unit3(i32 noundef %0)\n",
       "\ndeclare void @g()\n"});
}

TEST(UnwatchedCode, shares_variables_and_keeps_known_constants) {
  expect(
      "@a = internal global [4 x i32] zeroinitializer, align 16, !dbg !0\n"
      "@s = internal thread_local global [2 x %\"struct.T\"*] undef, align 8\n"
      "@c = protected externally_initialized constant i32 3, align 4\n"
      "@k = internal constant [2 x i32] [i32 1, i32 2], align 4\n"
      "@v = linkonce_odr hidden constant { i8* } { i8* bitcast (void ()* @f to i8*) }, comdat\n"
      "@t = private unnamed_addr constant [3 x i8] c\"@a\\00\", align 1\n"
      "@llvm.used = appending global [1 x i8*] [i8* null], section \"llvm.metadata\"\n"
      "define void @f() {\n  store i32 1, i32* @a\n}\n",
      {"@a.unit3 = external hidden global [4 x i32], align 16\n",
       "@s.unit3 = external hidden thread_local(localdynamic) global [2 x %\"struct.T\"*], align "
       "8\n",
       "@c = external protected constant i32, align 4\n",
       "@k.unit3 = available_externally hidden constant [2 x i32] [i32 1, i32 2], align 4\n",
       "@v = external hidden constant { i8* }\n", "c\"@a\\00\"", "store i32 1, i32* @a.unit3\n"});
  EXPECT_EQ(unwatched_code("@llvm.used = appending global [1 x i8*] [i8* null]\n", 0), "\n");
}

TEST(UnwatchedCode, polls_in_front_of_reads_that_may_wait) {
  expect("define void @f() {\n  %2 = load volatile i32, i32* %1, align 4, !dbg !7, !tbaa !8\n}\n",
         {"  call void bitcast (void (i8*)* @triptych_poll to void (i32*)*)(i32* %1), !dbg !7\n"
          "  %2 = load volatile i32,",
          "\ndeclare void @triptych_poll(i8*)\n"});
  expect(
      "@x = internal global i64 0\ndefine void @f() {\n  %2 = load atomic volatile i64, ptr "
      "getelementptr (i8, ptr @x, i64 8) acquire, align 8\n  %3 = cmpxchg weak ptr %p, i32 0, i32 "
      "1 "
      "seq_cst seq_cst\n  %4 = atomicrmw volatile add ptr @x, i32 1 seq_cst, !dbg !9\n}\n",
      {"call void @triptych_poll(ptr getelementptr (i8, ptr @x.unit3, i64 8))\n",
       "call void @triptych_poll(ptr %p)\n  %3",
       "call void @triptych_poll(ptr @x.unit3), !dbg !9\n",
       "\ndeclare void @triptych_poll(ptr)\n"});
  // The emulator's own operations begin with a load.
  const auto own = unwatched_code(
      "define void @_ZN8triptych4cuda5plain1fEv() {\n  %3 = cmpxchg ptr %p, i32 0, i32 1 "
      "seq_cst\n}\n",
      0);
  EXPECT_EQ(own.find("triptych_poll"), own.npos);
}

TEST(UnwatchedCode, does_not_exist_with_addresses_of_labels) {
  EXPECT_EQ(unwatched_code("@a = internal global i8* blockaddress(@f, %1)\n", 0), "");
}

TEST(UnwatchedCode, finds_local_symbols_by_further_names) {
  const std::string assembly =
      "\t.globl\tf\n\t.type\tf,@function\nf:\n\t.type\ta,@object\n\t.weak v\n\t.type v, @object\n"
      "\t.type .L.str,@object\n";
  EXPECT_EQ(
      with_local_names(assembly, 2),
      assembly + "\t.globl a.unit2\n\t.hidden a.unit2\n\t.set a.unit2, a\n\t.size a.unit2, 0\n");
}

}  // namespace
}  // namespace triptych::kernels
