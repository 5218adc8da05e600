// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/array_errors.h"

#include <system_error>

#include "core/base/error.h"
#include "systolic/isa/simulator.h"

namespace triptych::app {

void with_array_errors(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& error) {
    throw IoError(error.what());
  } catch (const std::invalid_argument& error) {
    throw InvalidArgument(error.what());
  } catch (const mmu::Mismatch& error) {
    throw NumericError(error.what());
  } catch (const mmu::HardwareFault& error) {
    throw NumericError(error.what());
  } catch (const std::runtime_error& error) {
    throw DeviceError(error.what());
  }
}

}  // namespace triptych::app
