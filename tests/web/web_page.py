"""What the tests of all pages in a real Chromium do.

Called as: NAME_page_test.py TRIPTYCH SOURCE_DIR ... Screenshots go to the folder TRIPTYCH_SCREENSHOTS."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(sys.argv[2]).resolve()
sys.path[1:1] = [str(SOURCE / "tests/cli"), str(SOURCE / "tests/report")]

import browser  # noqa: E402
import support  # noqa: E402


class WebPage(unittest.TestCase):
    name = ""  # of the page, as `triptych page` knows it
    made_here = ("data:",)  # addresses that need no network

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"triptych-{cls.name}-"))
        cls.shots = pathlib.Path(os.environ.get("TRIPTYCH_SCREENSHOTS") or cls.folder)
        cls.page = cls.folder / f"{cls.name}.html"
        subprocess.run([support.PROGRAM, "page", cls.name, "--out", cls.page], check=True, stdout=subprocess.DEVNULL)
        cls.browser = browser.Browser()
        cls.addClassCleanup(support.shutil.rmtree, cls.folder)
        cls.addClassCleanup(cls.browser.close)

    def open(self, width=1400, height=900, scheme="light"):
        self.browser.media("screen", scheme)
        self.browser.resize(width, height, phone=width < 500)
        self.browser.open(self.page)
        self.wait("document.body.dataset.ready")

    def wait(self, script, seconds=60):
        deadline = time.monotonic() + seconds
        while not self.browser.run(script):
            self.assertLess(time.monotonic(), deadline, f"{script}: {self.browser.run('document.body.innerText')[:300]}")
            time.sleep(0.02)

    def choose(self, **values):
        """Sets form elements as a visitor would, the last event runs the request."""
        for name, value in values.items():
            self.browser.run(f"""(() => {{ const e = document.getElementById({json.dumps(name.replace("_", "-"))});
              e.value = {json.dumps(str(value))}; e.dispatchEvent(new Event("input", {{bubbles: true}})); }})()""")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def assert_quiet(self):
        self.assertEqual(self.browser.complaints, [])
        self.assertEqual([url for url in self.browser.requests if not url.startswith(self.made_here)],
                         [self.page.resolve().as_uri()], "a page needs no network")
