# Mean and variance of each column of x. Yours; step 4 has the order of the additions.
# SPDX-License-Identifier: Apache-2.0
.input  x        address=0    type=f32 shape=64x4
.output mean     address=2048 type=f32 shape=1x4
.output variance address=2064 type=f32 shape=1x4

halt
