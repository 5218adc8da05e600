"""The page of the array in a real Chromium: every register of every PE in every cycle is the native RTL's.

Called as: array_page_test.py TRIPTYCH SOURCE_DIR ARRAY_REGISTERS. Screenshots go to the folder
TRIPTYCH_SCREENSHOTS."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import random
import subprocess
import sys

REGISTERS = os.path.abspath(sys.argv.pop(3))

import web_page  # noqa: E402
from web_page import SOURCE, browser, support  # noqa: E402

EXAMPLE_FILE = SOURCE / "experiments/labs/handouts/4-verifier/example.s"
EXAMPLE = EXAMPLE_FILE.read_text()
FIELDS = ("activation", "weight", "waiting", "passing", "sum")
# (machine, weight scheme, memory, rows of X, its columns, columns of W)
PRODUCTS = [("mmu4", "pass-through", "ideal", 4, 4, 4), ("mmu4", "pass-through", "ddr3", 1, 9, 5),
            ("mmu4", "per-column", "ideal", 6, 12, 4), ("mmu4", "drained", "ideal", 3, 8, 8),
            ("mmu4", "drained", "hbm", 13, 3, 2), ("mmu2", "pass-through", "ideal", 5, 7, 3),
            ("mmu2", "drained", "ddr3", 2, 4, 4), ("mmu8", "pass-through", "ideal", 9, 8, 8),
            ("mmu8", "pass-through", "hbm", 2, 19, 11), ("mmu8", "per-column", "ideal", 12, 16, 5)]
# All registers of all cycles as the page shows them, a cycle after the other.
READ = """(fields => { const scrub = document.getElementById("scrub"), cycles = [];
  for (let t = 0; t <= Number(scrub.max); ++t) {
    scrub.value = t; scrub.dispatchEvent(new Event("input", {bubbles: true}));
    cycles.push([...document.querySelectorAll(".pe")].map(pe => fields.map(f => Number(pe.dataset[f]))));
  } return cycles; })"""
COUNTERS = """(which => Object.fromEntries([...document.querySelectorAll("#counters tbody tr")].map(
  tr => [tr.dataset.counter, Number(tr.dataset[which])])))"""


def matrix(rows, columns, draw):
    """Numbers that bfloat16 holds, the last row of the first matrices' extremes among them."""
    return [[draw() for _ in range(columns)] for _ in range(rows)]


