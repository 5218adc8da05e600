// A memory behind AXI4 masters with 128 bits of data. It stalls at random on every channel, answers
// after a random time, and checks that the masters keep the rules of the protocol.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triptych::mmu {

inline constexpr std::uint32_t kBeatBytes = 16;

struct AxiTiming {
  std::uint32_t stall_percent = 0;  ///< chance that a channel does not move in a cycle
  std::uint32_t latency = 1;        ///< cycles from an address or the last data to the answer
  std::uint32_t spread = 0;         ///< up to so many more
  std::uint8_t response = 0;        ///< RRESP and BRESP: 2 is an error
  std::size_t open_bursts = 8;      ///< of each master, whose addresses are taken
  std::uint32_t max_beats = 16;     ///< the longest burst that is allowed
};

/// AR and R of a master, inside its model.
struct AxiReadSignals {
  std::uint8_t& arvalid;
  std::uint8_t& arready;
  std::uint32_t& araddr;
  std::uint8_t& arlen;
  std::uint8_t& rvalid;
  std::uint8_t& rready;
  std::byte& rdata;
  std::uint8_t& rresp;
};

/// AW, W and B of a master, inside its model.
struct AxiWriteSignals {
  std::uint8_t& awvalid;
  std::uint8_t& awready;
  std::uint32_t& awaddr;
  std::uint8_t& awlen;
  std::uint8_t& wvalid;
  std::uint8_t& wready;
  std::byte& wdata;
  std::uint16_t& wstrb;
  std::uint8_t& wlast;
  std::uint8_t& bvalid;
  std::uint8_t& bready;
  std::uint8_t& bresp;
};

/// A channel with an address, or with data: its contents must stay until they are taken.
class HeldChannel {
 public:
  explicit HeldChannel(std::string name) : name_(std::move(name)) {}
  /// In each cycle, before its edge. Throws HardwareFault. Returns true if the contents are taken.
  bool takes(std::uint64_t cycle, bool valid, bool ready, std::string contents);
  [[noreturn]] void fail(std::uint64_t cycle, std::string_view problem) const;

 private:
  std::string name_;
  bool waits_ = false;
  std::string contents_;
};

struct AxiBurst {
  std::uint32_t address = 0, beats = 0;
};

/// The part of the memory that a master reads. drive() sets its inputs before the model settles,
/// sample() takes its outputs afterwards. The data of a burst are those of the moment when the
/// memory takes its address, or those of the moment when it sends them.
class AxiReads {
 public:
  AxiReads(std::string name, const AxiReadSignals& signals, std::span<std::byte> memory,
           const AxiTiming& timing);
  /// Neither data nor readiness, outside programs.
  void silence();
  void drive(std::uint64_t cycle, std::mt19937& random);
  void sample(std::uint64_t cycle, std::mt19937& random);
  bool idle() const { return bursts_.empty(); }
  std::uint64_t count() const { return count_; }

 private:
  struct Burst : AxiBurst {
    std::uint64_t ready = 0;      ///< cycle of the first beat
    std::vector<std::byte> data;  ///< empty: read when it is sent
  };

  std::string name_;
  AxiReadSignals signals_;
  std::span<std::byte> memory_;
  AxiTiming timing_;
  HeldChannel address_;
  std::deque<Burst> bursts_;
  std::uint64_t count_ = 0;  ///< of all bursts
  std::uint32_t sent_ = 0;   ///< beats of the first burst
  bool presents_ = false;
};

/// The part of the memory that a master writes. Data reach the memory when the burst is complete,
/// or when it is acknowledged.
class AxiWrites {
 public:
  AxiWrites(std::string name, const AxiWriteSignals& signals, std::span<std::byte> memory,
            const AxiTiming& timing);
  /// Neither data nor readiness, outside programs.
  void silence();
  void drive(std::uint64_t cycle, std::mt19937& random);
  void sample(std::uint64_t cycle, std::mt19937& random);
  bool idle() const { return addresses_.empty() && beats_.empty() && answers_.empty(); }

 private:
  struct Beat {
    std::array<std::byte, kBeatBytes> data{};
    std::uint16_t strobes = 0;
    bool last = false;
  };
  struct Answer {
    std::uint64_t ready = 0;
    std::uint32_t address = 0;
    std::vector<Beat> beats;  ///< empty: they are in the memory
  };

  void complete(std::uint64_t cycle, std::mt19937& random);
  void write(std::uint32_t address, std::span<const Beat> beats);

  std::string name_;
  AxiWriteSignals signals_;
  std::span<std::byte> memory_;
  AxiTiming timing_;
  HeldChannel address_, data_;
  std::deque<AxiBurst> addresses_;
  std::deque<Beat> beats_;
  std::deque<Answer> answers_;
};

}  // namespace triptych::mmu
