# y = ReLU((x - mean) factor + bias) with factor = scale inverse. Yours; step 3 has the formula.
# The rows of p are mean, inverse, scale and bias.
# SPDX-License-Identifier: Apache-2.0
.input  p address=0    type=f32 shape=4x4
.input  x address=64   type=f32 shape=64x4
.output y address=2048 type=f32 shape=64x4

halt
