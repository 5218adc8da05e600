// External data in a Hugging Face cache, and its checksum. Hostile locations without a cache are in
// hostile_model_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/external_data.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/onnx/model_reader.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/onnx/samples.h"

namespace triptych::onnx {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kName = "model.onnx_data";
const std::string kBlob(64, 'b');
const std::string kShared = "ab" + std::string(62, '0');
const std::string kSecret = "not the data";  // as long as the data

std::string content() {
  const float values[] = {9, 8, 7};
  return {reinterpret_cast<const char*>(values), sizeof(values)};
}

void add_external(test::Sample& sample, const char* name,
                  const std::vector<std::pair<std::string, std::string>>& entries) {
  auto& tensor = sample.initializer(name, {3}, test::kFloat);
  tensor.set_data_location(1);
  for (const auto& [key, value] : entries) {
    auto& added = *tensor.add_external_data();
    added.set_key(key);
    added.set_value(value);
  }
}

/// A hub's cache with one repository, with its model and data as links to blobs.
struct Cache {
  Cache() {
    fs::create_directories(repository / "blobs");
    fs::create_directories(revision / "onnx");
    auto sample = test::dense_sample();
    add_external(sample, "e", {{"location", kName}});
    sample.save(repository / "blobs/model");
    test::put_file(repository / "blobs" / kBlob, content());
    test::put_file(outer / "secret", kSecret);
    test::put_file(hub / "secret", kSecret);
    fs::create_symlink("../../blobs/model", revision / "model.onnx");
    link("../../blobs/" + kBlob);
  }

  /// Where the link to the data leads.
  void link(const std::string& target) {
    fs::remove(revision / kName);
    fs::create_symlink(target, revision / kName);
  }

  /// Puts something else in the place of the blob.
  fs::path without_blob() {
    fs::remove(repository / "blobs" / kBlob);
    return repository / "blobs" / kBlob;
  }

  std::string shared_blob(const std::string& content) {
    fs::create_directories(hub / "blobs/ab");
    test::put_file(hub / "blobs/ab" / kShared, content);
    return "../../blobs/ab/" + kShared;
  }

  Model load() const { return load_model(revision / "model.onnx"); }

  void expect_loaded() const {
    EXPECT_THAT(load().initializers.at("e")->as<float>(), ElementsAre(9, 8, 7));
  }

  void expect_refused(const char* why, const char* says = "symbolic link") const {
    try {
      load();
      ADD_FAILURE() << why;
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr(kName)) << why;
      EXPECT_THAT(error.what(), HasSubstr(says)) << why;
    }
  }

  test::TemporaryFolder outer;
  fs::path hub = outer / "hub";
  fs::path repository = hub / "models--a--b";
  fs::path revision = repository / "snapshots/0123";
};

TEST(HubCache, a_model_and_its_data_are_links_to_blobs) { Cache().expect_loaded(); }

TEST(HubCache, data_lies_beside_the_name_also_in_a_folder_of_the_revision) {
  const Cache cache;
  fs::create_symlink("../../../blobs/model", cache.revision / "onnx/model.onnx");
  fs::create_symlink("../../../blobs/" + kBlob, cache.revision / "onnx" / kName);
  EXPECT_NO_THROW(load_model(cache.revision / "onnx/model.onnx"));
}

TEST(HubCache, a_folder_that_leads_to_a_snapshot_may_name_the_model) {
  const Cache cache;
  fs::create_directory_symlink(cache.revision, cache.outer / "mine");
  EXPECT_NO_THROW(load_model(cache.outer / "mine/model.onnx"));
}

TEST(HubCache, a_blob_that_repositories_share_is_read) {
  Cache cache;
  fs::create_symlink(cache.shared_blob(content()), cache.without_blob());
  cache.expect_loaded();
}

TEST(HubCache, a_blob_that_is_missing_is_named) {
  Cache cache;
  cache.without_blob();
  cache.expect_refused("missing", "No such file");
}

TEST(HubCache, links_to_other_places_are_refused) {
  Cache cache;
  fs::create_directories(cache.hub / "models--other/blobs");
  test::put_file(cache.hub / "models--other/blobs" / kBlob, kSecret);
  test::put_file(cache.repository / "secret", kSecret);
  fs::create_directories(cache.outer / "blobs");
  test::put_file(cache.outer / "blobs/secret", kSecret);
  fs::create_directories(cache.repository / "snapshots/blobs");
  test::put_file(cache.repository / "snapshots/blobs/secret", kSecret);
  fs::create_directories(cache.repository / "blobs/inner");
  test::put_file(cache.repository / "blobs/inner/secret", kSecret);
  fs::create_symlink("../../blobs/" + kBlob, cache.revision / "second");
  for (const auto& target :
       {(cache.repository / "blobs" / kBlob).string(), std::string("/etc/hostname"),
        std::string("../../../../secret"), std::string("../../../secret"),
        std::string("../../secret"), std::string("../../blobs/../secret"),
        std::string("../../blobs/../../../secret"), std::string("../../blobs/inner/secret"),
        std::string("../../../models--other/blobs/") + kBlob,
        std::string("../../../../blobs/secret"), std::string("../blobs/secret"),
        std::string("./../../blobs/") + kBlob, std::string("../../blobs/"),
        std::string("../../blobs/."), std::string("../../blobs/.."), std::string("second"),
        std::string("../0123/second")}) {
    cache.link(target);
    cache.expect_refused(target.c_str(), "");
  }
}

