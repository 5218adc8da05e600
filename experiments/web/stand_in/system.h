// Names that the standard library for WebAssembly lacks, for a system without files that
// reports no caches. Included before the sources that use them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __cplusplus
#include <filesystem>
#include <istream>

enum { _SC_LEVEL1_DCACHE_SIZE = -3, _SC_LEVEL2_CACHE_SIZE = -4, _SC_LEVEL3_CACHE_SIZE = -5 };

_LIBCPP_BEGIN_NAMESPACE_FILESYSTEM

inline bool is_directory(const path&, error_code&) { return false; }
inline bool is_regular_file(const path&, error_code&) { return false; }

_LIBCPP_END_NAMESPACE_FILESYSTEM

_LIBCPP_BEGIN_NAMESPACE_STD

/// A missing file.
template <>
class basic_ifstream<char> : public istream {
 public:
  explicit basic_ifstream(const auto&, ios_base::openmode = ios_base::in) : istream(nullptr) {
    setstate(ios_base::failbit);
  }
};

_LIBCPP_END_NAMESPACE_STD
#endif
