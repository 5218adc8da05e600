// A plugin with the mistake that the environment names.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/runtime/plugin.h"

namespace {

using namespace triptych;

std::string mistake() {
  const char* name = std::getenv("WRONG");
  return name == nullptr ? "" : name;
}

/// A backend without devices.
class Named : public Backend {
 public:
  Named(std::string_view name, std::string_view host) : name_(name), host_(host) {}
  std::string_view name() const override { return name_; }
  std::string_view host() const override { return host_; }
  Availability availability() const override { return {false, "it is a test", ""}; }
  std::vector<DeviceInfo> devices() const override { return {}; }
  std::unique_ptr<Device> open(const DeviceOptions&) const override {
    throw DeviceError("it has no device");
  }

 private:
  std::string_view name_, host_;
};

/// Not, without the negation.
class Wrong : public Kernel {
 public:
  static Verdict accepts(const KernelQuery& query) { return accepts_dense(query); }
  Wrong(const KernelQuery& query, Device&) : elements_(query.outputs[0].spec.shape.elements()) {}
  void run(const KernelArgs& args) override {
    for (std::int64_t i = 0; i < elements_; ++i)
      args.out<std::uint8_t>(0)[i] = args.in<std::uint8_t>(0)[i];
  }

 private:
  std::int64_t elements_;
};

const bool kLoaded = [] {
  if (mistake() == "abort") std::abort();
  return true;
}();

}  // namespace

void triptych_plugin_parts(PluginParts& parts) {
  static const Named cpu("cpu", ""), guest("guest", "elsewhere");
  const auto wrong = mistake();
  if (wrong == "backend") parts.backends.push_back(&cpu);
  if (wrong == "host") parts.backends.push_back(&guest);
  if (wrong == "target")
    parts.kernels.push_back({"elsewhere", kernel_entry<Wrong>("Not", "wrong")});
  if (wrong == "op") parts.kernels.push_back({"cpu", kernel_entry<Wrong>("Nott", "wrong")});
  if (wrong == "value") parts.kernels.push_back({"cpu", kernel_entry<Wrong>("Not", "wrong")});
}
