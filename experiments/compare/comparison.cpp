// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/comparison.h"

#include <algorithm>

#include "backends/all_backends.h"

namespace triptych::compare {
namespace {

/// One machine's part. Returns the error of one that gave up.
std::exception_ptr run_one(Column& column, const Comparison& all, const Listener& listener,
                           const std::atomic<bool>& interrupted) {
  std::exception_ptr failure;
  const auto give_up = [&](const Error& error, const char* remedy) {
    column.absence = {error.what(), remedy, true};
    failure = std::current_exception();
  };
  try {
    column.result =
        run_machine(column.request, all.experiment, listener.observer(column.request), interrupted);
  } catch (const UnsupportedError& error) {
    give_up(error, "choose a contract that it has");
  } catch (const DeviceError& error) {
    give_up(error, "");
  } catch (const NumericError& error) {
    give_up(error, "");
  }
  return failure;
}

}  // namespace

std::vector<Column> columns_of(std::vector<MachineRequest> requests) {
  std::vector<Column> columns;
  for (auto& request : requests) {
    Column column = {.request = std::move(request), .result = {}, .absence = {}};
    const auto here = find_backend(column.request.config.backend).availability();
    if (!here.available) column.absence = {here.reason, here.remedy};
    if (here.available) {
      try {
        const training::DeviceSet machine(column.request.config);
      } catch (const DeviceError& error) {
        column.absence = {error.what(), ""};
      }
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

void run_all(Comparison& all, const Listener& listener, const std::atomic<bool>& interrupted) {
  std::exception_ptr failure;
  bool some = false;
  for (auto& column : all.columns) {
    if (!column.absence.reason.empty()) continue;
    const auto own = run_one(column, all, listener, interrupted);
    if (interrupted) return;
    some = some || !own;
    if (!own) continue;
    if (!failure) failure = own;
    listener.on_absence(column);
  }
  if (failure && !some) std::rethrow_exception(failure);
}

void look_for_difference(Comparison& all, const std::filesystem::path& folder,
                         const Listener& listener, const std::atomic<bool>& interrupted) {
  const auto verdict = all.verdict();
  if (verdict.identical()) return;
  const auto first = std::ranges::find_if(
      all.columns, [](const Column& column) { return column.result.has_value(); });
  const auto& second = all.columns[verdict.differs];
  listener.on_difference(first->request, second.request);
  auto again = all.experiment;
  again.folder = folder;
  try {
    all.difference = find_difference(first->request, second.request, again,
                                     std::ssize(first->result->losses), interrupted);
  } catch (const Error& error) {
    all.no_difference = error.what();
  }
}

}  // namespace triptych::compare
