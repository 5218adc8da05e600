"""The WebAssembly module in the repository belongs to the sources, and docs/pages/array.html contains it.

Called as: module_test.py TRIPTYCH SOURCE_DIR. It needs no compiler for WebAssembly: web_module_rebuilt does.
"""
# SPDX-License-Identifier: Apache-2.0
import base64
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
PACKED = SOURCE / "experiments/web/module/array.wasm.gz"
MODULE = gzip.decompress(PACKED.read_bytes())
sys.path[:0] = [str(PACKED.parent), str(SOURCE / "tests/report")]

import browser  # noqa: E402
import sources  # noqa: E402

EMBEDDED = re.compile(r'(<script[^>]*id="wasm"[^>]*>)\s*([A-Za-z0-9+/=]+)\s*(?=</script>)')


def parts(page):
    """The page without its module, and the module."""
    text = page.read_text()
    packed, = (found[2] for found in EMBEDDED.finditer(text))
    return EMBEDDED.sub(r"\1", text), gzip.decompress(base64.b64decode(packed))


class Module(unittest.TestCase):
    def test_the_module_belongs_to_the_sources(self):
        self.assertEqual(sources.stale(), [], sources.REMEDY)

    def test_a_change_of_code_is_noticed_and_one_of_a_comment_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cpp"
            path.write_text('int f() { return 1; }  // one\nconst char* s = "// no comment";\n')
            before = sources.digest(path)
            path.write_text('/* The number one. */ int f() { return 1; }\nconst char*  s = "// no comment";\n')
            self.assertEqual(sources.digest(path), before)
            for changed in ('int f() { return 2; }\nconst char* s = "// no comment";\n',
                            'int f() { return 1; }\nconst char* s = "// a comment";\n'):
                path.write_text(changed)
                self.assertNotEqual(sources.digest(path), before, changed)

    def test_a_listed_file_that_changed_or_is_gone_makes_the_module_stale(self):
        with tempfile.TemporaryDirectory() as folder:
            listing = pathlib.Path(folder) / "array.sources"
            listing.write_text("# built by\n" + "0" * 64 + "  CMakeLists.txt\n" + "0" * 64 + "  gone.cpp\n")
            self.assertEqual(sources.stale(listing), ["CMakeLists.txt", "gone.cpp"])
            names = [line.split()[1] for line in sources.LIST.read_text().splitlines()[1:]]
        for name in ("experiments/web/module/module.cpp", "systolic/rtl/mmu_pe.sv", "systolic/machines/mmu4.json",
                     "core/tensor/tensor.h", "cmake/wasm32.cmake"):
            self.assertIn(name, names)

    def test_the_module_is_small_webassembly(self):
        self.assertEqual(MODULE[:8], b"\0asm\1\0\0\0")
        self.assertLess(PACKED.stat().st_size, 1_000_000)
        self.assertNotIn(b"/home/", MODULE)

    def test_the_page_of_the_documentation_is_the_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "array.html"
            subprocess.run([PROGRAM, "page", "array", "--out", page], check=True, stdout=subprocess.DEVNULL)
            now, kept = parts(page), parts(SOURCE / "docs/pages/array.html")
        self.assertEqual(now[1], MODULE)
        self.assertEqual(kept[1], MODULE, "triptych page array --out docs/pages/array.html --overwrite")
        self.assertEqual(kept[0], now[0], "triptych page array --out docs/pages/array.html --overwrite")

    def test_the_page_runs_the_rtl(self):
        found = browser.find()
        if not found:
            self.skipTest("no Chromium here; apt-get install chromium")
        page = browser.Browser()
        self.addCleanup(page.close)
        page.open(SOURCE / "docs/pages/array.html")
        deadline = time.monotonic() + 60
        while not page.run("document.body.dataset.ready || document.getElementById('problem').textContent"):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(page.run("document.getElementById('problem').textContent"), "")
        self.assertIn("RTL and twin: the same result in memory", page.run("document.getElementById('agreement').textContent"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
