// Hostile ONNX files by class: sizes, bytes, paths, graphs, operators. Then random damage. Any file
// is loaded or refused with an Error: no crash, no read outside its folder.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <functional>
#include <random>

#include "core/onnx/importer.h"
#include "core/onnx/model_reader.h"
#include "tests/unit/memory_limit.h"
#include "tests/unit/onnx/samples.h"

namespace triptych::onnx {
namespace {

using test::dense_sample;
using test::image_sample;
using test::Sample;

constexpr std::size_t kMemory = 1 << 24;
constexpr std::int64_t kHuge = std::int64_t{1} << 40;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
const ImportOptions kUnbound = {.bind = {}, .given = {}};
const ImportOptions kOptions = {.bind = {{"batch", 2}}, .given = {}};

struct Hostile {
  const char* name;
  std::function<Sample()> make;
  bool open = false;  ///< has a size "batch"
};

/// A sample with one thing changed.
Hostile changed(const char* name, Sample (*start)(), const std::function<void(Sample&)>& change) {
  return {name, [=] {
            auto sample = start();
            change(sample);
            return sample;
          }};
}

Hostile dense(const char* name, const std::function<void(Sample&)>& change) {
  auto hostile = changed(name, dense_sample, change);
  hostile.open = true;
  return hostile;
}

Hostile image(const char* name, const std::function<void(Sample&)>& change) {
  return changed(name, image_sample, change);
}

onnx_format::Tensor& weight(Sample& sample) { return *sample.graph().mutable_initializer(0); }

/// Every class must be refused.
void expect_refused(const std::vector<Hostile>& list) {
  const test::MemoryLimit limit(kMemory);
  for (const auto& hostile : list) {
    const test::TemporaryFolder folder;
    const auto path = hostile.make().save(folder / "m.onnx");
    // A model without open sizes is not refused for a binding.
    const bool open = hostile.open;
    EXPECT_THROW(import_model(load_model(path), open ? kOptions : kUnbound), Error) << hostile.name;
  }
}

TEST(HostileOnnx, the_samples_themselves_are_sound) {
  const test::TemporaryFolder folder;
  const auto dense = dense_sample().save(folder / "dense.onnx");
  EXPECT_NO_THROW(import_model(load_model(dense), kOptions));
  const auto image = image_sample().save(folder / "image.onnx");
  EXPECT_NO_THROW(import_model(load_model(image), kUnbound));
}

TEST(HostileOnnx, sizes) {
  const auto sizes = [](const char* name, const test::Integers& dims) {
    return dense(name, [=](Sample& sample) {
      weight(sample).clear_dims();
      for (const auto size : dims) weight(sample).add_dims(size);
    });
  };
  expect_refused({sizes("negative", {-2, 3}), sizes("product wraps to 0", {1LL << 32, 1LL << 32}),
                  sizes("product wraps to 6", {kLargest, 2, 3}), sizes("largest", {kLargest}),
                  sizes("a byte more than there is", {2, 4}), sizes("a byte less", {2, 2}),
                  sizes("exabytes for no bytes", {kHuge, 1 << 20}),
                  sizes("too many dimensions", test::Integers(1000, 1)),
                  dense("bytes wrap", [](Sample& sample) {
                    sample.initializer("d", {kLargest / 4}, test::kDouble).set_raw_data("12345678");
                  })});
}

TEST(HostileOnnx, bytes) {
  const auto with_raw = [](const char* name, int type, const std::string& raw) {
    return dense(name,
                 [=](Sample& sample) { sample.initializer("t", {2}, type).set_raw_data(raw); });
  };
  expect_refused(
      {with_raw("odd bytes", 1, "1234567"), with_raw("no bytes", 1, ""),
       with_raw("more bytes", 1, "123456789"), with_raw("unknown type", 99, "12"),
       with_raw("negative type", -1, "12"), with_raw("undefined type", 0, "12"),
       with_raw("strings", 8, "12"), with_raw("a boolean of 2", 9, "\x01\x02"),
       dense("raw and numbers", [](Sample& s) { weight(s).set_raw_data(std::string(24, 'x')); }),
       dense("a number of int8 that is none",
             [](Sample& s) { s.initializer("t", {1}, 3).add_int32_data(300); }),
       dense("an unknown place", [](Sample& s) { weight(s).set_data_location(7); })});
}

TEST(HostileOnnx, graphs) {
  const auto twice = [](Sample& s) { s.node("Relu", {"x"}, {"y"}); };
  expect_refused(
      {dense("a value twice", twice),
       dense("an initialiser twice", [](Sample& s) { s.floats("b", {1}, {1}); }),
       dense("an input twice", [](Sample& s) { s.input("x", {1}); }),
       dense("a cycle", [](Sample& s) { s.graph().mutable_node(0)->set_input(0, "y"); }),
       dense("reads itself", [](Sample& s) { s.graph().mutable_node(1)->set_input(1, "s"); }),
       dense("dangling input", [](Sample& s) { s.graph().mutable_node(0)->set_input(1, "z"); }),
       dense("dangling output", [](Sample& s) { s.output("z"); }),
       dense("an output twice", [](Sample& s) { s.output("y"); }),
       dense("no output", [](Sample& s) { s.graph().clear_output(); }),
       dense("too few inputs",
             [](Sample& s) { s.graph().mutable_node(1)->mutable_input()->RemoveLast(); }),
       dense("too many inputs", [](Sample& s) { s.graph().mutable_node(2)->add_input("x"); }),
       dense("a node without outputs", [](Sample& s) { s.node("Relu", {"x"}, {}); }),
       dense("an attribute twice", [](Sample& s) { s.integer("a", 1).integer("a", 1); }),
       dense("many attributes",
             [](Sample& s) {
               for (int i = 0; i < 100; ++i) s.integer("a" + std::to_string(i), 1);
             }),
       dense("an attribute of two types", [](Sample& s) { s.attribute("a", 2).set_f(1); }),
       dense("an attribute of no type", [](Sample& s) { s.attribute("a", 0); }),
       dense("a graph inside", [](Sample& s) { s.attribute("body", 5).set_g("\xFF\xFF"); }),
       dense("an unprintable name", [](Sample& s) { s.input("\x1B[2J", {1}); }),
       dense("a name that is no UTF-8", [](Sample& s) { s.input("\xFF\xFE", {1}); }),
       dense("a name that turns text", [](Sample& s) { s.input("\u202Ex", {1}); }),
       dense("two operator sets", [](Sample& s) { s.model.add_opset_import()->set_version(13); }),
       dense("no operator set", [](Sample& s) { s.model.clear_opset_import(); }),
       dense("operator set 0", [](Sample& s) { s.model.mutable_opset_import(0)->set_version(0); }),
       dense("no graph", [](Sample& s) { s.model.clear_graph(); }),
       dense("format 0", [](Sample& s) { s.model.set_ir_version(0); }),
       dense("a sequence", [](Sample& s) { s.graph().mutable_input(0)->clear_type(); })});
}

/// An attribute of node `index`, set to these numbers.
Hostile window(const char* name, int index, const char* attribute, const test::Integers& values) {
  return image(name, [=](Sample& s) {
    auto& node = *s.graph().mutable_node(index);
    for (auto& one : *node.mutable_attribute()) {
      if (one.name() != attribute) continue;
      one.clear_ints();
      for (const auto value : values) one.add_ints(value);
      return;
    }
    auto& added = *node.add_attribute();
    added.set_name(attribute);
    added.set_type(7);
    for (const auto value : values) added.add_ints(value);
  });
}

/// The numbers of an initialiser that shapes follow from.
Hostile numbers(const char* name, const char* tensor, const test::Integers& values) {
  return image(name, [=](Sample& s) {
    for (auto& one : *s.graph().mutable_initializer()) {
      if (one.name() != tensor) continue;
      one.clear_int64_data();
      one.set_dims(0, std::ssize(values));
      for (const auto value : values) one.add_int64_data(value);
    }
  });
}

Hostile scale(const char* name, float value) {
  return image(name, [=](Sample& s) {
    for (auto& one : *s.graph().mutable_initializer()) {
      if (one.name() == "scales") one.set_float_data(2, value);
    }
  });
}

TEST(HostileOnnx, operators) {
  expect_refused(
      {window("stride 0 of a convolution", 0, "strides", {0, 1}),
       window("stride 0 of a pooling", 1, "strides", {0, 1}),
       window("a negative stride", 0, "strides", {-1, 1}),
       window("too few strides", 0, "strides", {1}),
       window("dilation 0", 0, "dilations", {0, 0}),
       window("a huge dilation", 0, "dilations", {kHuge, kHuge}),
       window("negative pads", 0, "pads", {-1, -1, -1, -1}),
       window("huge pads", 0, "pads", {kHuge, kHuge, kHuge, kHuge}),
       window("pads that wrap", 0, "pads", {kLargest, kLargest, kLargest, kLargest}),
       window("kernel 0", 1, "kernel_shape", {0, 2}),
       window("a negative kernel", 1, "kernel_shape", {-2, 2}),
       window("a huge kernel", 1, "kernel_shape", {kHuge, kHuge}),
       window("a kernel larger than the image", 1, "kernel_shape", {100, 100}),
       window("a kernel that hangs over", 1, "kernel_shape", {2, 1 << 20}),
       window("pads as large as the kernel", 1, "pads", {2, 2, 2, 2}),
       image("group 0",
             [](Sample& s) { s.graph().mutable_node(0)->mutable_attribute(2)->set_i(0); }),
       image("group 3",
             [](Sample& s) { s.graph().mutable_node(0)->mutable_attribute(2)->set_i(3); }),
       image("group -1",
             [](Sample& s) { s.graph().mutable_node(0)->mutable_attribute(2)->set_i(-1); }),
       scale("scale 0", 0),
       scale("scale -1", -1),
       scale("scale inf", INFINITY),
       scale("scale nan", NAN),
       scale("a huge scale", 1e12F),
       scale("scale that wraps", 1e30F),
       numbers("step 0", "steps", {0}),
       numbers("axis out of range", "axes", {7}),
       numbers("axis twice", "axes", {2, 2}),
       numbers("axis wraps", "axes", {-kLargest - 1}),
       numbers("too few ends", "ends", {})});
}

/// Each value has 2 times the size of the one before.
TEST(HostileOnnx, growth_is_bounded) {
  Sample sample;
  sample.input("v0", {1024});
  for (int i = 0; i < 60; ++i) {
    const auto from = "v" + std::to_string(i);
    sample.node("Concat", {from, from}, {"v" + std::to_string(i + 1)}).integer("axis", 0);
  }
  sample.output("v60");
  expect_refused({{"doublings", [&] { return sample; }},
                  {"dimensions",
                   [] {
                     Sample deep;
                     deep.input("x", {1}).node("Reshape", {"x", "to"}, {"y"}).output("y");
                     deep.constants("to", test::Integers(1000, 1));
                     return deep;
                   }},
                  {"no dimensions",
                   [] {
                     Sample flat;
                     flat.input("x", {4}).input("i", {4}, test::kInt64);
                     return flat.node("MaxUnpool", {"x", "i"}, {"y"}).output("y");
                   }},
                  {"operators",
                   [] {
                     Sample wide;
                     wide.input("x", {1, 1 << 18}).node("LRN", {"x"}, {"y"}).output("y");
                     wide.integer("size", 1 << 18);
                     return wide;
                   }},
                  {"constants",
                   [] {
                     Sample many;
                     many.node("ConstantOfShape", {"s"}, {"y"}).output("y").constants("s", {kHuge});
                     return many;
                   }},
                  {"a range without end", [] {
                     Sample range;
                     range.floats("a", {}, {0});
                     range.floats("b", {}, {1});
                     range.floats("c", {}, {0});
                     range.node("Range", {"a", "b", "c"}, {"y"}).output("y");
                     return range;
                   }}});
}

/// External data at `location`, prepared by `prepare` in the model's folder.
void expect_location_refused(const char* name, const std::string& location,
                             const std::function<void(const std::filesystem::path&)>& prepare,
                             const char* offset = "0") {
  const test::TemporaryFolder outer;
  const auto folder = outer / "model";
  std::filesystem::create_directory(folder);
  test::put_file(outer / "secret", "secret data!");
  test::put_file(folder / "inside", "inside data!");
  prepare(folder);
  auto sample = dense_sample();
  auto& tensor = sample.initializer("e", {3}, test::kFloat);
  tensor.set_data_location(1);
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>("location", location), {"offset", offset}}) {
    auto& added = *tensor.add_external_data();
    added.set_key(key);
    added.set_value(value);
  }
  try {
    load_model(sample.save(folder / "m.onnx"));
    ADD_FAILURE() << name;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string_view(error.what()).ends_with("\"" + std::string(location.c_str())))
        << name << " cuts the message: " << error.what();
  }
}

