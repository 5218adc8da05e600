// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include "backends/cuda/kernels/channel_pieces.cuh"
#include "backends/cuda/kernels/map.cuh"
#include "core/ops/visit_kind.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {
namespace {

using enum BinaryKind;

/// Comparisons give bool. Everything else has the type of its operands.
template <BinaryKind kKind, class T>
using ResultType = std::conditional_t<scalar::is_comparison(kKind), bool, T>;

template <BinaryKind kKind>
struct BinaryFormula {
  template <class T>
  __device__ auto operator()(T a, T b) const {
    using Compute = scalar::ComputeType<T>;
    return scalar::apply<kKind>(static_cast<Compute>(a), static_cast<Compute>(b));
  }
};

using Launch = MapKernel<2>::Launch;

template <BinaryKind kKind, class T>
Launch launch_of_type() {
  return launch_of<ResultType<kKind, T>, T, T>({"binary", "binary_fours"}, BinaryFormula<kKind>());
}

template <BinaryKind kKind>
Launch launch_of_kind(DType dtype) {
  if constexpr (scalar::is_logic(kKind)) {
    return launch_of_type<kKind, bool>();
  } else if constexpr (kKind >= ReluGradient) {
    return launch_of_type<kKind, float>();
  } else {
    if (dtype == DType::BF16) return launch_of_type<kKind, BFloat16>();
    if (dtype == DType::F16) return launch_of_type<kKind, Float16>();
    if (dtype == DType::I32) return launch_of_type<kKind, std::int32_t>();
    if (dtype == DType::I64) return launch_of_type<kKind, std::int64_t>();
    return launch_of_type<kKind, float>();
  }
}

Launch launch_of_kind(BinaryKind kind, DType dtype) {
  return visit_kind<TanhGradient>(kind, [&](auto one) { return launch_of_kind<one()>(dtype); });
}

/// Two operands that are stored channels last.
struct LastOperands {
  struct Pieces {
    ChannelPiece a, b;
  };
  LastImages<const BFloat16> a, b;

  __device__ Pieces read(std::int64_t image, std::int64_t position, std::int64_t channel) const {
    return {a.piece(image, position, channel), b.piece(image, position, channel)};
  }
};

__global__ void add_pieces_kernel(ChannelTiles<kMapPositions> tiles, LastOperands from,
                                  LastPieces<BFloat16> y) {
  map_pieces(
      tiles, from.a.positions, y,
      [&](auto image, auto position, auto channel) { return from.read(image, position, channel); },
      [](auto) {
        return [](const LastOperands::Pieces& in, int c) {
          return BinaryFormula<Add>()(static_cast<float>(in.a[c]), static_cast<float>(in.b[c]));
        };
      });
}

/// Sums of images that are stored channels last, as gradients of activations are.
class AddPiecesKernel : public Kernel {
 public:
  /// All three, of one shape.
  static ChannelsLastOperands channels_last(const KernelQuery& query) {
    const auto& y = query.outputs[0];
    const bool takes = may_be_rounded(query, y) && query.inputs[0].spec == y.spec &&
                       query.inputs[1].spec == y.spec;
    return {.inputs = {takes, takes}, .output = takes, .all_or_none = true};
  }

  explicit AddPiecesKernel(const KernelQuery& query)
      : a_(query.inputs[0]), b_(query.inputs[1]), y_(query.outputs[0]) {}

  void run(const KernelArgs& args) override {
    const auto tiles = y_.tiles<kMapPositions>();
    launch(args.stream, "add_pieces", tiles.shape(), add_pieces_kernel, tiles,
           LastOperands{a_.images_over(args.inputs[0]), b_.images_over(args.inputs[1])},
           LastPieces<BFloat16>{y_.images_over(args.outputs[0])});
  }

 private:
  StoredChannels a_, b_, y_;
};

class BinaryKernel : public MapKernel<2> {
 public:
  BinaryKernel(const KernelQuery& query, Device&)
      : MapKernel(query, launch_of_kind(query.as<Binary>().kind, query.inputs[0].spec.dtype)) {}
};

}  // namespace

void add_binary_kernels(KernelList& list) {
  for (const auto kind : all_binary_kinds()) {
    // Binary's names are literals: the entry's view outlives this object.
    auto entry = kernel_entry<BinaryKernel>(Binary(kind).name(), "elementwise");
    if (kind == Add) {
      entry.channels_last = &AddPiecesKernel::channels_last;
      entry.prepare = [](const KernelQuery& query, Device& device) -> std::unique_ptr<Kernel> {
        if (query.outputs[0].channels_last) return std::make_unique<AddPiecesKernel>(query);
        return std::make_unique<BinaryKernel>(query, device);
      };
    }
    list.push_back(entry);
  }
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
