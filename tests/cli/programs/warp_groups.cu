// Cooperative groups, votes of a block, matches and reductions of a warp, packed integers.
// SPDX-License-Identifier: Apache-2.0
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cstdio>

namespace cg = cooperative_groups;

__device__ int sum_of_block(const cg::thread_block& block, int value, int* scratch) {
  const int rank = block.thread_rank();
  for (int i = block.size() / 2; i > 0; i /= 2) {
    scratch[rank] = value;
    block.sync();
    if (rank < i) value += scratch[rank + i];
    cg::sync(block);
  }
  return value;
}

__global__ void groups(int* out) {
  __shared__ int scratch[64];
  auto block = cg::this_thread_block();
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  auto warp = cg::tiled_partition<32>(block);
  const int rank = block.thread_rank();
  const int total = sum_of_block(block, rank, scratch);
  int part = rank;
  for (int i = tile.size() / 2; i > 0; i /= 2) part += tile.shfl_down(part, i);
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = part;  // 120, 376, 632, 888
  if (rank == 0) out[4] = total;
  const int largest = cg::reduce(tile, rank, cg::greater<int>());
  const int before = cg::exclusive_scan(tile, 2);
  if (rank == 40) {
    out[5] = largest;
    out[6] = before;
  }
  const unsigned votes = warp.ballot(rank % 2 == 0);
  if (rank == 33) out[7] = votes == 0x55555555u;
  if (rank == 0) out[8] = cg::this_grid().size() == 64;
}

__global__ void functions(int* out) {
  const int i = threadIdx.x;
  const int count = __syncthreads_count(i % 3 == 0), any = __syncthreads_or(i == 63),
            all = __syncthreads_and(i < 63);
  int same_for_all = 0;
  const unsigned match = __match_any_sync(0xffffffff, i % 4);
  __match_all_sync(0xffffffff, 7, &same_for_all);
  const int sum = __reduce_add_sync(0xffffffff, i), most = __reduce_max_sync(0xffffffff, i);
  if (i != 1) return;
  const int values[] = {count,
                        any,
                        all,
                        match == 0x22222222,
                        same_for_all,
                        sum,
                        most,
                        __dp4a(0x01020304, 0x01010101, 5),
                        int(__byte_perm(0x33221100, 0x77665544, 0x7410)),
                        int(__funnelshift_l(0x80000000, 1, 4))};
  for (int k = 0; k < 10; ++k) out[k] = values[k];
}

int main() {
  int *device, host[10];
  cudaMalloc(&device, sizeof(host));
  groups<<<1, 64>>>(device);
  cudaMemcpy(host, device, 9 * sizeof(int), cudaMemcpyDeviceToHost);
  for (int k = 0; k < 9; ++k) printf("%d ", host[k]);
  functions<<<1, 64>>>(device);
  cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
  for (int value : host) printf("%x ", value);
  printf("\n");
  cudaFree(device);
}
