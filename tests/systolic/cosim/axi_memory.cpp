// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/axi_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {
namespace {

constexpr std::uint32_t kPageBytes = 4096;

bool chance(std::uint32_t percent, std::mt19937& random) { return random() % 100 < percent; }

std::uint64_t answer_cycle(std::uint64_t cycle, const AxiTiming& timing, std::mt19937& random) {
  return cycle + timing.latency + (timing.spread == 0 ? 0 : random() % (timing.spread + 1));
}

std::string_view bytes_of(const std::byte& first) {
  return {reinterpret_cast<const char*>(&first), kBeatBytes};
}

void check_burst(const HeldChannel& channel, std::uint64_t cycle, const AxiBurst& burst,
                 const AxiTiming& timing, std::size_t memory_bytes) {
  const std::uint64_t end = std::uint64_t{burst.address} + burst.beats * kBeatBytes;
  if (burst.address % kBeatBytes != 0) channel.fail(cycle, "an address is not a multiple of 16");
  if (burst.beats > timing.max_beats) channel.fail(cycle, "a burst is too long");
  if (burst.address / kPageBytes != (end - 1) / kPageBytes)
    channel.fail(cycle, "a burst crosses 4 KiB");
  if (end > memory_bytes) channel.fail(cycle, "a burst leaves the memory");
}

}  // namespace

bool HeldChannel::takes(std::uint64_t cycle, bool valid, bool ready, std::string contents) {
  if (waits_ && !valid) fail(cycle, "VALID falls before READY rises");
  if (waits_ && contents != contents_) fail(cycle, "contents change before READY rises");
  waits_ = valid && !ready;
  contents_ = std::move(contents);
  return valid && ready;
}

void HeldChannel::fail(std::uint64_t cycle, std::string_view problem) const {
  throw HardwareFault(fmt::format("[axi] channel {}, cycle {}: {}", name_, cycle, problem));
}

AxiReads::AxiReads(std::string name, const AxiReadSignals& signals, std::span<std::byte> memory,
                   const AxiTiming& timing)
    : name_(std::move(name)),
      signals_(signals),
      memory_(memory),
      timing_(timing),
      address_(name_ + " AR") {}

void AxiReads::silence() { signals_.arready = signals_.rvalid = 0; }

void AxiReads::drive(std::uint64_t cycle, std::mt19937& random) {
  signals_.arready =
      bursts_.size() < timing_.open_bursts && !chance(timing_.stall_percent, random) ? 1 : 0;
  if (!presents_) {
    presents_ = !bursts_.empty() && cycle >= bursts_.front().ready &&
                !chance(timing_.stall_percent, random);
    if (presents_) {
      const Burst& burst = bursts_.front();
      const std::byte* data =
          burst.data.empty() ? memory_.data() + burst.address : burst.data.data();
      std::memcpy(&signals_.rdata, data + std::size_t{sent_} * kBeatBytes, kBeatBytes);
    } else {
      std::memset(&signals_.rdata, 0xA5, kBeatBytes);
    }
  }
  signals_.rvalid = presents_ ? 1 : 0;
  signals_.rresp = timing_.response;
}

void AxiReads::sample(std::uint64_t cycle, std::mt19937& random) {
  const AxiBurst burst{signals_.araddr, signals_.arlen + 1U};
  if (presents_ && signals_.rready != 0) {
    presents_ = false;
    if (++sent_ == bursts_.front().beats) {
      bursts_.pop_front();
      sent_ = 0;
    }
  }
  if (!address_.takes(cycle, signals_.arvalid != 0, signals_.arready != 0,
                      fmt::format("{} {}", burst.address, burst.beats)))
    return;
  check_burst(address_, cycle, burst, timing_, memory_.size());
  ++count_;
  Burst next{burst, answer_cycle(cycle, timing_, random), {}};
  const auto bytes = memory_.subspan(burst.address, std::size_t{burst.beats} * kBeatBytes);
  if (chance(50, random)) next.data.assign(bytes.begin(), bytes.end());
  bursts_.push_back(std::move(next));
}

AxiWrites::AxiWrites(std::string name, const AxiWriteSignals& signals, std::span<std::byte> memory,
                     const AxiTiming& timing)
    : name_(std::move(name)),
      signals_(signals),
      memory_(memory),
      timing_(timing),
      address_(name_ + " AW"),
      data_(name_ + " W") {}

void AxiWrites::silence() { signals_.awready = signals_.wready = signals_.bvalid = 0; }

void AxiWrites::drive(std::uint64_t cycle, std::mt19937& random) {
  signals_.awready =
      addresses_.size() < timing_.open_bursts && !chance(timing_.stall_percent, random) ? 1 : 0;
  signals_.wready = chance(timing_.stall_percent, random) ? 0 : 1;
  signals_.bvalid =
      !answers_.empty() && cycle >= answers_.front().ready && !chance(timing_.stall_percent, random)
          ? 1
          : 0;
  signals_.bresp = timing_.response;
  if (signals_.bvalid != 0) write(answers_.front().address, answers_.front().beats);
}

void AxiWrites::sample(std::uint64_t cycle, std::mt19937& random) {
  if (signals_.bvalid != 0) {
    if (signals_.bready == 0) data_.fail(cycle, "an answer is not taken");
    answers_.pop_front();
  }
  const AxiBurst burst{signals_.awaddr, signals_.awlen + 1U};
  if (address_.takes(cycle, signals_.awvalid != 0, signals_.awready != 0,
                     fmt::format("{} {}", burst.address, burst.beats))) {
    check_burst(address_, cycle, burst, timing_, memory_.size());
    addresses_.push_back(burst);
  }
  Beat beat{{}, signals_.wstrb, signals_.wlast != 0};
  std::memcpy(beat.data.data(), &signals_.wdata, kBeatBytes);
  if (data_.takes(cycle, signals_.wvalid != 0, signals_.wready != 0,
                  fmt::format("{} {} {}", bytes_of(signals_.wdata), beat.strobes, beat.last)))
    beats_.push_back(beat);
  complete(cycle, random);
}

void AxiWrites::complete(std::uint64_t cycle, std::mt19937& random) {
  while (!addresses_.empty() && beats_.size() >= addresses_.front().beats) {
    const AxiBurst burst = addresses_.front();
    addresses_.pop_front();
    const auto end = beats_.begin() + burst.beats;
    std::vector<Beat> data(beats_.begin(), end);
    beats_.erase(beats_.begin(), end);
    for (const Beat& beat : data)
      if (beat.last != (&beat == &data.back())) data_.fail(cycle, "WLAST is not at the last beat");
    answers_.push_back({answer_cycle(cycle, timing_, random), burst.address, std::move(data)});
    if (!chance(50, random)) continue;
    for (Answer& answer : answers_) {  // bursts of one master become visible in order
      write(answer.address, answer.beats);
      answer.beats.clear();
    }
  }
}

void AxiWrites::write(std::uint32_t address, std::span<const Beat> beats) {
  for (const Beat& beat : beats) {
    for (std::uint32_t b = 0; b < kBeatBytes; ++b)
      if ((beat.strobes >> b & 1) != 0) memory_[address + b] = beat.data[b];
    address += kBeatBytes;
  }
}

}  // namespace triptych::mmu
