// SPDX-License-Identifier: Apache-2.0
#include "core/io/npy.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/io/atomic_file.h"
#include "core/io/safetensors.h"

namespace triptych {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::int64_t kMaxHeader = 1 << 20;
constexpr std::size_t kMaxRank = 64;

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"f4", DType::F32}, {"f2", DType::F16}, {"i1", DType::I8},  {"u1", DType::U8},
    {"i4", DType::I32}, {"i8", DType::I64}, {"b1", DType::Bool}};

[[noreturn]] void refuse(const std::string& problem) { throw IoError("npy header: " + problem); }

/// float64, which no Tensor holds.
constexpr std::string_view kDouble = "<f8";

constexpr const char* kReadable = "little-endian f4, f2, i1, u1, i4, i8 and b1";

DType dtype_of_descr(std::string_view descr) {
  const auto order = descr.empty() ? ' ' : descr.front();
  const auto type = descr.substr(std::min<std::size_t>(1, descr.size()));
  for (const auto& [name, dtype] : kTypes) {
    const bool single = dtype_size(dtype) == 1;
    if (type == name && (order == '<' || (order == '|' && single))) return dtype;
  }
  const bool numeric = type.size() == 2 && std::string_view("fiub").find(type[0]) != type.npos;
  const auto message =
      fmt::format("element type \"{:.100}\"; {} can be read: convert with array.astype(\"<f4\")",
                  descr, kReadable);
  if (numeric) throw UnsupportedError(message);
  refuse(message);
}

/// Reads the subset of Python's literals that NumPy writes: one dictionary with string keys.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  /// Takes float64 for F32 and is_double() then.
  void allow_doubles() { allows_doubles_ = true; }
  bool is_double() const { return is_double_; }

  TensorSpec read() {
    expect('{');
    while (!accept('}')) {
      read_item();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (text_ != "\n") refuse("it must end with its dictionary, spaces and a line feed");
    if (!dtype_ || !shape_ || !in_c_order_) refuse("lacks descr, fortran_order or shape");
    return {*dtype_, *shape_};
  }

 private:
  void read_item() {
    const auto key = read_string();
    expect(':');
    const auto once = [&](bool seen) {
      if (seen) refuse(fmt::format("key \"{:.100}\" appears twice", key));
    };
    if (key == "descr") {
      once(dtype_.has_value());
      dtype_ = read_dtype();
    } else if (key == "fortran_order") {
      once(in_c_order_);
      read_c_order();
    } else if (key == "shape") {
      once(shape_.has_value());
      shape_ = read_shape();
    } else {
      refuse(fmt::format("unknown key \"{:.100}\"", key));
    }
  }

  DType read_dtype() {
    if (accept('[')) {
      refuse(fmt::format(
          "element type \"[{:.100}\", a record of fields; arrays of {} can be read: save "
          "each field by itself, as array[\"x\"]",
          text_.substr(0, text_.find(']') + 1), kReadable));
    }
    const auto descr = read_string();
    is_double_ = allows_doubles_ && descr == kDouble;
    return is_double_ ? DType::F32 : dtype_of_descr(descr);
  }

  std::string_view read_string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const auto end = text_.find(quote);
    if (end == text_.npos) refuse("a string does not end");
    const auto value = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return value;
  }

  void read_c_order() {
    skip_spaces();
    if (text_.starts_with("True")) {
      throw UnsupportedError(
          "npy header: the array is in Fortran order; save numpy.ascontiguousarray(array)");
    }
    if (!text_.starts_with("False")) refuse("fortran_order is neither True nor False");
    text_.remove_prefix(5);
    in_c_order_ = true;
  }

  Shape read_shape() {
    Dims dims;
    expect('(');
    while (!accept(')')) {
      dims.push_back(read_size());
      if (dims.size() > kMaxRank) refuse("too many dimensions");
      if (!accept(',')) {
        if (dims.size() == 1) refuse("the shape is not a tuple");
        expect(')');
        break;
      }
    }
    return Shape(std::move(dims));
  }

  std::int64_t read_size() {
    skip_spaces();
    std::int64_t size = 0;
    const bool digit = !text_.empty() && text_[0] >= '0' && text_[0] <= '9';
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
    if (!digit || error != std::errc()) refuse("a size is not an integer from 0 to 2^63 - 1");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return size;
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }

  bool accept(char wanted) {
    skip_spaces();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse(fmt::format("expected \"{}\"", wanted));
  }

  std::string_view text_;
  std::optional<DType> dtype_;
  std::optional<Shape> shape_;
  bool in_c_order_ = false;
  bool allows_doubles_ = false;
  bool is_double_ = false;
};