class ArrayPage(web_page.WebPage):
    name = "array"
    made_here = ("data:", "blob:")

    def native(self, machine, scheme, dram, x, w, **more):
        config = json.loads((SOURCE / f"systolic/machines/{machine}.json").read_text())
        config.update(weight_scheme=scheme, dram=dram)
        request = self.folder / "request.json"
        request.write_text(json.dumps({"machine": config, "op": "matmul", "m": len(x), "k": len(w), "n": len(w[0]),
                                       "x": sum(x, []), "w": sum(w, []), **more}))
        return json.loads(subprocess.run([REGISTERS, request], check=True, capture_output=True, text=True).stdout)

    def test_every_register_of_ten_products_is_the_native_rtls(self):
        draw = random.Random(20261124)
        self.open()
        for machine, scheme, dram, m, k, n in PRODUCTS:
            with self.subTest(machine=machine, scheme=scheme, dram=dram, shape=(m, k, n)):
                x, w = (matrix(a, b, lambda: draw.randrange(-256, 257) / draw.choice((1, 16, 64)))
                        for a, b in ((m, k), (k, n)))
                lines = ["\n".join(" ".join(map(str, row)) for row in values) for values in (x, w)]
                self.choose(machine=machine, scheme=scheme, dram=dram, numbers="own")
                self.choose(own_x=lines[0])
                self.choose(own_w=lines[1])
                self.assertTrue(self.browser.run("document.getElementById('problem').hidden"), self.text("#problem"))
                native = self.native(machine, scheme, dram, x, w)
                shown = self.browser.run(f"{READ}({json.dumps(FIELDS)})")[1:]
                self.assertEqual(len(shown), len(native["cycles"]))
                for t, (ours, theirs) in enumerate(zip(shown, native["cycles"])):
                    self.assertEqual(ours, theirs, f"cycle {t}")
                self.assertGreater(sum(pe[4] != 0 for cycle in shown for pe in cycle), m * n)
                self.assertEqual(self.browser.run(f"{COUNTERS}('twin')"), native["counters"])
                self.assertEqual(self.browser.run(f"{COUNTERS}('rtl')"), native["rtl_counters"])
                agreement = self.browser.run("({...document.getElementById('agreement').dataset})")
                self.assertEqual(int(agreement["wrong"]), 0, self.text("#agreement"))
                self.assertGreater(int(agreement["compared"]), m * k * n)
                self.assertNotIn("differ:", self.text("#agreement"))
        self.assert_quiet()

    def write(self, program):
        """Replaces the program as a visitor would, and runs it."""
        self.browser.run(f"""(() => {{ const text = document.getElementById("code-text"); text.value = {json.dumps(program)};
          text.dispatchEvent(new Event("input", {{bubbles: true}})); document.getElementById("code-run").click(); }})()""")

    def marks(self):
        return self.browser.run("[...document.querySelectorAll('.mark')].map(m => [Number(m.dataset.line), m.classList[1]])")

    def scrub(self, cycle):
        self.browser.run(f"""(() => {{ const s = document.getElementById("scrub"); s.value = {cycle};
          s.dispatchEvent(new Event("input")); }})()""")

    def test_a_program_marks_the_instructions_of_every_cycle(self):
        self.open()
        self.choose(dram="ddr3")  # the memory of mmu4
        self.write(EXAMPLE)
        self.assertEqual(self.text("#expected"), "As the program's text expects.")
        native = json.loads(subprocess.run([support.PROGRAM, "mmu", "run", EXAMPLE_FILE, "--json"], check=True,
                                           capture_output=True, text=True).stdout)["results"][0]["instructions"]
        for cycle in range(int(self.text("#cycles")) + 1):
            self.scrub(cycle)
            running = [[one["line"], one["unit"]] for one in native
                       if one["unit"] != "dispatch" and one["start"] <= cycle < max(one["end"], one["start"] + 1)]
            later = [one for one in native if one["start"] > cycle]
            if not running and later:
                running = [[min(later, key=lambda one: one["start"])["line"], "next"]]
            self.assertEqual(self.marks(), running, f"cycle {cycle}")
        seen = []
        self.scrub(0)
        for _ in range(3):
            self.browser.run("document.getElementById('event-forth').click()")
            seen.append(int(self.text("#cycle")))
        self.assertEqual(seen, sorted({at for one in native for at in (one["start"], one["end"])} - {0})[:3])
        self.assert_quiet()

    def test_every_register_of_a_program_is_the_native_rtls(self):
        self.open()
        self.write(EXAMPLE)
        native = self.native("mmu4", "pass-through", "ideal", [[1.0]], [[1.0]], program=EXAMPLE)
        self.assertEqual(self.browser.run(f"{READ}({json.dumps(FIELDS)})")[1:], native["cycles"])
        self.assertEqual(self.browser.run(f"{COUNTERS}('rtl')"), native["rtl_counters"])
        self.assertEqual(self.browser.run("document.getElementById('agreement').dataset.wrong"), "0")

    def test_mistakes_in_a_program_name_their_line_and_the_remedy(self):
        self.open()
        for before, after, line, says in (
                ("matmul ", "matmool ", 31, "line 31, column 1: no instruction 'matmool'; there are halt, load"),
                ("count=4 columns", "count=99999999 columns", 32, "count = 99999999 does not fit: give 0 to"),
                ("rows=4", "rows=9", 30, "line 30: weight_load"), ("wait=load ", "", 31, "give wait=load to this one"),
                (".values w  1  2  0  1\n", "", 4, "takes 16 values, the text has 12")):
            self.write(EXAMPLE.replace(before, after))
            self.assertIn(says, self.text("#code-problem"))
            self.assertEqual(self.marks(), [[line, "wrong"]])
        self.write(EXAMPLE.replace(".expect y 11", ".expect y 12"))
        self.assertTrue(self.browser.run("document.getElementById('code-problem').hidden"))
        self.assertIn("y[0][0] is expected to be 12 (0x41400000), came 11", self.text("#expected"))

    def test_the_products_program_can_be_changed_and_restored(self):
        self.open()
        program = self.browser.run("document.getElementById('code-text').value")
        self.assertEqual(program.splitlines()[-1], "halt")
        self.write(program)
        self.assertIn("as the product's own program does", self.text("#expected"))
        self.write(program.replace("weight_load address=64", "weight_load address=66", 1))
        self.assertIn("different from that of the product's own program", self.text("#expected"))
        self.browser.run("document.getElementById('code-back').click()")
        self.assertEqual(self.browser.run("document.getElementById('code-text').value"), program)
        self.assertTrue(self.browser.run("document.getElementById('expected').hidden"))

    def test_a_page_with_a_program_begins_with_it(self):
        try:
            subprocess.run([support.PROGRAM, "page", "array", "--program", EXAMPLE_FILE, "--out", self.page, "--overwrite"],
                           check=True, capture_output=True)
            for name, width, height in (("phone", 390, 844), ("laptop", 1280, 900)):
                for scheme in ("light", "dark"):
                    self.open(width, height, scheme)
                    self.assertEqual(self.browser.run("document.getElementById('code-text').value"), EXAMPLE)
                    self.assertEqual(self.text("#expected"), "As the program's text expects.")
                    self.scrub(20)
                    self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width, "the page scrolls sideways")
                    self.browser.run("document.getElementById('stage').scrollIntoView()")
                    self.browser.screenshot(self.shots / f"array-program-{name}-{scheme}.png", whole=False)
        finally:
            subprocess.run([support.PROGRAM, "page", "array", "--out", self.page, "--overwrite"], check=True, capture_output=True)

    def test_a_wrong_register_is_seen(self):
        self.open()
        self.browser.run("""(() => { const run = Module.run; Module.run = request => { const answer = run(request),
          pe = answer.rtl.pe; answer.rtl.pe = (t, r, c) => { const is = pe(t, r, c);
            return r === 2 && c === 1 ? {...is, sum: is.sum ^ 1} : is; }; return answer; }; })()""")
        self.choose(m=5)
        self.browser.run("document.getElementById('last').click()")
        self.assertRegex(self.text("#agreement"), r"differ, first sum of PE \(2, 1\) in cycle \d+")
        self.assertEqual(self.browser.run("document.querySelectorAll('.pe.wrong').length"), 0,
                         "in the last cycle nothing is compared")

    def test_the_twin_alone_has_sixteen_rows(self):
        self.open()
        self.choose(machine="mmu16", k=16, n=16)
        self.assertEqual(self.browser.run("document.querySelectorAll('.pe').length"), 256)
        self.assertIn("no RTL of this array", self.text("#agreement"))

    def test_slower_cells_take_longer_for_the_same_result(self):
        self.open()
        seen = []
        for latency in (1, 2, 3):
            self.choose(latency=latency)
            self.assertTrue(self.browser.run("document.getElementById('problem').hidden"), self.text("#problem"))
            seen.append((int(self.text("#cycles")), self.text("#result")))
        self.assertEqual({result for _, result in seen}, {seen[0][1]})
        self.assertLess(seen[0][0], seen[1][0])
        self.assertLess(seen[1][0], seen[2][0])
        self.assertIn("no RTL of this array", self.text("#agreement"))

    def test_a_small_batch_starves_the_array(self):
        self.open()
        self.choose(k=16, n=16, m=1)
        shares = []
        for m in (1, 8, 48):
            self.choose(m=m)
            shares.append(self.browser.run("parseFloat(/([\\d.]+) % of them/.exec(document.getElementById('use').textContent)[1])"))
        self.assertLess(shares[0], 20)
        self.assertGreater(shares[1], 2 * shares[0])
        self.assertGreater(shares[2], 90)

    def test_a_layer_of_the_unet_runs(self):
        self.open()
        self.choose(op="conv", side=4, layer="down1.conv1")
        self.assertTrue(self.browser.run("document.getElementById('problem').hidden"), self.text("#problem"))
        self.browser.run("document.getElementById('last').click()")
        self.assertEqual(self.browser.run("document.getElementById('agreement').dataset.wrong"), "0")
        self.assertEqual([self.browser.run(f"document.getElementById('{name}').value")
                          for name in ("channels", "filters", "window")], ["8", "8", "3"])

    def test_wrong_input_is_said(self):
        self.open()
        self.choose(numbers="own")
        self.choose(own_x="1 2\n3")
        self.assertIn("not equally long", self.text("#problem"))
        self.choose(own_x="1 2 3")
        self.assertIn("3 columns and W 4 rows", self.text("#problem"))
        self.choose(own_x="1 2 3 4\n5 six 7 8")
        self.assertIn('X, row 2: "six" is no number', self.text("#problem"))
        self.assertIn("product before", self.text("#problem"))
        self.choose(own_x=" ")
        self.assertIn("X is empty", self.text("#problem"))
        self.choose(own_x="1 2 3 4")
        self.assertTrue(self.browser.run("document.getElementById('problem').hidden && !document.body.dataset.stale"))

    def test_plays_by_keyboard_and_without_workers(self):
        guard = self.browser.call("Page.addScriptToEvaluateOnNewDocument",
                                  source="self.Worker = self.SharedWorker = function () { throw new Error('blocked'); };")
        try:
            self.open()
        finally:
            self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=guard["identifier"])
        before = int(self.text("#cycle"))

        def press(key):
            for kind in ("keyDown", "keyUp"):
                self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, text=" " if key == " " else "")
        press("ArrowRight")
        self.assertEqual(int(self.text("#cycle")), before + 1)
        press("Home")
        self.assertEqual(self.text("#cycle"), "0")
        press(" ")
        self.wait("Number(document.getElementById('cycle').textContent) >= 2", 20)
        press(" ")
        self.assert_quiet()

    def train(self, steps):
        self.browser.run("document.getElementById('train-go').click()")
        self.wait(f"Number(document.getElementById('train-hash').dataset.steps) >= {steps}", 240)

    def test_steps_have_the_losses_and_weights_of_the_command(self):
        guard = self.browser.call("Page.addScriptToEvaluateOnNewDocument",
                                  source="self.Worker = self.SharedWorker = function () { throw new Error('blocked'); };")
        try:
            self.open()
        finally:
            self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=guard["identifier"])
        self.browser.run("document.getElementById('train-seed').value = 3")
        # The masks that are drawn after 20 steps must not change those that follow.
        for steps in (20, 40):
            self.train(steps)
            shown = self.text("#train-command").split()
            self.assertEqual(shown[:2], ["triptych", "train"])
            done = subprocess.run([support.PROGRAM, *shown[1:], "--out", self.folder / f"run-{steps}"], check=True,
                                  capture_output=True, text=True)
            run = json.loads(done.stdout)["results"][0]
            losses = json.loads(self.browser.run("document.getElementById('train-loss').dataset.losses"))
            self.assertEqual(len(losses), steps)
            self.assertEqual(losses, run["losses"])
            self.assertEqual(self.text("#train-hash"), run["weights_sha256"])
            self.assertEqual(self.text("#train-note"), "")
        mask = self.browser.run("document.getElementById('train-mask').dataset.classes")
        self.assertEqual(len(mask), 128 * 128)
        self.assertEqual(set(mask), {"0", "1"})
        seconds = float(self.browser.run("document.getElementById('train-state').dataset.stepSeconds"))
        print(f"a step in the page: {seconds:.3f} s (measured)", file=sys.stderr)
        self.assert_quiet()
        for name, width, height in (("phone", 390, 844), ("projector", 1920, 1080)):
            self.browser.resize(width, height, phone=width < 500)
            self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width, "the page scrolls sideways")
            self.browser.run("document.getElementById('train').scrollIntoView()")
            self.browser.screenshot(self.shots / f"array-train-{name}.png", whole=False)

    def test_looks(self):
        self.assertLess(self.page.stat().st_size, 2 << 20)
        self.open()
        paint = self.browser.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
        print(f"first paint after {paint} ms (measured)", file=sys.stderr)
        for name, width, height in (("phone", 390, 844), ("laptop", 1400, 900), ("projector", 1920, 1080)):
            for scheme in ("light", "dark"):
                for size in (4, 8, 16):
                    self.open(width, height, scheme)
                    self.choose(machine=f"mmu{size}", k=size, n=size, m=2 * size)
                    self.browser.run("(() => { const s = document.getElementById('scrub'); s.value = Number(s.max) * 0.6;"
                                     " s.dispatchEvent(new Event('input')); })()")
                    self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width,
                                     "the page scrolls sideways")
                    self.browser.screenshot(self.shots / f"array-{name}-{scheme}-{size}.png", whole=size == 4)
        self.assert_quiet()


if __name__ == "__main__":
    if not browser.find():
        print("skipped: no Chromium here; apt-get install chromium")
        sys.exit(77)
    support.main()
