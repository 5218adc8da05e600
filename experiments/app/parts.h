// Commands of the parts that a build may leave out (core/base/missing_part.h). A part's library
// defines its functions. In a build without the part, absent/NAME.cpp defines them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/app/options.h"

namespace triptych::app {

/// Name and help of a command below another, which are the same in builds without its part.
struct CommandText {
  const char* name;
  const char* help;
};

inline constexpr CommandText kStrategiesBench = {
    "strategies", "Compare strategies that share a training step over ranks"};
inline constexpr CommandText kBandwidthBench = {
    "bandwidth", "Measure copy and triad in each level of the memory"};
inline constexpr CommandText kArrayPage = {
    "array", "Write the page of the systolic array, which simulates it cycle by cycle"};
inline constexpr CommandText kGpuPage = {
    "gpu", "Write the page of the GPU, which shows emulated kernels access by access"};
inline constexpr CommandText kCollectivesPage = {
    "collectives", "Write the page of collectives, which adds gradients message by message"};

/// Part "counted".
void describe_check(Command& command, Context& context);
/// Part "kernels".
void describe_kernel(Command& command, Context& context);
/// Part "labs".
void describe_lab(Command& command, Context& context);
/// Part "studies": a command, and two below `bench`.
void describe_reproduce(Command& command, Context& context);
Command add_bandwidth_bench(Command& bench, Context& context);
Command add_strategies_bench(Command& bench, Context& context);
/// Part "pages": the commands `page gpu` and `page collectives`.
std::vector<Command> add_web_pages(Command& page, Context& context);

/// Adds a command below `page` that writes the text of `html` to its option --out.
Command add_web_page(Command& page, Context& context, const CommandText& text,
                     std::function<std::string()> html);

/// Describes a command of a part that this build lacks. It accepts all arguments, and names the
/// commands that add the part.
void describe_absent(Command& command, std::string_view part);
Command add_absent_command(Command& parent, const CommandText& text, std::string_view part);

}  // namespace triptych::app
