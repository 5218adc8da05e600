// Elementary functions in float64 that depend on no C library: made of IEEE additions, products and
// quotients in a stated order, they have the same bits from every compiler and processor. They are
// for the host's drawn numbers, rotations, weights and schedules. exact_math.h is their float32
// counterpart for kernels. Range reduction after Cody and Waite, "Software manual for the
// elementary functions", 1980. The series are Taylor's, that of the logarithm is the inverse
// tangent's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace triptych::wide {

/// Largest angle of sin and cos, either sign.
inline constexpr double kLargestAngle = 1048576;

/// Within 1 ulp. An angle beyond kLargestAngle is a bug. NaN gives NaN.
double sin(double angle);
double cos(double angle);
/// e^x within 1 ulp, also for subnormal results. Infinite above 709.78, 0 below -745.13, NaN for
/// NaN.
double exp(double x);
/// The natural logarithm within 1 ulp. -infinity for 0, NaN below 0 and for NaN.
double log(double x);

}  // namespace triptych::wide
