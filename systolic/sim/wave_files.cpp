// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/wave_files.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

#ifdef TRIPTYCH_FST_READER
#include "gtkwave/fstapi.h"
#endif

namespace triptych::mmu {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* why) {
  throw std::runtime_error(fmt::format("[mmu] cannot write waves to '{}': {}", file.string(), why));
}

}  // namespace

bool is_wave_file(const std::filesystem::path& waves) {
  return waves.extension() == ".fst" || waves.extension() == ".vcd";
}

std::filesystem::path fst_of(const std::filesystem::path& waves) {
  auto fst = waves;
  return fst.replace_extension(".fst");
}

void write_vcd(const std::filesystem::path& waves) {
  if (waves.extension() != ".vcd") return;
#ifdef TRIPTYCH_FST_READER
  const std::unique_ptr<void, void (*)(void*)> fst(fstReaderOpen(fst_of(waves).c_str()),
                                                   fstReaderClose);
  if (!fst) fail(waves, "the FST file beside it cannot be read");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> vcd(std::fopen(waves.c_str(), "w"),
                                                            std::fclose);
  if (!vcd) fail(waves, "the file cannot be opened");
  fstReaderProcessHier(fst.get(), vcd.get());
  fstReaderSetFacProcessMaskAll(fst.get());
  fstReaderIterBlocks(fst.get(), nullptr, nullptr, vcd.get());
  if (std::fflush(vcd.get()) != 0 || std::ferror(vcd.get()) != 0) fail(waves, "the disk is full");
#else
  fail(waves, "this build has no RTL simulators; write FST and convert it with fst2vcd");
#endif
}

}  // namespace triptych::mmu
