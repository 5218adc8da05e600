# y = x w, output-stationary. Yours; weights.s is the same product, weight-stationary.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=bf16 shape=8x8
.input  w address=1024 type=bf16 shape=8x8
.output y address=2048 type=f32  shape=8x8

halt
