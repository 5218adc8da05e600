"""The page of the GPU in a real Chromium: its counts are those of `triptych bench`, its pictures those of its counts.

Called as: gpu_page_test.py TRIPTYCH SOURCE_DIR. Screenshots go to the folder TRIPTYCH_SCREENSHOTS."""
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
import sys

import web_page
from web_page import browser, support

LADDER = ("naive", "coalesced", "tiled", "tiled-transposed", "tiled-padded", "register-tiled")
# How many sectors or passes each request of the record is drawn with that it was not counted with.
WRONG_PICTURES = """(() => { const wrong = [], element = document.createElement("div");
  let seen = 0;
  const look = (request, space, access, name) => { ++seen;
    Access.draw(element, request, space, access);
    const boxes = space === "global" ? element.querySelectorAll(".sector").length
      : (element.querySelectorAll(".banks span").length - 32) / 32;
    if (boxes !== request.cost || Number(element.dataset.drawn) !== request.cost) wrong.push([name, request, boxes]); };
  for (const { kernels } of Gpu.record.problems) for (const { name, sites } of kernels)
    for (const { space, access, visits } of sites) for (const one of visits) look(one, space, access, name);
  for (const one of Gpu.record.patterns) look(one, one.space, "load", "pattern");
  return { seen, wrong: wrong.slice(0, 3) }; })()"""


