// Inline PTX with several instructions, registers of its own, predicates, vectors and floats.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>

struct Node {
  int value;
  __device__ explicit Node(int from) : value(from) {}
};

__global__ void run(float* x, int n, const float4* vectors, uint16_t* halves) {
  __shared__ float shared[2];
  asm("{\n"
      "  .reg .f32 t;\n"
      "  .reg .pred p;\n"
      "  setp.gt.s32 p, %2, 3;\n"
      "  mul.f32 t, %1, %1;       // a comment\n"
      "  @p add.rn.f32 t, t, 0f3F800000;\n"
      "  @!p mov.f32 t, 0f00000000;\n"
      "  sub.f32 %0, t, %1;\n"
      "}"
      : "=f"(x[1])
      : "f"(x[0]), "r"(n));
  float a, b, c, d;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
               : "l"(vectors));
  x[2] = a + b + c + d;
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(2.0F), "f"(1.0F));
  asm("mov.b32 {%0, %1}, %2;" : "=h"(halves[0]), "=h"(halves[1]) : "r"(pair));
  double product;
  asm("fma.rn.f64 %0, %1, %1, %1;" : "=d"(product) : "d"(3.0));
  x[3] = static_cast<float>(product);
  shared[0] = 0;
  shared[1] = 1;
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("ld.shared.f32 %0, [%1 + 4];" : "=f"(x[4]) : "r"(at));
  asm volatile("st.shared.f32 [%0], %1;" ::"l"(__cvta_generic_to_shared(shared)), "f"(x[4] + 1));
  x[5] = shared[0];
  auto* node = new Node(7);
  x[6] = static_cast<float>(node->value);
  delete node;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(x[7]) : "f"(3.0F));
  asm("{.reg .b64 wide; mul.wide.u32 wide, %1, %1; cvt.u32.u64 %0, wide;}" : "=r"(pair) : "r"(3));
  x[8] = static_cast<float>(pair);
}

int main() {
  float* x;
  float4* vectors;
  uint16_t* halves;
  cudaMallocManaged(&x, 9 * sizeof(float));
  cudaMallocManaged(&vectors, sizeof(float4));
  cudaMallocManaged(&halves, 2 * sizeof(uint16_t));
  x[0] = 3;
  *vectors = make_float4(1, 2, 3, 4);
  run<<<1, 1>>>(x, 5, vectors, halves);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::printf("%g %g %x %x %g %g %g %g %g %g\n", x[1], x[2], halves[0], halves[1], x[3], x[4], x[5],
              x[6], x[7], x[8]);
}
