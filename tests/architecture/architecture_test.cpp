// The rules of the house that a program can check: arrows between folders, sizes of files, macros,
// licence lines, READMEs, and links in documents. One file, because the rules share their input.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

const fs::path kRoot = TRIPTYCH_SOURCE_DIR;

Lines read_lines(const fs::path& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes, [&](const auto& p) { return text.starts_with(p); });
}

/// Files of the project, relative to its root, with one of these extensions (all when empty).
std::vector<std::string> project_files(const std::set<std::string>& extensions = {}) {
  static const std::set<std::string> skipped = {"build", "runs", ".git", ".cache"};
  std::vector<std::string> files;
  for (auto it = fs::recursive_directory_iterator(kRoot); it != fs::end(it); ++it) {
    if (it->is_directory() && skipped.contains(it->path().filename().string())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file()) {
      const auto extension = it->path().extension().string();
      if (extensions.empty() || extensions.contains(extension)) {
        files.push_back(fs::relative(it->path(), kRoot).string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

const std::set<std::string> kCode = {".h", ".cpp", ".cu", ".cuh"};

/// The dependencies of the plan: a file below `folder` may include names that start with one of
/// `allowed`.
struct Arrow {
  std::string folder;
  std::vector<std::string> allowed;
};

/// {app, python} -> studies -> {compare, measure} -> machines -> training. All -> page.
std::vector<Arrow> rooms_of_experiments() {
  const std::string root = "experiments/";
  const std::string data = root + "training/data/", page = root + "page/", check = root + "check/";
  const std::string kernels = root + "kernels/", labs = root + "labs/", web = root + "web/";
  const std::string confine = root + "confine/", scripts = root + "scripts/";
  std::vector<std::string> below = {"core/", "parallel/", "systolic/", "backends/all_backends.h"};
  // Benchmarks against other libraries use the CPU's kernels directly.
  std::vector<Arrow> result = {
      {root + "studies/rivals/", {"core/", "backends/cpu/"}},
      {data, {"core/", data}},
      {page, {"core/base/", "core/io/base64.h", "core/io/sha256.h", page}},
      // A page replays recorded actions of the emulated GPU.
      {web, {"core/", "systolic/", "backends/cuda/", root + "training/", page, web}},
      {check, {"core/", "parallel/", "backends/all_backends.h", check}},
      // Graders run this program as a child process. Schedules are proved and priced.
      {labs, {"core/", "parallel/collectives/", confine, page, scripts, labs}},
      {scripts, {"core/", page, scripts}},
      {confine, {"core/", "parallel/launch/", confine}},
      // Students' kernels are for one backend, and compiled as RTL is.
      {kernels, {"core/", "backends/cuda/", "systolic/sim/toolchain.h", kernels}}};
  for (const char* room : {"training/", "machines/", "measure/", "compare/", "studies/", "app/"}) {
    below.push_back(root + room);
    result.push_back({below.back(), below});
    if (room == std::string_view("training/")) below.push_back(page);
  }
  result.back().allowed.insert(result.back().allowed.end(),
                               {check, confine, kernels, labs, scripts, web});
  below.back() = root + "python/";
  result.push_back({below.back(), below});
  return result;
}

const std::vector<Arrow>& arrows() {
  static const std::vector<Arrow> list = [] {
    std::vector<Arrow> result;
    std::vector<std::string> below;
    for (const char* layer : {"base", "tensor", "ops", "graph", "autodiff", "runtime"}) {
      below.push_back(std::string("core/") + layer + "/");
      result.push_back({below.back(), below});
    }
    for (const char* top : {"core/io/", "core/nn/"}) {
      auto allowed = below;
      allowed.emplace_back(top);
      result.push_back({top, allowed});
    }
    const std::vector<std::string> contract = {"core/base/", "core/tensor/", "core/ops/",
                                               "core/runtime/"};
    for (const auto& entry : fs::directory_iterator(kRoot / "backends")) {
      if (!entry.is_directory()) continue;
      const auto backend = "backends/" + entry.path().filename().string() + "/";
      auto allowed = contract;
      allowed.push_back(backend);
      allowed.emplace_back(backend == "backends/systolic/" ? "systolic/driver/" : "backends/host/");
      result.push_back({backend, allowed});
    }
    auto cases = below;
    cases.erase(cases.end() - 2, cases.end());  // graph is the last that the cases stand on
    result.push_back({"core/onnx/", cases});
    result.back().allowed.insert(result.back().allowed.end(), {"core/io/", "core/onnx/"});
    cases.emplace_back("core/conformance/");
    result.push_back({"core/conformance/", cases});
    result.push_back({"systolic/", {"systolic/"}});
    result.push_back({"parallel/collectives/", {"core/base/", "parallel/collectives/"}});
    result.push_back({"parallel/comm/",
                      {"core/base/", "core/tensor/", "parallel/collectives/", "parallel/comm/"}});
    result.push_back({"parallel/launch/", {"core/base/", "core/io/", "parallel/launch/"}});
    result.push_back({"parallel/", {"core/", "parallel/"}});
    for (auto& room : rooms_of_experiments()) result.push_back(std::move(room));
    return result;
  }();
  return list;
}

TEST(Architecture, includes_follow_the_arrows_of_the_plan) {
  const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\".*");
  const std::vector<std::string> rooms = {"core/",     "backends/",    "systolic/",
                                          "parallel/", "experiments/", "tests/"};
  for (const auto& file : project_files(kCode)) {
    const auto rule = std::ranges::find_if(
        arrows(), [&](const Arrow& arrow) { return file.starts_with(arrow.folder); });
    if (rule == arrows().end()) continue;
    for (const auto& line : read_lines(kRoot / file)) {
      std::smatch match;
      if (!std::regex_match(line, match, include)) continue;
      const std::string target = match[1];
      if (!starts_with_any(target, rooms)) continue;
      EXPECT_TRUE(starts_with_any(target, rule->allowed))
          << file << " includes " << target << ", against the plan's arrows";
    }
  }
}

TEST(Architecture, no_product_includes_tests_and_no_library_the_program) {
  for (const auto& file : project_files(kCode)) {
    if (file.starts_with("tests/")) continue;
    for (const auto& line : read_lines(kRoot / file)) {
      EXPECT_FALSE(line.starts_with("#include \"tests/")) << file << ": " << line;
      const bool program = file.starts_with("experiments/app/");
      EXPECT_TRUE(program || !line.starts_with("#include \"experiments/app/"))
          << file << ": " << line;
    }
  }
}

using Words = std::vector<std::string_view>;

/// True for a line that has one of the words and matches. Expressions alone take most of the time.
bool matches(std::string_view line, const Words& words, const std::regex& pattern) {
  return std::ranges::any_of(words, [&](auto word) { return line.find(word) != line.npos; }) &&
         std::regex_search(line.begin(), line.end(), pattern);
}
std::string_view without_comment(std::string_view line) { return line.substr(0, line.find("//")); }

/// Phases of nodes and roles of states identify them. Names are for people.
TEST(Architecture, no_structure_is_recovered_from_names) {
  static const std::regex by_name(
      R"re(((starts_with|ends_with|find|substr|compare)\(|== *)"(grad|optimizer)[."])re");
  for (const auto& file : project_files(kCode)) {
    if (file.starts_with("tests/")) continue;
    for (const auto& line : read_lines(kRoot / file))
      EXPECT_FALSE(matches(line, {"\"grad", "\"optimizer"}, by_name)) << file << ": " << line;
  }
}

TEST(Architecture, only_one_file_names_every_backend) {
  for (const auto& file : project_files(kCode)) {
    // Micro-benchmarks look inside one backend, as its unit tests do.
    const std::vector<std::string> insiders = {"backends/", "tests/", "experiments/kernels/",
                                               "experiments/studies/rivals/", "experiments/web/"};
    if (starts_with_any(file, insiders)) continue;
    for (const auto& line : read_lines(kRoot / file)) {
      const bool names_a_backend = line.starts_with("#include \"backends/") &&
                                   line.find("backends/all_backends.h") == std::string::npos;
      EXPECT_FALSE(names_a_backend) << file << ": " << line;
    }
  }
}

TEST(Architecture, one_class_stands_before_CLI11) {
  const std::vector<std::string> insiders = {"experiments/app/ruled_app.h"};
  for (const auto& file : project_files(kCode)) {
    for (const auto& line : read_lines(kRoot / file)) {
      const bool inside = std::ranges::count(insiders, file) > 0;
      EXPECT_TRUE(inside || !line.starts_with("#include <CLI/"))
          << file << ": it takes seconds to compile; use experiments/app/command_line.h";
    }
  }
}

std::size_t longest_allowed(const std::string& file) {
  if (file.starts_with("tests/")) return 600;
  const auto extension = fs::path(file).extension().string();
  if (extension == ".h" || extension == ".cuh") return 300;
  if (extension == ".sv") return 400;
  if (fs::path(file).filename() == "CMakeLists.txt") return 120;
  return 500;
}

/// Files and directories of a section of places.txt, which has the reasons.
std::vector<std::string> places(const std::string& section) {
  std::vector<std::string> result;
  bool inside = false;
  for (const auto& line : read_lines(kRoot / "tests/architecture/places.txt")) {
    if (line.starts_with('[')) inside = line == "[" + section + "]";
    if (line.empty() || line.starts_with('[') || line.starts_with('#') || !inside) continue;
    const auto end = line.find(' ');
    EXPECT_NE(line.find_first_not_of(' ', end), std::string::npos) << line << " has no reason";
    result.push_back(line.substr(0, end));
    EXPECT_TRUE(fs::exists(kRoot / result.back())) << line;
  }
  EXPECT_FALSE(result.empty()) << section;
  return result;
}

/// Checks that exactly the product files of `section` have a line that matches.
void expect_only_in(const std::string& section, const Words& words, const std::regex& pattern) {
  const auto allowed = places(section);
  std::set<std::string> found;
  for (const auto& file : project_files(kCode)) {
    if (file.starts_with("tests/") || file.find("/rivals/") != std::string::npos) continue;
    for (const auto& line : read_lines(kRoot / file)) {
      if (!matches(without_comment(line), words, pattern)) continue;
      EXPECT_GT(std::ranges::count(allowed, file), 0)
          << file << ": " << line << ": tests/architecture/places.txt lists the exceptions";
      found.insert(file);
    }
  }
  for (const auto& file : allowed) EXPECT_TRUE(found.contains(file)) << file << " has none";
}

/// Files that a command writes go through OutputLedger, which replaces nothing of others.
TEST(Architecture, outputs_go_through_one_place) {
  static const std::regex writes(
      R"(\b(AtomicFile|write_file_atomically|save_png|save_npy|save_safetensors|ofstream|fopen)\b)"
      R"(|\b(mkdtemp|mkstemp|O_CREAT)\b)");
  expect_only_in("writes files", {"tomic", "save_", "ofstream", "fopen", "mk", "O_CREAT"}, writes);
}

/// Only a few sources remove and rename files, because they know the owner.
TEST(Architecture, files_are_removed_and_renamed_in_few_places) {
  static const std::regex removes(
      R"(\b(unlink|unlinkat|unlink_beneath|rename|renameat|rmdir)\()"
      R"(|\b(fs|filesystem)::(remove|rename)\(|\bstd::(remove|rename)\([a-z_.]*path)");
  expect_only_in("removes and renames files", {"unlink", "rename", "rmdir", "remove"}, removes);
}

/// Text of others is escaped at the one place that prints (core/base/console.h). Past it nothing
/// does.
TEST(Architecture, one_place_prints) {
  const auto exempt = places("prints");
  static const std::regex prints(
      R"(\bfmt::print\b|\bstd::(cout|cerr|clog)\b|\b(printf|fprintf|vfprintf|puts|fputs|putchar)\()"
      R"(|\b(fwrite|fputc|putc)\(.*\bstd(out|err)\b|\bperror\(|\bwrite\(\s*STD(OUT|ERR)_FILENO)");
  for (const auto& file : project_files(kCode)) {
    if (starts_with_any(file, {"tests/", "docs/", "experiments/studies/rivals/",
                               "experiments/labs/benches/", "experiments/labs/handouts/"}) ||
        std::ranges::count(exempt, file) > 0)
      continue;
    const auto lines = read_lines(kRoot / file);
    for (std::size_t i = 0; i < lines.size(); ++i)
      EXPECT_FALSE(
          matches(without_comment(lines[i]), {"print", "std::c", "put", "write", "perror"}, prints))
          << file << ":" << i + 1 << ": " << lines[i] << ": use print_text or say";
  }
}

/// libstdc++ 12 ends the program when these find no memory: they allocate where nothing may throw.
TEST(Architecture, folders_are_listed_by_what_may_run_out_of_memory) {
  static const std::regex ends(R"(\b(directory_iterator|(fs|filesystem)::remove_all)\b)");
  for (const auto& file : project_files(kCode)) {
    if (file.starts_with("tests/")) continue;
    for (const auto& line : read_lines(kRoot / file))
      EXPECT_FALSE(matches(without_comment(line), {"directory_iterator", "remove_all"}, ends))
          << file << ": " << line << ": use names_in (core/base/folder.h)";
  }
}

TEST(Architecture, files_stay_short) {
  auto files = project_files({".h", ".cpp", ".cu", ".cuh", ".sv", ".py", ".sh"});
  for (const auto& file : project_files({".txt"})) {
    if (fs::path(file).filename() == "CMakeLists.txt") files.push_back(file);
  }
  for (const auto& file : files)
    EXPECT_LE(read_lines(kRoot / file).size(), longest_allowed(file)) << file;
}

/// A line of the file's head holds the licence, alone in a comment.
bool names_its_licence(const std::string& file) {
  static const std::regex comment(
      "(//|#|/\\*|<!--) SPDX-License-Identifier: Apache-2\\.0( \\*/| -->)?");
  const auto lines = read_lines(kRoot / file);
  const auto head = lines.begin() + std::min<std::ptrdiff_t>(12, std::ssize(lines));
  return std::any_of(lines.begin(), head,
                     [](const auto& line) { return std::regex_match(line, comment); });
}

TEST(Architecture, every_source_file_names_its_licence) {
  auto sources =
      project_files({".h", ".cpp", ".cu", ".cuh", ".sv", ".py", ".pyi", ".sh", ".cmake", ".js",
                     ".cjs", ".css", ".html", ".proto", ".s", ".in", ".toml", ".vlt"});
  for (const auto& file : project_files({".txt"})) {
    if (fs::path(file).filename() == "CMakeLists.txt") sources.push_back(file);
  }
  for (const auto& file : sources) EXPECT_TRUE(names_its_licence(file)) << file;
}

TEST(Architecture, macros_are_the_few_that_were_decided) {
  const std::regex define("^\\s*#\\s*define\\s+(\\w+).*");
  // VL_ ones configure Verilator's run time for failed assertions.
  const std::vector<std::string> of_the_project = {"TRIPTYCH_", "HWY_TARGET_INCLUDE",
                                                   "VL_USER_STOP", "VL_USER_FINISH", "VL_PRINTF"};
  const std::vector<std::string> of_cuda = {
      "__global__",        "__device__",   "__host__",          "__forceinline__",
      "__launch_bounds__", "__restrict__", "__grid_constant__", "TRIPTYCH_"};
  // Words of plain CUDA, for a student's source.
  const std::vector<std::string> of_plain_cuda = {
      "__global__",   "__shared__", "__constant__", "__managed__", "__align__",
      "__noinline__", "threadIdx",  "blockIdx",     "blockDim",    "gridDim",
      "memcpy",       "memmove",    "memset",       "TRIPTYCH_",   "__CUDA_ARCH__"};
  // Words of whole programs: those of CUDA and of its compiler.
  const std::vector<std::string> of_programs = {"__",        "CUD",  "cudaStream", "alignas",
                                                "_GLIBCXX_", "lerp", "TRIPTYCH_"};
  const std::vector<std::string> of_hip_programs = {"__HIP", "HIP_", "hip", "TRIPTYCH_"};
  for (const auto& file : project_files(kCode)) {
    if (file.starts_with("tests/cli/programs/")) continue;  // programs as users write them
    const bool language = file == "backends/cuda/emulation/language.h";
    const bool of_a_program = file == "backends/cuda/program/prelude.h" ||
                              file == "backends/cuda/program/host_prelude.h" ||
                              file == "backends/cuda/program/driver_api.h" ||
                              file.starts_with("backends/cuda/program/runtime_api.h");
    const bool of_hip = file == "backends/cuda/program/hip_runtime.h";
    const auto& allowed = file == "backends/cuda/plain/words.h" ? of_plain_cuda
                          : language                            ? of_cuda
                          : of_a_program                        ? of_programs
                          : of_hip                              ? of_hip_programs
                                                                : of_the_project;
    for (const auto& line : read_lines(kRoot / file)) {
      std::smatch match;
      if (std::regex_match(line, match, define)) {
        EXPECT_TRUE(starts_with_any(match[1], allowed)) << file << ": " << line;
      }
    }
  }
}

TEST(Architecture, every_folder_of_the_plan_has_a_readme) {
  for (const char* folder : {".",
                             "core",
                             "core/base",
                             "core/tensor",
                             "core/ops",
                             "core/graph",
                             "core/autodiff",
                             "core/runtime",
                             "core/io",
                             "core/nn",
                             "core/onnx",
                             "core/conformance",
                             "backends",
                             "backends/cpu",
                             "backends/cuda",
                             "backends/host",
                             "backends/systolic",
                             "tests",
                             "experiments",
                             "experiments/app",
                             "experiments/check",
                             "experiments/compare",
                             "experiments/confine",
                             "experiments/kernels",
                             "experiments/labs",
                             "experiments/machines",
                             "experiments/measure",
                             "experiments/page",
                             "experiments/python",
                             "experiments/scripts",
                             "experiments/studies",
                             "experiments/training",
                             "experiments/training/data",
                             "docs",
                             "docs/decisions"}) {
    EXPECT_TRUE(fs::exists(kRoot / folder / "README.md")) << folder << "/README.md is missing";
  }
}

/// Targets of the inline links and pictures of a Markdown file, outside code blocks.
std::vector<std::string> links_of(const fs::path& path) {
  const std::regex link("\\]\\(([^)\\s]+)\\)");
  std::vector<std::string> targets;
  bool code = false;
  for (const auto& line : read_lines(path)) {
    if (line.starts_with("```")) code = !code;
    if (code) continue;
    for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
      targets.push_back((*it)[1]);
    }
  }
  return targets;
}

/// Anchors of a Markdown file's headings, as GitHub makes them.
std::set<std::string> anchors_of(const fs::path& path) {
  std::set<std::string> anchors;
  bool code = false;
  for (const auto& line : read_lines(path)) {
    if (line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with("```")) {
      code = !code;
    }
    if (code || !line.starts_with('#')) continue;
    std::string anchor;
    for (const char c : line.substr(std::min(line.find_first_not_of("# "), line.size()))) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == ' ') anchor += '-';
      if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80) {
        anchor += static_cast<char>(std::tolower(byte));
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(Architecture, links_in_documents_lead_somewhere) {
  for (const auto& file : project_files({".md"})) {
    for (const auto& link : links_of(kRoot / file)) {
      if (link.find("://") != std::string::npos || link.starts_with("mailto:")) continue;
      const auto mark = link.find('#');
      const auto target = link.substr(0, mark);
      const auto page = target.empty() ? kRoot / file : (kRoot / file).parent_path() / target;
      EXPECT_TRUE(fs::exists(page)) << file << " links to " << link;
      if (mark == std::string::npos || page.extension() != ".md") continue;
      EXPECT_TRUE(anchors_of(page).contains(link.substr(mark + 1)))
          << file << " links to a heading that is missing: " << link;
    }
  }
}

/// Links from docs/README.md, the map of the documentation, lead to every document.
TEST(Architecture, the_map_leads_to_every_document) {
  std::set<std::string> reached;
  std::vector<fs::path> open = {"docs/README.md"};
  while (!open.empty()) {
    const auto page = open.back();
    open.pop_back();
    if (page.extension() != ".md" || !reached.insert(page.string()).second) continue;
    for (const auto& link : links_of(kRoot / page)) {
      if (link.starts_with('#') || link.find("://") != std::string::npos) continue;
      open.push_back((page.parent_path() / link.substr(0, link.find('#'))).lexically_normal());
    }
  }
  for (const auto& file : project_files({".md"})) {
    EXPECT_TRUE(!file.starts_with("docs/") || reached.contains(file)) << file;
  }
}

TEST(Architecture, every_module_of_the_rtl_stands_in_the_reading_order) {
  std::string readme;
  for (const auto& line : read_lines(kRoot / "systolic/README.md")) readme += line + "\n";
  const auto begin = readme.find("## The RTL in reading order");
  const auto order = readme.substr(begin, readme.find("\n## ", begin + 1) - begin);
  for (const auto& file : project_files({".sv"})) {
    if (!file.starts_with("systolic/rtl/")) continue;
    const auto module = fs::path(file).stem().string();
    EXPECT_NE(order.find('`' + module + '`'), std::string::npos) << module;
  }
}

std::ptrdiff_t columns_of(const std::string& line) {
  return std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
}

TEST(Architecture, prose_in_documents_has_at_most_100_columns) {
  for (const auto& file : project_files({".md"})) {
    bool code = false;
    int number = 0;
    for (const auto& line : read_lines(kRoot / file)) {
      ++number;
      const auto text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
      if (text.starts_with("```")) code = !code;
      const bool table = text.starts_with('|');
      const bool whole = line.find("](") != std::string::npos ||  // a link or a piece of code,
                         line.find('`') != std::string::npos;     // which nothing may break
      if (code || table || whole || line.starts_with("    ")) continue;
      EXPECT_LE(columns_of(line), 100) << file << ":" << number;
    }
  }
}

/// A results page is question, command, table and reading. Its history is in the decisions.
TEST(Architecture, results_answer_questions) {
  for (const auto& file : project_files({".md"})) {
    if (!file.starts_with("docs/results/")) continue;
    const auto lines = read_lines(kRoot / file);
    for (const char* part : {"**Question.**", "```", "|", "**Reading.**"}) {
      EXPECT_TRUE(std::ranges::any_of(lines, [&](const auto& l) { return l.starts_with(part); }))
          << file << " has no " << part;
    }
  }
}

/// String literals in the heads of tables, as far as they stand there.
std::set<std::string> table_columns(const std::string& source) {
  static const std::regex head(
      R"re((Table \w+\(\s*|header = |header\.insert\([^{";]*|columns\.push_back\(\s*))re"
      R"re((\{[^}]*\}?|"[^"]*"))re");
  static const std::regex literal("\"([^\"]*)\"");
  std::set<std::string> columns;
  for (std::sregex_iterator table(source.begin(), source.end(), head), end; table != end; ++table) {
    const std::string text = (*table)[2];
    const bool one = (*table)[1].str().starts_with("columns");  // a cell's code follows
    for (std::sregex_iterator name(text.begin(), text.end(), literal); name != end; ++name) {
      columns.insert((*name)[1]);
      if (one) break;
    }
  }
  return columns;
}

TEST(Architecture, every_column_of_a_table_is_defined) {
  std::ostringstream page;
  page << std::ifstream(kRoot / "docs/reference/columns.md").rdbuf();
  std::size_t found = 0;
  for (const auto& file : project_files({".cpp"})) {
    if (!file.starts_with("experiments/")) continue;
    std::ostringstream source;
    source << std::ifstream(kRoot / file).rdbuf();
    for (const auto& column : table_columns(source.str())) {
      if (column.find("{}") != std::string::npos || column.ends_with(' ')) continue;  // composed
      ++found;
      EXPECT_NE(page.str().find("`" + column), std::string::npos)
          << file << " prints a column \"" << column << "\" that docs/reference/columns.md lacks";
    }
  }
  EXPECT_GT(found, 100U) << "the heads of tables look different now";
}

/// A comment begins with its noun or its verb, and asks nothing.
TEST(Architecture, no_comment_begins_with_of_or_what_or_is_a_question) {
  static const std::regex riddle(R"(^\s*///? Of [a-z`"]|//[/<]* What [a-z`"])");
  static const std::regex question(R"(//[/<]* [^"]*\?\s*$)");
  for (const auto& file : project_files({".h", ".cpp", ".cu", ".cuh", ".sv"})) {
    int number = 0;
    for (const auto& line : read_lines(kRoot / file)) {
      ++number;
      EXPECT_FALSE(matches(line, {" Of", " What"}, riddle))
          << file << ":" << number << ": " << line;
      EXPECT_FALSE(matches(line, {"?"}, question)) << file << ":" << number << ": " << line;
    }
  }
}

/// A library says "the option batch". The command line makes "--batch" of it (app/message.h).
TEST(Architecture, only_the_command_line_knows_dashes) {
  static const std::regex dashes(R"re(^[^/]*"(--|[^"]* --)[a-z])re");
  const std::vector<std::string> rooms = {"core/", "backends/", "parallel/", "systolic/",
                                          "experiments/"};
  const auto exempt = places("writes options with dashes");
  for (const auto& file : project_files({".h", ".cpp", ".cu", ".cuh", ".in"})) {
    if (!starts_with_any(file, rooms) || starts_with_any(file, exempt)) continue;
    int number = 0;
    for (const auto& line : read_lines(kRoot / file)) {
      ++number;
      EXPECT_FALSE(matches(line, {"--"}, dashes)) << file << ":" << number << ": " << line;
    }
  }
}

TEST(Architecture, lines_have_at_most_100_columns) {
  for (const auto& file : project_files({".h", ".cpp", ".cu", ".cuh", ".sv"})) {
    int number = 0;
    for (const auto& line : read_lines(kRoot / file)) {
      ++number;
      EXPECT_LE(columns_of(line), 100) << file << ":" << number;
    }
  }
}

}  // namespace