struct Layout {
  std::string dictionary;
  std::int64_t data_offset = 0;
};

Layout read_layout(const InputFile& file) {
  if (file.size() < 10) file.refuse("too short for a .npy file");
  const auto magic = file.read_text(0, 8);
  const auto major = static_cast<unsigned char>(magic[6]);
  const auto minor = static_cast<unsigned char>(magic[7]);
  if (!magic.starts_with(kMagic)) file.refuse("not a .npy file, such as numpy.save writes");
  if ((major != 1 && major != 2) || minor != 0) {
    file.refuse(fmt::format("npy version {}.{}; 1.0 and 2.0 can be read", major, minor));
  }
  const std::int64_t start = major == 1 ? 10 : 12;
  if (file.size() < start) file.refuse("ends inside its header");
  std::int64_t length = 0;
  for (auto offset = start - 1; offset >= 8; --offset) {
    length = length * 256 + static_cast<unsigned char>(file.read_text(offset, 1)[0]);
  }
  if (length > std::min(file.size() - start, kMaxHeader)) {
    file.refuse(fmt::format("claims a header of {} bytes; {} bytes follow, the limit is {}", length,
                            file.size() - start, kMaxHeader));
  }
  return {file.read_text(start, length), start + length};
}

/// `descr` before the data of an array of `shape`.
std::string header_with(std::string_view descr, const Shape& sizes) {
  std::string shape;
  for (const auto size : sizes.dims()) shape += fmt::format("{}, ", size);
  if (sizes.rank() > 1) shape.resize(shape.size() - 2);
  if (sizes.rank() == 1) shape.pop_back();
  auto text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // NumPy aligns the data to 64 bytes. 10 bytes come before the dictionary, a line feed ends it.
  text.append(static_cast<std::size_t>(round_up(std::ssize(text) + 11, 64)) - text.size() - 11,
              ' ');
  return text + "\n";
}

std::string header_of(const TensorSpec& spec) {
  const auto* type =
      std::ranges::find(kTypes, spec.dtype, &std::pair<std::string_view, DType>::second);
  if (type == std::end(kTypes)) {
    throw UnsupportedError(fmt::format("npy has no {}; cast to f32 first", to_string(spec.dtype)));
  }
  const auto order = dtype_size(spec.dtype) == 1 ? '|' : '<';
  return header_with(fmt::format("{}{}", order, type->first), spec.shape);
}

using Put = std::function<void(std::span<const std::byte>)>;

/// Numbers of a file that are converted at a time.
constexpr std::size_t kConverted = std::size_t{1} << 16;

