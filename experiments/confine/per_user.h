// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <optional>

namespace triptych::confine {

/// A value that is computed once per user. The user of this process may change.
template <class Value>
class PerUser {
 public:
  template <class Find>
  const Value& get(const Find& find) {
    const auto user = geteuid();
    if (!value_ || user_ != user) value_ = find();
    user_ = user;
    return *value_;
  }

 private:
  std::optional<Value> value_;
  uid_t user_ = 0;
};

}  // namespace triptych::confine
