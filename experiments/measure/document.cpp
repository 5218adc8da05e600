// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/document.h"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <tbb/version.h>

#include "backends/all_backends.h"
#include "experiments/page/page.h"
#include "triptych_version.h"

namespace triptych::measure {

page::Json environment_json() {
  utsname system{};
  uname(&system);
  page::Json environment = {
      {"program", "triptych"},
      {"version", kVersion},
      {"commit", kCommit},
      {"compiler", fmt::format("{} {}", kCompiler, kCompilerVersion)},
      {"build_type", kBuildType},
      {"system", fmt::format("{} {}", system.sysname, system.release)},
      {"machine", system.machine},
      {"versions",
       {{"onetbb", TBB_runtime_version()},
        {"fmt", fmt::format("{}", FMT_VERSION)},
        {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)}}}};
  for (const Backend* backend : all_backends()) {
    if (backend->name() != "cpu") continue;
    const auto info = backend->devices().front();
    environment["cpu"] = info.description;
    environment["threads"] = info.facts.threads.value();
  }
  return environment;
}

page::Json document(std::string_view command, page::Json results) {
  return page::valid_text({{"schema", kJsonSchema},
                           {"command", command},
                           {"environment", environment_json()},
                           {"results", std::move(results)}});
}

}  // namespace triptych::measure
