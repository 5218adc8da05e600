"""Thinning, V-Rand and V-Info against scikit-image's, which is a judge alone.

region_parity.py REGION_RECORD [--pictures 200]. Exit status 77 without scikit-image (Debian's python3-skimage, or PyPI's in
a virtual environment, whose python then runs this). Pictures have two pixels of region around them: what lies beyond a
picture is another thing in each library.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import struct
import subprocess
import sys

try:
    import numpy
    import skimage
    from skimage.filters import gaussian
    from skimage.measure import label
    from skimage.metrics import contingency_table, variation_of_information
    from skimage.morphology import thin
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def blobs(random, height, width):
    """Regions that boundaries of many widths part."""
    noise = gaussian(random.standard_normal((height, width)), random.uniform(1, 4))
    regions = abs(noise) > numpy.quantile(abs(noise), random.uniform(0.1, 0.6))
    regions[:2] = regions[-2:] = regions[:, :2] = regions[:, -2:] = True
    return regions


def recorded(program, predicted, target):
    height, width = predicted.shape
    sent = struct.pack("<ii", width, height) + predicted.astype("u1").tobytes() + target.astype("u1").tobytes()
    answer = subprocess.run([program], input=sent, capture_output=True, check=True).stdout
    thinned = numpy.frombuffer(answer[:height * width], "u1").reshape(height, width) != 0
    return thinned, numpy.frombuffer(answer[height * width:], "f8")


def judged(predicted, target):
    """The same by scikit-image; each pixel that the prediction leaves to the boundary is a region of its own."""
    boundary = thin(~predicted)
    truth = label(target, connectivity=1)
    regions = label(~boundary, connectivity=1)
    alone = regions == 0
    regions[alone] = regions.max() + 1 + numpy.arange(alone.sum())
    within = truth != 0
    # Its adapted_rand_error leaves out the pairs of a pixel with itself, which the challenge's definition counts.
    shares = contingency_table(truth[within], regions[within], normalize=True)
    both, of_truth, of_regions = ((numpy.asarray(part, "f8") ** 2).sum() for part in
                                  (shares.data, shares.sum(axis=1), shares.sum(axis=0)))
    # The entropies H(S | T) and H(T | S), of the pixels of true regions.
    s_of_t, t_of_s = variation_of_information(truth[within], regions[within])

    def entropy(labels):
        parts = numpy.unique(labels, return_counts=True)[1] / labels.size
        return -(parts * numpy.log2(parts)).sum()
    h_s, h_t = entropy(regions[within]), entropy(truth[within])
    shared = (h_s - s_of_t + h_t - t_of_s) / 2
    return boundary, [2 * both / (of_truth + of_regions), both / of_truth, both / of_regions,
                      *(part / whole if whole > 0 else 1  # a single region says nothing
                        for part, whole in ((shared, h_s), (shared, h_t), (2 * shared, h_s + h_t)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--pictures", type=int, default=200)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(1)
    different, worst = 0, 0.0
    for _ in range(arguments.pictures):
        height, width = random.integers(12, 90, 2)
        predicted, target = blobs(random, height, width), blobs(random, height, width)
        thinned, scores = recorded(arguments.program, predicted, target)
        boundary, expected = judged(predicted, target)
        different += not (thinned == boundary).all()
        worst = max(worst, abs(scores - expected).max())
    print(f"scikit-image {skimage.__version__}: {arguments.pictures} pictures, {different} thinned otherwise, scores differ "
          f"by {worst:.1e} at most")
    sys.exit(1 if different or worst > 1e-9 else 0)


main()