TEST(HostileOnnx, paths) {
  namespace fs = std::filesystem;
  const auto nothing = [](const fs::path&) {};
  expect_location_refused("a parent", "../secret", nothing);
  expect_location_refused("a parent inside", "inner/../../secret",
                          [](const fs::path& folder) { fs::create_directory(folder / "inner"); });
  expect_location_refused("absolute", "/etc/passwd", nothing);
  expect_location_refused("empty", "", nothing);
  expect_location_refused("a NUL", std::string("inside\0x", 8), nothing);
  expect_location_refused("missing", "nothing", nothing);
  expect_location_refused("the folder itself", ".", nothing);
  expect_location_refused("a link", "link", [](const fs::path& folder) {
    fs::create_symlink("../secret", folder / "link");
  });
  expect_location_refused("a link inside", "link", [](const fs::path& folder) {
    fs::create_symlink("inside", folder / "link");
  });
  expect_location_refused("a link in a parent", "up/secret",
                          [](const fs::path& folder) { fs::create_symlink("..", folder / "up"); });
  expect_location_refused("a hard link", "hard", [](const fs::path& folder) {
    fs::create_hard_link(folder / "../secret", folder / "hard");
  });
  expect_location_refused("a pipe", "pipe", [](const fs::path& folder) {
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  });
  for (const auto* offset :
       {"1", "12", "-1", "9223372036854775807", "99999999999999999999", "1x", ""}) {
    expect_location_refused(offset, "inside", nothing, offset);
  }
}

