"""`--tiling`: sizes of tiles on the array that a user fixes, beside the planner's."""
# SPDX-License-Identifier: Apache-2.0
from support import TINY, ProgramTest, main

ARRAY = ["--backend", "systolic", "--contract", "bf16-exact", "--machine", "mmu4"]


def sizes(text):
    return dict(size.split("=") for size in text.split(","))


class Tiling(ProgramTest):
    def test_explain_shows_the_planners_tiles(self):
        result = self.document("explain", *TINY, *ARRAY)["results"][0]
        self.assertTrue(result["array"])
        for node in result["array"]:
            self.assertIn("pass", sizes(node["tiling"].split("; ")[0]))
            self.assertIsNone(node["planned"])
        self.assertEqual(self.document("explain", *TINY)["results"][0]["array"], [])
        self.assertIn("tiles on the array:", self.succeed("explain", *TINY, *ARRAY).stdout)

    def test_explain_shows_ones_own_tiles_beside_them(self):
        asked = [*TINY, *ARRAY, "--mode", "infer", "--tiling", "pass=9,columns=1,buffer=2"]
        nodes = self.document("explain", *asked)["results"][0]["array"]
        for node in nodes:
            own = sizes(node["tiling"].split("; ")[0])
            self.assertLessEqual(int(own["pass"]), 9)
            self.assertEqual((own["columns"], own["buffer"]), ("1", "2"))
        self.assertLess(sum(node["planned"]["cycles"] for node in nodes),
                        sum(node["cycles"] for node in nodes))
        self.assertIn("planner's tiling", self.succeed("explain", *asked).stdout)

    def test_a_product_is_traced_and_timed_with_them(self):
        def traced(*tiling):
            node = self.document("trace", "matmul", "--m", "40", "--k", "20", "--n", "12", *tiling)["results"][0]
            return node["array"]["nodes"][0]
        own, planned = traced("--tiling", "x=8,pass=8,columns=1"), traced()
        self.assertEqual(sizes(own["tiling"])["x"], "8")
        self.assertGreater(own["cycles"], planned["cycles"])
        again = traced("--tiling", planned["tiling"])
        self.assertEqual((again["tiling"], again["cycles"]), (planned["tiling"], planned["cycles"]))
        self.succeed("bench", "matmul", "--sizes", "16", *ARRAY, "--tiling", "pass=4", "--layers")

    def test_what_does_not_fit_says_why(self):
        self.expect_error(4, "trace", "matmul", "--m", "3000", "--tiling", "x=all,pass=all,columns=1",
                          says=['the tiling "x=all,pass=all,columns=1" does not fit mmu4', "rows of the buffer"])
        self.expect_error(2, "explain", *TINY, *ARRAY, "--tiling", "rows=3", says=['there is no size "rows"'])
        self.expect_error(2, "explain", *TINY, "--tiling", "pass=3", says=["tiling"])


if __name__ == "__main__":
    main()