void put_head(const std::string& header, const Put& put) {
  std::string head(kMagic);
  head += {1, 0, static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  head += header;
  put(std::as_bytes(std::span(head)));
}

/// Elements as `To`, little by little.
template <class To, class From>
void put_as(std::span<const From> elements, const Put& put) {
  std::vector<To> part;
  for (; !elements.empty(); elements = elements.subspan(part.size())) {
    part.resize(std::min(elements.size(), kConverted));
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<To>(elements[i]);
    put(std::as_bytes(std::span(part)));
  }
}

/// Passes the parts of a file to `put`, one after another.
void put_npy(const Tensor& tensor, bool widened, const Put& put) {
  if (widened) {
    put_head(header_with(kDouble, tensor.shape()), put);
    put_as<double>(tensor.as<float>(), put);
  } else if (tensor.dtype() == DType::BF16) {
    put_head(header_of({DType::F32, tensor.shape()}), put);
    put_as<float>(tensor.as<BFloat16>(), put);
  } else {
    put_head(header_of(tensor.spec()), put);
    put(tensor.bytes());
  }
}

std::string encode(const Tensor& tensor, bool widened) {
  std::string file;
  put_npy(tensor, widened, [&](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return file;
}

/// Throws unless the file has the `needed` bytes. `present` are there.
void require_all(const TensorSpec& spec, std::size_t needed, std::int64_t present) {
  if (needed == static_cast<std::size_t>(present)) return;
  throw IoError(
      fmt::format("{} needs {} bytes, {} follow the header", to_string(spec), needed, present));
}

}  // namespace

TensorSpec parse_npy_header(std::string_view dictionary) { return HeaderReader(dictionary).read(); }

TensorSpec load_npy_spec(const std::filesystem::path& path) {
  const InputFile file(path);
  return file.named([&] { return parse_npy_header(read_layout(file).dictionary); });
}

Tensor load_npy(const std::filesystem::path& path, std::int64_t max_bytes) {
  const InputFile file(path, max_bytes);
  const auto layout = read_layout(file);
  return file.named([&] {
    auto spec = parse_npy_header(layout.dictionary);
    require_all(spec, spec.bytes(), file.size() - layout.data_offset);
    Tensor tensor(std::move(spec));
    file.read(layout.data_offset, tensor.bytes());
    internal::require_valid_bools(tensor);
    return tensor;
  });
}

bool fits_float(double value) {
  if (value == 0 || !std::isfinite(value)) return true;
  const auto size = std::abs(static_cast<float>(value));
  return size >= std::numeric_limits<float>::min() && std::isfinite(size);
}

namespace {

/// Reads doubles from `offset` on as floats. Throws UnsupportedError for one that no float holds.
void read_narrowed(const InputFile& file, std::int64_t offset, std::span<float> into) {
  std::vector<double> part;
  for (; !into.empty(); into = into.subspan(part.size())) {
    part.resize(std::min(into.size(), kConverted));
    file.read(offset, std::as_writable_bytes(std::span(part)));
    offset += std::ssize(part) * static_cast<std::int64_t>(sizeof(double));
    const auto misfit = std::ranges::find_if_not(part, fits_float);
    if (misfit != part.end()) {
      throw UnsupportedError(
          fmt::format("it is float64, computed in float32, where {} has no place", *misfit));
    }
    std::ranges::transform(part, into.begin(),
                           [](double value) { return static_cast<float>(value); });
  }
}

}  // namespace

Tensor load_npy_narrowed(const std::filesystem::path& path, std::int64_t max_bytes) {
  const InputFile file(path, max_bytes);
  const auto layout = read_layout(file);
  return file.named([&] {
    HeaderReader header(layout.dictionary);
    header.allow_doubles();
    auto spec = header.read();
    if (!header.is_double()) throw IoError(fmt::format("is {}, not float64", to_string(spec)));
    const auto needed = checked_mul(spec.shape.elements(), sizeof(double));
    require_all(spec, static_cast<std::size_t>(needed), file.size() - layout.data_offset);
    Tensor tensor(std::move(spec));
    read_narrowed(file, layout.data_offset, tensor.as<float>());
    return tensor;
  });
}

std::string encode_npy(const Tensor& tensor) { return encode(tensor, false); }

std::string encode_npy_widened(const Tensor& tensor) { return encode(tensor, true); }

std::int64_t write_npy(AtomicFile& file, const Tensor& tensor, bool widened) {
  std::int64_t size = 0;
  put_npy(tensor, widened, [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    size += std::ssize(bytes);
  });
  return size;
}

void save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  AtomicFile file(path);
  write_npy(file, tensor);
  file.commit();
}

}  // namespace triptych