class GpuPage(web_page.WebPage):
    name = "gpu"

    def cost(self, element):
        data = self.browser.run(f"({{...document.getElementById('{element}').dataset}})")
        self.assertEqual(data["drawn"], data["cost"])
        return int(data["cost"])

    def ladder(self):
        return {kernel: json.loads(counters) for kernel, counters in self.browser.run(
            "[...document.querySelectorAll('#ladder tbody tr')].map(tr => [tr.dataset.kernel, tr.dataset.counters])")}

    def test_the_ladders_counters_are_those_of_bench(self):
        self.open()
        for number, size in enumerate((64, 61)):
            self.choose(problem=number)
            shown = self.ladder()
            run = subprocess.run([support.PROGRAM, "bench", "matmul", "--backend", "cuda-emulated", "--sizes", str(size),
                                  "--kernel", ",".join(LADDER), "--json"], check=True, capture_output=True, text=True)
            counted = {}
            for result in json.loads(run.stdout)["results"]:
                for kernel in result["counters"]:
                    counted[kernel["kernel"]] = kernel
            self.assertEqual(set(LADDER) - set(counted), set())
            for name in LADDER:
                with self.subTest(size=size, kernel=name):
                    for space in ("global", "shared"):
                        for field, value in shown[name][space].items():
                            theirs = [access.get(field) for access in counted[name][space].values()]
                            if None not in theirs:
                                self.assertEqual(value, sum(theirs), f"{space} {field}")
                    self.assertEqual(shown[name]["barriers"], counted[name]["barriers"])
        self.assert_quiet()

    def test_every_recorded_request_is_drawn_with_the_sectors_or_passes_that_were_counted(self):
        self.open()
        found = self.browser.run(WRONG_PICTURES)
        self.assertEqual(found["wrong"], [])
        self.assertEqual(self.browser.run("""Gpu.record.problems.flatMap(p => p.kernels.flatMap(k => k.sites)).filter(
          s => !Gpu.record.sources[s.file]?.split("\\n")[s.line - 1]?.trim())"""), [], "lines without their text")
        self.assertGreater(found["seen"], 1000)

    def test_a_visitor_climbs_the_ladder(self):
        self.open()
        costs = {}
        for name in LADDER[:5]:
            self.browser.run(f"document.querySelector('#ladder tr[data-kernel={name}] button').click()")
            self.assertTrue(self.text("#change"))
            self.assertTrue(self.text("#source .here"))
            costs[name] = self.cost("request")
        # The dearest line of each: a row of a per lane, whole sectors of b, tiles, a column in one bank.
        self.assertEqual(costs["naive"], 32)
        self.assertEqual(costs["coalesced"], 4)
        self.assertEqual(costs["tiled-transposed"], 32)
        self.assertLess(costs["tiled-padded"], 5)
        before = self.browser.run("document.getElementById('request').innerHTML")
        self.browser.run("document.querySelector('#ladder tr[data-kernel=naive] button').click()")
        self.browser.run("document.getElementById('forth').click()")
        self.assertIn("request 2 of", self.text("#visit"))
        self.assertNotEqual(self.browser.run("document.getElementById('request').innerHTML"), before)

    def test_lanes_beyond_the_matrix_wait(self):
        self.open()
        self.choose(problem=1)
        warps = self.browser.run("[...document.getElementById('warp').options].map(o => o.value)")
        idle = []
        for warp in warps:
            self.choose(warp=warp)
            idle.append(self.browser.run("document.querySelectorAll('#request .lanes32 span:not(.on)').length"))
        self.assertEqual((min(idle), max(idle)), (0, 3), "61 = 32 + 29")

    def test_strides_and_padding_cost_what_they_should(self):
        self.open()
        for space, floats, first, stride, cost in (
                ("global", 1, 0, 1, 4), ("global", 1, 1, 1, 5), ("global", 1, 0, 0, 1), ("global", 1, 0, 2, 8),
                ("global", 1, 0, 8, 32), ("global", 1, 0, 33, 32), ("global", 4, 0, 1, 16), ("global", 4, 1, 2, 32),
                ("shared", 1, 0, 0, 1), ("shared", 1, 0, 1, 1), ("shared", 1, 0, 2, 2), ("shared", 1, 0, 32, 32),
                ("shared", 1, 3, 33, 1), ("shared", 2, 0, 1, 2), ("shared", 4, 0, 1, 4), ("shared", 4, 0, 8, 32)):
            with self.subTest(space=space, floats=floats, first=first, stride=stride):
                for name, value in (("space", space), ("floats", floats), ("from", first), ("stride", stride)):
                    self.choose(**{name: value})
                self.assertEqual(self.cost("pattern"), cost)
                self.assertEqual(self.browser.run("document.querySelectorAll('#bars button').length"), 34)
        self.browser.run("document.querySelectorAll('#bars button')[5].click()")
        self.assertEqual(self.text("#stride-is"), "5 × 4")

    def test_planted_mistakes_are_found_where_check_finds_them(self):
        self.open()
        mistakes = self.browser.run("[...document.getElementById('mistake').options].map(o => o.text)")
        self.assertEqual(set(mistakes), {"missing barrier", "divergent barrier", "out of bounds", "uninitialised", "missing lane"})
        for number, mistake in enumerate(mistakes):
            with self.subTest(mistake=mistake):
                self.choose(mistake=number)
                command = self.text("#fault-command").split()
                self.assertEqual(command[0], "triptych")
                found = subprocess.run([support.PROGRAM, *command[1:], "--json"], capture_output=True, text=True)
                self.assertEqual(found.returncode, 1, found.stderr)
                self.assertIn(f'"line": {int(self.text("#fault-source .fault").split()[0])}', found.stdout)
                self.assertRegex(self.text("#fault"), r"at matmul_mistakes\.cu:\d+, block \(\d+, \d+, \d+\), thread")
        self.choose(mistake=mistakes.index("missing barrier"))
        self.assertTrue(self.text("#fault").startswith("race at"), self.text("#fault"))

    def test_goes_by_keyboard(self):
        self.open()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
            for kind in ("keyDown", "keyUp"):
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key)
        self.assertIn("request 2 of", self.text("#visit"))

    def test_looks(self):
        self.assertLess(self.page.stat().st_size, 2 << 20)
        for name, width, height in (("phone", 390, 844), ("laptop", 1400, 900), ("projector", 1920, 1080)):
            for scheme in ("light", "dark"):
                self.open(width, height, scheme)
                self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width, "the page scrolls sideways")
                self.browser.screenshot(self.shots / f"gpu-{name}-{scheme}.png")
        paint = self.browser.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        print(f"first paint after {paint} ms (measured)", file=sys.stderr)
        self.assert_quiet()


if __name__ == "__main__":
    if not browser.find():
        print("skipped: no Chromium here; apt-get install chromium")
        sys.exit(77)
    support.main()