TEST(HostileOnnx, keys_of_external_data) {
  const auto with_key = [](const char* name, const char* key, const char* value) {
    return dense(name, [=](Sample& sample) {
      auto& tensor = sample.initializer("e", {3}, test::kFloat);
      tensor.set_data_location(1);
      auto& added = *tensor.add_external_data();
      added.set_key(key);
      added.set_value(value);
    });
  };
  expect_refused({with_key("no location", "offset", "0"), with_key("unknown", "__class__", "x"),
                  with_key("a wrong length", "length", "-1"),
                  dense("data without being external", [](Sample& sample) {
                    weight(sample).add_external_data()->set_key("location");
                  })});
}

TEST(HostileOnnx, parts_are_counted_before_they_are_parsed) {
  const test::TemporaryFolder folder;
  auto sample = dense_sample();
  for (int i = 0; i < 1000; ++i) sample.graph().add_node();
  const auto path = sample.save(folder / "m.onnx");
  EXPECT_THROW(load_model(path, {.parts = 500}), IoError);
}

/// A byte may become a number of eight; raw data stays as long as it is.
TEST(HostileOnnx, packed_numbers_need_memory_before_they_are_parsed) {
  constexpr std::int64_t kMany = 1 << 20;
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::function<void(Sample&)>& change) {
    auto sample = dense_sample();
    change(sample);
    const auto path = sample.save(folder / "m.onnx");
    const test::MemoryLimit limit(7 * kMany);
    try {
      load_model(path);
    } catch (const Error& error) {
      return std::string_view(error.what()).find("the list of its numbers") != std::string::npos;
    }
    return false;
  };
  EXPECT_FALSE(refused([](Sample& s) {
    s.initializer("t", {kMany / 4}, test::kFloat).set_raw_data(std::string(kMany, '\0'));
  }));
  EXPECT_TRUE(refused([](Sample& s) { s.constants("t", test::Integers(kMany, 1)); }));
  EXPECT_TRUE(refused([](Sample& s) {
    auto& tensor = s.initializer("t", {kMany}, 6);
    for (std::int64_t i = 0; i < kMany; ++i) tensor.add_int32_data(1);
  }));
}

