"""The page of collectives in a real Chromium: its sums, orders and prices are the program's.

Called as: collectives_page_test.py TRIPTYCH SOURCE_DIR COLLECTIVE_PRICES. Screenshots go to the folder
TRIPTYCH_SCREENSHOTS."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import struct
import subprocess
import sys
import time

PRICES = os.path.abspath(sys.argv.pop(3))

import web_page  # noqa: E402
from web_page import browser, support  # noqa: E402

WAYS, WORLDS = ("ring", "tree", "direct", "halving-doubling", "server"), (2, 3, 4, 8)
# What all ranks hold in each step of the page, and the messages that arrive in it.
READ = """(() => { const scrub = document.getElementById("scrub"), steps = [];
  for (let t = 0; t <= Number(scrub.max); ++t) {
    scrub.value = t; scrub.dispatchEvent(new Event("input", {bubbles: true}));
    steps.push({held: [...document.querySelectorAll("#held tbody tr")].map(tr => [...tr.querySelectorAll("td")].map(
        td => [Number(td.dataset.value), td.dataset.term])),
      messages: [...document.querySelectorAll("#messages li[data-from]")].map(
        li => ["from", "to", "begin", "end"].map(name => Number(li.dataset[name]))),
      arrows: [...document.querySelectorAll("#picture .message")].map(p => [Number(p.dataset.from), Number(p.dataset.to)]),
      waits: [...document.querySelectorAll("#messages li.waits")].map(li => [Number(li.dataset.rank), Number(li.dataset.peer)])});
  } return steps; })()"""


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


class CollectivesPage(web_page.WebPage):
    name = "collectives"

    def open(self, width=1400, height=900, scheme="light"):
        super().open(width, height, scheme)
        self.report = json.loads(self.text("#report"))

    def world(self, way, ranks):
        worlds = next(each["worlds"] for each in self.report["ways"] if each["name"] == way)
        return next(each for each in worlds if each["ranks"] == ranks)

    def test_every_way_ends_with_the_programs_sums_added_in_its_order(self):
        self.open()
        self.assertEqual(sorted(each["name"] for each in self.report["ways"]), sorted(WAYS))
        for way in WAYS:
            for ranks in WORLDS:
                with self.subTest(way=way, ranks=ranks):
                    self.choose(way=way, ranks=ranks)
                    world, steps = self.world(way, ranks), self.browser.run(READ)
                    agreement = self.browser.run("({...document.getElementById('agreement').dataset})")
                    self.assertEqual(agreement, {"wrong": "0", "orders": "0"})
                    self.assertIn("bit for bit", self.text("#agreement"))
                    first = [[[f32(self.report["gradients"][rank][begin]), str(rank)] for begin, _ in world["chunks"]]
                             for rank in range(ranks)]
                    self.assertEqual(steps[0]["held"], first)
                    last = [[f32(world["sums"][begin]), world["orders"][begin]] for begin, _ in world["chunks"]]
                    self.assertEqual(steps[-1]["held"], [last] * ranks)
                    self.assertEqual(steps[-1]["waits"], [])
                    shown = sorted(m for step in steps for m in step["messages"])
                    self.assertEqual(shown, sorted([rank, step[1], step[4], step[5]]
                                                   for rank, schedule in enumerate(world["schedules"])
                                                   for step in schedule if step[0] == "send"))
                    for step in steps:
                        self.assertEqual(sorted(step["arrows"]), sorted(m[:2] for m in step["messages"]))

    def test_a_ring_takes_a_step_for_each_message_and_a_server_makes_all_wait(self):
        self.open()
        for ranks in WORLDS:
            self.choose(way="ring", ranks=ranks)
            steps = self.browser.run(READ)
            self.assertEqual(len(steps), 2 * (ranks - 1) + 1)
            for step in steps[1:]:
                self.assertEqual([m[1] for m in step["messages"]], [(m[0] + 1) % ranks for m in step["messages"]])
                self.assertEqual(len(step["messages"]), ranks)
        self.choose(way="server", ranks=4)
        steps = self.browser.run(READ)
        self.assertEqual(len(steps), 3)
        self.assertEqual(sorted(m[:2] for m in steps[1]["messages"]), [[1, 0], [2, 0], [3, 0]])
        self.assertEqual(sorted(steps[1]["waits"]), [[1, 0], [2, 0], [3, 0]])

    def test_a_wrong_sum_is_seen(self):
        self.open()
        self.browser.run("""(() => { const frames = Run.frames; Run.frames = (...all) => { const list = frames(...all);
          list[list.length - 1].ranks[1].values[3] *= 1.0000001; return list; }; })()""")
        self.choose(ranks=8)
        self.assertIn("1 sums and 0 orders of additions differ", self.text("#agreement"))

    def test_prices_are_those_of_the_cost_model(self):
        self.open()
        draw = random.Random(20261125)
        for ranks in WORLDS:
            self.choose(ranks=ranks)
            for _ in range(5):
                self.choose(alpha=draw.randint(-28, -8), beta=draw.randint(32, 48), size=draw.randint(0, 18))
                alpha, beta, size = (self.browser.run(script) for script in (
                    "2 ** Number(document.getElementById('alpha').value)",
                    "2 ** (Number(document.getElementById('beta').value) / 1.2)",
                    "3360 * 2 ** Number(document.getElementById('size').value)"))
                asked = "".join(f"{way} {ranks} {size} {alpha!r} {beta!r}\n" for way in WAYS)
                told = subprocess.run([PRICES], input=asked, check=True, capture_output=True, text=True).stdout.split()
                shown = self.browser.run("Object.fromEntries([...document.querySelectorAll('#prices tbody tr')].map("
                                         "tr => [tr.dataset.way, Number(tr.children[1].dataset.value)]))")
                cheapest = self.browser.run("[...document.querySelectorAll('#prices tr.cheapest')].map(tr => tr.dataset.way)")
                for way, seconds in zip(WAYS, map(float, told)):
                    self.assertAlmostEqual(shown[way] / seconds, 1, delta=1e-9, msg=f"{asked} {way}")
                self.assertTrue(all(shown[way] == min(shown.values()) for way in cheapest))
        self.choose(way="ring", ranks=8)
        self.assertIn("ring, 8 ranks: 28 α + 1.75 S / β = ", self.text("#formula"))

    def test_plays_by_keyboard(self):
        self.open()

        def press(key):
            for kind in ("keyDown", "keyUp"):
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, text=" " if key == " " else "")
        press("ArrowRight")
        self.assertEqual(self.text("#step"), "1")
        press("End")
        self.assertEqual(self.text("#step"), "6")
        self.assertEqual(self.text("#said"), "Every rank has the sum of all.")
        press("Home")
        press(" ")
        deadline = time.monotonic() + 60
        while int(self.text("#step")) < 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        press(" ")
        before = self.browser.run("getComputedStyle(document.body).backgroundColor")
        self.browser.run("document.getElementById('theme').click()")
        self.assertNotEqual(self.browser.run("getComputedStyle(document.body).backgroundColor"), before)
        self.assert_quiet()

    def test_looks(self):
        self.assertLess(self.page.stat().st_size, 1 << 20)
        for name, width, height in (("phone", 390, 844), ("laptop", 1400, 900), ("projector", 1920, 1080)):
            for scheme in ("light", "dark"):
                for way, ranks, step in (("ring", 4, 2), ("tree", 8, 2), ("server", 4, 1), ("direct", 8, 1)):
                    self.open(width, height, scheme)
                    self.choose(way=way, ranks=ranks)
                    self.choose(scrub=step)
                    self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width,
                                     "the page scrolls sideways")
                    self.browser.screenshot(self.shots / f"collectives-{name}-{scheme}-{way}.png")
        self.assert_quiet()


if __name__ == "__main__":
    if not browser.find():
        print("skipped: no Chromium here; apt-get install chromium")
        sys.exit(77)
    support.main()
