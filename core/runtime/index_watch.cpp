// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/index_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/runtime/index_reader.h"

namespace triptych {

IndexWatch::IndexWatch(const Plan& plan) : plan_(plan) {
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    Words words{.device = plan.devices[d]};
    std::vector<IndexReader*> kernels;
    for (const auto& step : plan.steps) {
      auto* kernel = dynamic_cast<IndexReader*>(step.kernel.get());
      if (step.device != d || kernel == nullptr || kernel->unchecked_size() == 0) continue;
      words.readers.push_back({step.node, kernel->unchecked_size()});
      kernels.push_back(kernel);
    }
    if (kernels.empty()) continue;
    words.host.assign(kernels.size(), 0);
    words.words = words.device->allocate(std::as_bytes(std::span(words.host)).size());
    auto* first = reinterpret_cast<std::uint64_t*>(words.words->data());
    for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i]->report_to(first + i);
    devices_.push_back(std::move(words));
  }
}

void IndexWatch::check() {
  for (auto& [device, readers, host, words] : devices_) {
    const auto bytes = std::as_writable_bytes(std::span(host));
    device->download(bytes.data(), words->data(), bytes.size());
    const auto found = std::ranges::find_if(host, [](std::uint64_t word) { return word != 0; });
    if (found == host.end()) continue;
    const auto& [id, size] = readers[static_cast<std::size_t>(found - host.begin())];
    const auto fault = IndexFault::of(*found);
    std::ranges::fill(host, 0);
    device->upload(words->data(), bytes.data(), bytes.size());
    const auto& node = plan_.graph.node(id);
    throw InvalidArgument(
        fmt::format("node \"{}\" ({}): {}", node.name, node.op->name(), to_string(fault, size)));
  }
}

}  // namespace triptych