/// Loads and imports a damaged file; an Error is what may happen.
void load_damaged(const std::filesystem::path& path, const std::string& bytes) {
  test::put_file(path, bytes);
  const test::MemoryLimit limit(kMemory);
  try {
    const auto model = load_model(path);
    const bool open = !model.inputs.empty() && !model.inputs[0].shape.empty() &&
                      model.inputs[0].shape[0].symbol == "batch";
    import_model(model, open ? kOptions : kUnbound);
  } catch (const Error&) {
  }
}

TEST(HostileOnnx, every_cut_file_is_refused_or_read) {
  const test::TemporaryFolder folder;
  const auto whole = image_sample().model.SerializeAsString();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    load_damaged(folder / "m.onnx", whole.substr(0, size));
  }
}

TEST(HostileOnnx, random_damage) {
  const test::TemporaryFolder folder;
  std::mt19937 random(1);
  const std::string starts[] = {image_sample().model.SerializeAsString(),
                                dense_sample().model.SerializeAsString()};
  for (int round = 0; round < 3000; ++round) {
    auto bytes = starts[round % 2];
    for (auto left = 1 + random() % 4; left > 0; --left) {
      const auto at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1U << random() % 8));
          break;
        case 2:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 32));
      }
      if (bytes.empty()) bytes = "x";
    }
    load_damaged(folder / "m.onnx", bytes);
  }
}

}  // namespace
}  // namespace triptych::onnx
