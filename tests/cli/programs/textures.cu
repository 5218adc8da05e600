// Textures and surfaces of every shape: filters, address modes, layers, a cube map, references.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>

texture<int, 1, cudaReadModeElementType> reference;

struct Objects {
  cudaTextureObject_t elements, plane, bytes, volume, layers, cube;
};

__global__ void read_all(Objects of, float* out) {
  int n = 0;
  out[n++] = tex1Dfetch<float>(of.elements, 3);
  out[n++] = tex1Dfetch<float>(of.elements, 99);               // outside: 0
  out[n++] = tex2D<float>(of.plane, 1.5f, 2.5f);               // the middle of a texel
  out[n++] = tex2D<float>(of.plane, 2.0f, 2.5f);               // half of two
  out[n++] = tex2D<float>(of.plane, -9.0f, 99.0f);             // clamped
  const float4 color = tex2D<float4>(of.bytes, 0.25f, 1.25f);  // wraps to row 0
  out[n++] = color.x + color.w;
  out[n++] = tex3D<float>(of.volume, 1.0f, 0.5f, 1.5f);
  out[n++] = tex2DLayered<float>(of.layers, 0.5f, 1.5f, 2);
  out[n++] = texCubemap<float>(of.cube, 0.1f, -1.0f, 0.2f);  // the face of -y
  out[n++] = tex1Dfetch(reference, 5);
}

__global__ void invert(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width) {
  const int x = threadIdx.x, y = blockIdx.x;
  const uchar4 texel = surf2Dread<uchar4>(from, x * 4, y);
  surf2Dwrite(make_uchar4(255 - texel.x, texel.y, texel.z, 255), to, (width - 1 - x) * 4, y);
}

__global__ void sum_rows(cudaTextureObject_t plane, float* sums) {
  float sum = 0;
  for (int x = 0; x < 4; ++x) sum += tex2D<float>(plane, x + 0.5f, threadIdx.x + 0.5f);
  sums[threadIdx.x] = sum;
}

cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureFilterMode filter,
                               cudaTextureAddressMode address, int normalized,
                               cudaTextureReadMode read = cudaReadModeElementType) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = address;
  how.filterMode = filter;
  how.normalizedCoords = normalized;
  how.readMode = read;
  cudaTextureObject_t object = 0;
  cudaCreateTextureObject(&object, &resource, &how, nullptr);
  return object;
}

cudaArray_t box_of(float* values, cudaExtent extent, unsigned flags) {
  const auto channels = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMalloc3DArray(&array, &channels, extent, flags);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr =
      make_cudaPitchedPtr(values, extent.width * sizeof(float), extent.width, extent.height);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  cudaMemcpy3D(&copy);
  return array;
}

int main() {
  float numbers[64], host[10];
  for (int i = 0; i < 64; ++i) numbers[i] = i;
  float *linear, *out;
  cudaMalloc(&linear, 8 * sizeof(float));
  cudaMemcpy(linear, numbers, 8 * sizeof(float), cudaMemcpyHostToDevice);
  cudaMalloc(&out, sizeof(host));

  Objects all;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = linear;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 8 * sizeof(float);
  cudaTextureDesc how = {};
  cudaCreateTextureObject(&all.elements, &resource, &how, nullptr);

  const auto floats = cudaCreateChannelDesc<float>();
  cudaArray_t plane;
  cudaMallocArray(&plane, &floats, 4, 4);
  cudaMemcpy2DToArray(plane, 0, 0, numbers, 16, 16, 4, cudaMemcpyHostToDevice);
  all.plane = texture_of(plane, cudaFilterModeLinear, cudaAddressModeClamp, 0);

  uchar4 colors[2][2] = {{{255, 0, 0, 51}, {0, 1, 2, 3}}, {{4, 5, 6, 7}, {8, 9, 10, 11}}};
  const auto bytes = cudaCreateChannelDesc<uchar4>();
  cudaArray_t picture, mirrored;
  cudaMallocArray(&picture, &bytes, 2, 2, cudaArraySurfaceLoadStore);
  cudaMallocArray(&mirrored, &bytes, 2, 2, cudaArraySurfaceLoadStore);
  cudaMemcpyToArray(picture, 0, 0, colors, sizeof(colors), cudaMemcpyHostToDevice);
  all.bytes =
      texture_of(picture, cudaFilterModePoint, cudaAddressModeWrap, 1, cudaReadModeNormalizedFloat);

  const auto volume = box_of(numbers, make_cudaExtent(4, 2, 3), cudaArrayDefault);
  const auto layers = box_of(numbers, make_cudaExtent(2, 2, 3), cudaArrayLayered);
  const auto cube = box_of(numbers, make_cudaExtent(1, 1, 6), cudaArrayCubemap);
  all.volume = texture_of(volume, cudaFilterModeLinear, cudaAddressModeClamp, 0);
  all.layers = texture_of(layers, cudaFilterModePoint, cudaAddressModeClamp, 0);
  all.cube = texture_of(cube, cudaFilterModePoint, cudaAddressModeClamp, 1);

  const int whole[6] = {0, 1, 4, 9, 16, 25};
  int* squares;
  cudaMalloc(&squares, sizeof(whole));
  cudaMemcpy(squares, whole, sizeof(whole), cudaMemcpyHostToDevice);
  cudaBindTexture(nullptr, reference, squares, sizeof(whole));

  read_all<<<1, 1>>>(all, out);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  for (float each : host) printf("%g ", each);

  cudaSurfaceObject_t from, to;
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = picture;
  cudaCreateSurfaceObject(&from, &resource);
  resource.res.array.array = mirrored;
  cudaCreateSurfaceObject(&to, &resource);
  invert<<<2, 2>>>(from, to, 2);
  cudaMemcpy2DFromArray(colors, 8, mirrored, 0, 0, 8, 2, cudaMemcpyDeviceToHost);
  printf("\n%d %d %d %d\n", colors[0][0].x, colors[0][1].x, colors[1][0].z, colors[1][1].w);

  const auto nearest = texture_of(plane, cudaFilterModePoint, cudaAddressModeClamp, 0);
  sum_rows<<<1, 4>>>(nearest, out);
  cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost);
  printf("%g %g %g %g\n", host[0], host[1], host[2], host[3]);
  for (auto object : {all.elements, all.plane, all.bytes, all.volume, all.layers, all.cube})
    cudaDestroyTextureObject(object);
  cudaUnbindTexture(reference);
  for (auto array : {plane, picture, mirrored, volume, layers, cube}) cudaFreeArray(array);
}
