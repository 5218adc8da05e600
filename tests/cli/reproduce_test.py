"""`triptych reproduce`: every claim has a verdict, and the verdict follows from the numbers shown."""
# SPDX-License-Identifier: Apache-2.0
import functools
import json
import pathlib
import signal
import subprocess
import tempfile

from support import PROGRAM, ProgramTest, main, wait_for

VERDICTS = ["holds here", "holds under these conditions", "out of date", "wrong"]


def value(cell):
    return cell["value"] if isinstance(cell, dict) else cell


def rows_of(claim, table=0):
    """The rows of a table as {column: value}."""
    names = [column["name"] for column in claim["tables"][table]["columns"]]
    return [dict(zip(names, map(value, row))) for row in claim["tables"][table]["rows"]]


def stat_of(process):
    """The state of a process and its parent, or None after its end."""
    try:
        state, parent = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return state, int(parent)


def descendants(parent):
    """The processes that this one and its children have started."""
    processes = [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]
    children = [process for process in processes if (stat_of(process) or ("", 0))[1] == parent]
    return children + [process for child in children for process in descendants(child)]


def is_running(process):
    """False for a process that has ended, even if nobody has asked for its status yet."""
    stat = stat_of(process)
    return stat is not None and stat[0] != "Z"


@functools.cache
def all_claims():
    """What all claims give: the results, the document beside the page, and the page."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROGRAM, "reproduce", "--quick", "--out", "page.html", "--json"], cwd=folder,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
        beside, page = (pathlib.Path(folder, f"page.{kind}").read_text() for kind in ("json", "html"))
    return json.loads(done.stdout)["results"], json.loads(beside), page


class Reproduce(ProgramTest):
    def claim(self, name):
        return next(claim for claim in all_claims()[0]["claims"] if claim["id"] == name)

    def test_all_claims_have_a_verdict_evidence_and_a_place_on_the_page(self):
        results, beside, page = all_claims()
        self.assertEqual(len(results["claims"]), 13)
        counted = dict.fromkeys(VERDICTS, 0)
        for claim in results["claims"]:
            counted[claim["verdict"]] += 1
            self.assertTrue(claim["why"] and claim["rule"] and claim["commands"], claim["id"])
            for table in claim["tables"]:
                self.assertTrue(table["rows"], claim["id"])
                for row in table["rows"]:
                    self.assertEqual(len(row), len(table["columns"]), claim["id"])
        self.assertEqual(results["summary"], counted)
        self.assertEqual(beside["results"], results)
        for claim in results["claims"]:
            self.assertIn(claim["verdict"], page)
            self.assertIn(claim["source"], page)
        self.assertNotIn("http://", page.split("<script")[0].replace("http://www.w3.org", ""))

    def test_a_page_that_cannot_be_written_costs_no_work(self):
        for out in ("page.json", "no-such/"):
            self.expect_error(2, "reproduce", "--quick", "--out", out, says=out)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_ratio_of_sram_decides(self):
        claim = self.claim("sram")
        ratios = {}
        for row in rows_of(claim):
            self.assertAlmostEqual(row["ratio"], row["on the chip"] / row["beside it"])
            ratios[row["machine"]] = row["ratio"]
        about_ten = {name: 7.5 <= ratios[name] <= 13.3 for name in ("a100", "h100", "h200")}
        expected = ("wrong" if not about_ten["a100"] else
                    "holds here" if about_ten["h100"] and about_ten["h200"] else "out of date")
        self.assertEqual(claim["verdict"], expected)

    def test_the_bytes_of_server_and_ring_decide(self):
        claim = self.claim("ring")
        rows = rows_of(claim)
        self.assertEqual([row["ranks"] for row in rows], [2, 4, 8, 16])
        buffer = rows[0]["ring"]  # of two ranks: 2 (2 - 1) / 2 of it
        for row in rows:
            n = row["ranks"]
            self.assertAlmostEqual(row["server"] / buffer, n - 1, delta=0.01)
            self.assertAlmostEqual(row["ring"] / buffer, 2 * (n - 1) / n, delta=0.01)
        self.assertEqual(claim["verdict"], "holds here")

    def test_copies_decide_about_small_tasks(self):
        claim = self.claim("transfer")
        rows = rows_of(claim)
        for row in rows:
            self.assertAlmostEqual(row["speedup"], row["CPU"] / row["array"])
            self.assertAlmostEqual(row["with copies"], row["CPU"] / row["array with copies"])
        undone = [row for row in rows if row["speedup"] > 1 >= row["with copies"]]
        expected = ("wrong" if not undone else
                    "holds here" if rows[-1]["with copies"] > 1 else
                    "holds under these conditions")
        self.assertEqual(claim["verdict"], expected)

    def test_counted_bytes_of_attention_are_the_formulas(self):
        claim = self.claim("flash-attention")
        for row in rows_of(claim):
            n = row["length"]
            self.assertEqual(row["flash, formula"], 4 * 64 * n * (2 + 2 * n / 64))
            self.assertAlmostEqual(row["flash, counted"] / row["flash, formula"], 1, delta=0.1)
            self.assertGreater(row["materialised, counted"], 3 * row["flash, counted"])

    def test_only_the_claims_that_are_asked_for_in_the_order_of_the_page(self):
        found = self.document("reproduce", "--quick", "--claims", "ring,sram")["results"]["claims"]
        self.assertEqual([claim["id"] for claim in found], ["sram", "ring"])
        self.expect_error(2, "reproduce", "--claims", "luck", says=['"luck"', "flash-attention"])
        self.succeed("reproduce", "--claims", "matrix-units", "--out", "a/folder/x.html")
        self.assertTrue((self.folder / "a/folder/x.json").exists())

    def test_a_machine_without_python_gets_the_remedy(self):
        (self.folder / "bin").mkdir()
        self.expect_error(3, "reproduce", "--claims", "matrix-units", says=["reproduce needs", "python3", "doctor"],
                          env={"PATH": str(self.folder / "bin")})
        self.assertFalse((self.folder / "reproduce.html").exists())

    def test_the_error_of_a_command_is_that_of_reproduce(self):
        self.expect_error(2, "reproduce", "--quick", "--claims", "averaging", "--max-memory", "4",
                          says=["triptych train", "memory"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_signal_ends_the_script_and_its_command(self):
        running = self.start("reproduce", "--claims", "flash-attention")
        wait_for(lambda: len(descendants(running.pid)) == 2)
        processes = descendants(running.pid)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(timeout=60), 130)
        self.assertEqual(list(filter(is_running, processes)), [])

    def test_words_for_people_name_the_page_last(self):
        text = self.succeed("reproduce", "--claims", "matrix-units", "--out", "a.html").stdout
        self.assertIn("matrix-units: ", text)
        self.assertEqual(text.splitlines()[-1], "a.html")


if __name__ == "__main__":
    main()
