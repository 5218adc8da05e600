# z = (x - mean) / sqrt(variance + epsilon) of each row of x. Yours; step 5 has the formulas.
# SPDX-License-Identifier: Apache-2.0
.input  x address=0    type=f32 shape=32x4
.output z address=2048 type=f32 shape=32x4

halt
