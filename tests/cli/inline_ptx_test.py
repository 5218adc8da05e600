"""Inline PTX in whole CUDA programs: values, counters and mistakes of the files in programs/."""
# SPDX-License-Identifier: Apache-2.0
from program_files import PROGRAMS, FilesTest
from support import compile_through_ccache, main


class InlinePtx(FilesTest):
    def test_inline_ptx_of_integers_is_executed(self):
        result, kernels = self.program("inline_ptx.cu")
        self.assertEqual(result["output"], "12cb5687 ffffffc1 0000010f 12345f78 78563412 0000001c 014b66dc 00000001 "
                                           "10416 aaaaaaaa\n")
        warp = kernels["warp"]
        self.assertEqual((warp["global"]["load"]["sectors"], warp["warp_operations"], warp["barriers"]), (4, 6, 1))

    def test_tensor_cores_are_used_by_inline_ptx(self):
        result, kernels = self.program("tensor_ptx.cu")
        self.assertEqual(result["output"], "all are right\n")
        product = kernels["multiply"]
        # 4 warps and 4 steps of k: 16 halves of 16 + 8 rows in pieces of 8, by cp.async and by ldmatrix.
        loads, stores = product["shared"]["load"], product["shared"]["store"]
        self.assertEqual((loads["requests"], loads["lanes"]), (32, 4 * 4 * (32 + 16)))
        self.assertEqual((stores["requests"], stores["lanes"]), (32, 4 * 4 * (32 + 16)))
        self.assertEqual(product["global"]["load"]["lanes"], 4 * 4 * (32 + 16))
        self.assertEqual(product["matrix_products"], 16)
        self.assertEqual(kernels["bytes"]["matrix_products"], 2)  # of 16 x 8 x 16
        self.assertEqual((kernels["halves"]["shared"]["store"]["lanes"], kernels["halves"]["matrix_products"]), (8, 1))

    def test_blocks_outside_a_sample_use_tensor_cores_by_inline_ptx(self):
        result, kernels = self.program("tensor_ptx.cu", "--sample", "100")
        self.assertEqual(result["output"], "all are right\n")
        self.assertEqual(kernels["multiply"]["matrix_products"], 4)

    def test_blocks_of_ptx_have_registers_and_predicates(self):
        result, _ = self.program("ptx_blocks.cu")
        self.assertEqual(result["output"], "7 10 3c00 4000 12 1 2 7 8 9\n")

    def test_mistakes_with_copies_and_matrices_of_ptx_are_found(self):
        lines = (PROGRAMS / "tensor_ptx_mistakes.cu").read_text().splitlines()
        for word, kind in [("early", "uninitialised memory"), ("outside", "out of bounds"),
                           ("misaligned", "misaligned address"), ("overwrite", "race")]:
            _, finding = self.fault("tensor_ptx_mistakes.cu", word, "--strict")
            self.assertEqual(finding["kind"], kind)
            self.assertTrue(lines[finding["line"] - 1].endswith("// fault: " + word), finding)
        _, finding = self.fault("tensor_ptx_mistakes.cu", "race", "--strict")
        self.assertEqual(finding["kind"], "race")
        other = next(i for i, line in enumerate(lines, 1) if line.endswith("// fault: race"))
        self.assertIn(f"at line {other} with no barrier between", finding["message"])

    def test_other_inline_ptx_is_refused_with_its_line(self):
        self.expect_error(2, "kernel", "run", str(PROGRAMS / "unknown_ptx.cu"),
                          says=["unknown_ptx.cu:7: the inline assembly", "div.u32", "is not emulated"])

    def test_all_shapes_of_products_and_loads_of_matrices_have_the_hosts_values(self):
        result, kernels = self.program("mma_shapes.cu")
        self.assertEqual(result["output"], "all are right\n")
        products = {name.partition("<")[0]: each["matrix_products"] for name, each in kernels.items()}
        # Of 16 x 8 x 16, one at least.
        self.assertEqual(products, {"bfloats": 1, "short_bfloats": 1, "tf32s": 1, "short_tf32s": 1, "doubles": 1,
                                    "bytes": 2, "short_bytes": 1, "load_matrices": 0})
        # Six requests of rows of 16 bytes: for x1, x2 and x4, twice.
        loads = kernels["load_matrices"]["shared"]["load"]
        self.assertEqual((loads["requests"], loads["lanes"]), (6, 2 * (8 + 16 + 32)))


if __name__ == "__main__":
    compile_through_ccache()
    main()