TEST(HubCache, a_chain_of_links_is_refused) {
  Cache cache;
  test::put_file(cache.repository / "blobs/real", content());
  const auto shared = cache.shared_blob(content());
  fs::create_symlink("ab/" + kShared, cache.hub / "blobs/short");
  fs::create_symlink(kShared, cache.hub / "blobs/ab" / ("ab" + std::string(62, '1')));
  for (const auto& target :
       {std::string("real"), std::string("../secret"), std::string("../../../secret"),
        (cache.outer / "secret").string(), std::string("../../blobs/short"),
        std::string("../../models--a--b/blobs/real"), "../" + shared, shared + "/../x",
        std::string("../../blobs/ac/") + kShared,
        std::string("../../blobs/ab/ab") + std::string(62, '1')}) {
    fs::create_symlink(target, cache.without_blob());
    cache.expect_refused(target.c_str(), "");
  }
}

TEST(HubCache, only_a_regular_file_with_one_name_is_a_blob) {
  Cache cache;
  ASSERT_EQ(::mkfifo(cache.without_blob().c_str(), 0600), 0);
  cache.expect_refused("a pipe", "not a regular file");
  fs::create_directory(cache.without_blob());
  cache.expect_refused("a folder", "not a regular file");
  fs::create_hard_link(cache.outer / "secret", cache.without_blob());
  cache.expect_refused("a hard link", "hard links");
}

TEST(HubCache, folders_of_the_cache_are_no_links) {
  for (const auto* moved : {"blobs", "snapshots"}) {
    const Cache cache;
    fs::remove(cache.revision / "model.onnx");
    fs::copy_file(cache.repository / "blobs/model", cache.revision / "model.onnx");
    fs::rename(cache.repository / moved, cache.outer / moved);
    fs::create_directory_symlink(cache.outer / moved, cache.repository / moved);
    cache.expect_refused(moved, "");
  }
}

TEST(HubCache, a_link_in_the_middle_of_the_location_is_refused) {
  const Cache cache;
  auto sample = test::dense_sample();
  add_external(sample, "e", {{"location", "up/" + kName}});
  fs::create_directory_symlink("../0123", cache.revision / "up");
  EXPECT_THROW(load_model(sample.save(cache.revision / "own.onnx")), IoError);
}

TEST(HubCache, the_same_links_outside_of_a_cache_are_refused) {
  const Cache cache;
  fs::rename(cache.repository / "snapshots", cache.repository / "others");
  const auto model = cache.repository / "others/0123/model.onnx";
  EXPECT_THROW(load_model(model), IoError);
}

TEST(ExternalData, a_model_that_is_a_link_has_its_data_beside_the_link) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "real");
  auto sample = test::dense_sample();
  add_external(sample, "e", {{"location", kName}});
  sample.save(folder / "real/model.onnx");
  fs::create_symlink("real/model.onnx", folder / "link.onnx");
  test::put_file(folder / "real" / kName, content());
  try {
    load_model(folder / "link.onnx");
    ADD_FAILURE() << "it was read";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("beside the link"));
  }
  test::put_file(folder / kName, content());
  EXPECT_NO_THROW(load_model(folder / "link.onnx"));
}

/// Loads a model with a tensor that has these checksums.
void load_with(const std::vector<std::string>& checksums, const std::string& data) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "w", data);
  auto sample = test::dense_sample();
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    add_external(sample, fmt::format("e{}", i).c_str(),
                 {{"location", "w"}, {"checksum", checksums[i]}});
  }
  load_model(sample.save(folder / "m.onnx"));
}

std::string refusal(const std::vector<std::string>& checksums, const std::string& data) {
  try {
    load_with(checksums, data);
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

constexpr auto kAbc = "a9993e364706816aba3e25717850c26c9cd0d89d";  // SHA-1 of "abc"

TEST(ExternalData, a_checksum_is_the_sha1_of_the_whole_file) {
  const std::string zeros(20, '\0');
  const std::string right = "6768033e216468247bd031a0a2d9876d79818f8f";  // of them
  EXPECT_NO_THROW(load_with({right, right}, zeros));
  EXPECT_NO_THROW(load_with({"6768033E216468247BD031A0A2D9876D79818F8F"}, zeros));
  const auto changed = refusal({right}, zeros.substr(1) + "x");
  EXPECT_THAT(changed, HasSubstr("\"w\""));
  EXPECT_THAT(changed, HasSubstr(right));
  EXPECT_THAT(refusal({right, kAbc}, zeros), HasSubstr(std::string("SHA-1 is ") + right));
}

TEST(ExternalData, a_malformed_checksum_is_refused) {
  const std::string right = "6768033e216468247bd031a0a2d9876d79818f8f";
  for (const auto& checksum : {std::string(), std::string("0"), right.substr(1), right + "0",
                               "sha1:" + right, right.substr(1) + "g", right.substr(1) + " "}) {
    EXPECT_THAT(refusal({checksum}, std::string(20, '\0')), HasSubstr("hexadecimal")) << checksum;
  }
}

TEST(ExternalData, a_file_above_the_limit_is_not_hashed) {
  const test::MemoryLimit limit(std::size_t{1} << 20);
  const auto message = refusal({kAbc}, std::string(std::size_t{4} << 20, '\0'));
  EXPECT_THAT(message, HasSubstr("raise the limit"));
}

}  // namespace
}  // namespace triptych::onnx
