"""The page of a user's kernels in a real Chromium: two versions side by side, step by step.

Called as: kernel_page_test.py TRIPTYCH SOURCE_DIR. Screenshots go to the folder TRIPTYCH_SCREENSHOTS."""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys
import tempfile

import web_page
from web_page import browser, support

SOURCE = """__constant__ float weights[64];
template <int kWidth>
__global__ void transposed(const float* x, float* y) {
  __shared__ float tile[32 * kWidth];
  tile[threadIdx.y * kWidth + threadIdx.x] = weights[threadIdx.x] + x[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  if ((threadIdx.x + threadIdx.y) % 2 == 0) {
    y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x * kWidth + threadIdx.y];
  } else {
    y[threadIdx.y * 32 + threadIdx.x] = -tile[threadIdx.x * kWidth + threadIdx.y];
  }
}
template __global__ void transposed<32>(const float*, float*);
template __global__ void transposed<33>(const float*, float*);
"""


class KernelPage(web_page.WebPage):
    name = "gpu"

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="triptych-kernel-"))
        cls.shots = pathlib.Path(web_page.os.environ.get("TRIPTYCH_SCREENSHOTS") or cls.folder)
        cls.page = cls.folder / "kernel.html"
        (cls.folder / "tile.cu").write_text(SOURCE)
        subprocess.run([support.PROGRAM, "page", "gpu", cls.folder / "tile.cu", "f32:32x32=count", "f32:32x32", "--block",
                        "32,32", "--kernel", "transposed<32>", "--beside", "transposed<33>", "--out", cls.page],
                       check=True, stdout=subprocess.DEVNULL)
        cls.browser = browser.Browser()
        cls.addClassCleanup(support.shutil.rmtree, cls.folder)
        cls.addClassCleanup(cls.browser.close)

    def walk(self, index, script):
        return self.browser.run(f"((walk) => {script})(Kernel.walks[{index}])")

    def test_versions_stand_side_by_side(self):
        self.open()
        heads = self.browser.run("[...document.querySelectorAll('#costs thead th')].map((e) => e.textContent)")
        self.assertEqual(heads[1:], ["transposed<32>", "transposed<33>"])
        row = self.browser.run("[...document.querySelectorAll('#costs tbody tr')].find((e) => e.textContent.startsWith('wavefronts'))"
                               ".innerText.split('\\t').slice(1)")
        # A load of half a column takes 16 passes, a store of a row one.
        self.assertEqual(row, ["11.00", "1.00"])
        left, right = self.browser.run("[...document.querySelectorAll('.walk')].map((e) => e.getBoundingClientRect().left)")
        self.assertLess(left + 300, right)
        self.assert_quiet()

    def test_every_request_is_drawn_as_it_was_counted(self):
        self.open()
        wrong = self.browser.run("""Kernel.walks.flatMap((walk) => walk.steps.flatMap((step, i) => {
          if (!step.at) return [];
          walk.go(i);
          const { drawn, cost } = walk.find(".access").dataset;
          return drawn === cost && Number(cost) === step.cost ? [] : [[step.line, step.space, drawn, cost]]; }))""")
        self.assertEqual(wrong, [])
        spaces = self.browser.run("[...new Set(Kernel.walks[0].steps.map(({ space }) => space))].filter(Boolean).sort()")
        self.assertEqual(spaces, ["constant", "global", "shared"])

    def test_lanes_part_and_meet(self):
        self.open()
        active = self.walk(0, "walk.steps.filter(({ line }) => line === 8 || line === 10).map(({ mask }) => mask >>> 0)")
        self.assertEqual(set(active), {0x55555555, 0xAAAAAAAA})
        self.walk(0, "walk.go(walk.steps.findIndex(({ line, at }) => line === 10 && at))")
        self.assertIn("line 10, 16 of 32 lanes", self.text(".walk .at"))
        self.assertTrue(self.text(".walk .source .here").strip().startswith("10"))
        self.assertEqual(self.browser.run("document.querySelectorAll('#branches tbody tr').length"), 2)

    def test_goes_by_keyboard(self):
        self.open()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
            for kind in ("keyDown", "keyUp"):
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key)
        self.assertIn("step 2 of", self.text(".walk .at"))

    def test_looks(self):
        for name, width, height in (("phone", 390, 844), ("laptop", 1280, 900)):
            for scheme in ("light", "dark"):
                self.open(width, height, scheme)
                self.browser.run("Kernel.walks.forEach((walk) => walk.go(9))")
                self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width, "the page scrolls sideways")
                self.browser.screenshot(self.shots / f"kernel-{name}-{scheme}.png")
        self.assert_quiet()


if __name__ == "__main__":
    if not browser.find():
        print("skipped: no Chromium here; apt-get install chromium")
        sys.exit(77)
    support.main()
