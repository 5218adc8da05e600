// A reference to something callable, which must outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace triptych::cuda::emulation {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  FunctionRef() = default;
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(const F& f)  // NOLINT(google-explicit-constructor): as std::function
      : object_(&f), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(object))(arguments...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(object_, arguments...); }

 private:
  const void* object_ = nullptr;
  Result (*call_)(const void*, Arguments...) = nullptr;
};

}  // namespace triptych::cuda::emulation
