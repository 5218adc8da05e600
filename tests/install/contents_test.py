"""The product's statements on code of others: the table of dependencies against the build's own files, NOTICE and the SBOM
against that table.

  contents_test.py PROGRAM SOURCE BUILD [arguments of unittest]
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from elf import Elf

PROGRAM, SOURCE, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
TABLE = json.loads((SOURCE / "cmake/dependencies.json").read_text())["dependencies"]
NOTICE = (SOURCE / "NOTICE").read_text()
# Packages that only tests, benchmarks or Triptych's own users look for.
NOT_IN_THE_PRODUCT = {"GTest", "benchmark", "Triptych"}
LICENCES = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "MPL-2.0", "Apache-2.0", "ISC", "Zlib", "IJG", "libpng-2.0", "libtiff",
            "PSF-2.0", "LGPL-2.1-or-later", "LGPL-3.0-only", "Artistic-2.0", "GPL-3.0-or-later", "LicenseRef-NVIDIA"}
EXCEPTIONS = {"LLVM-exception", "GCC-exception-3.1"}


def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def sections(text):
    """Text below each underlined heading, by heading."""
    parts = re.split(r"^(.+)\n-{3,}\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Table(unittest.TestCase):
    def test_each_entry_is_complete(self):
        self.assertEqual(len({each["name"] for each in TABLE}), len(TABLE))
        for each in TABLE:
            with self.subTest(name=each["name"]):
                self.assertLessEqual(set(each), {"name", "licence", "use", "package", "version", "find", "libraries", "when", "source"})
                self.assertIn(each["use"], ("compiled", "linked", "opened"))
                self.assertRegex(each["source"], r"^https?://")
                words = re.split(r" (?:AND|OR|WITH) ", each["licence"])
                self.assertLessEqual(set(words), LICENCES | EXCEPTIONS)

    def test_it_has_each_package_that_cmake_looks_for(self):
        known = {name for each in TABLE for name in each.get("find", [])} | NOT_IN_THE_PRODUCT
        found = set()
        for file in [*SOURCE.rglob("CMakeLists.txt"), *SOURCE.glob("cmake/*.cmake")]:
            if not file.is_relative_to(SOURCE / "build") and not file.is_relative_to(SOURCE / "tests"):
                found |= set(re.findall(r"^\s*find_package\((\w+)", file.read_text(), re.M))
                found |= set(re.findall(r"^\s*find_library\(TRIPTYCH_\w+ (\w+)", file.read_text(), re.M))
        self.assertIn("fmt", found)
        self.assertEqual(found - known, set(), "cmake/dependencies.json lacks them")

    def test_it_has_each_library_that_the_linker_loads(self):
        known = tuple(name + "." for each in TABLE for name in each.get("libraries", []))
        for file in [PROGRAM, *BUILD.glob("python/triptych/_triptych*.so")]:
            needed = Elf(file).needed
            self.assertGreater(len(needed), 5, file)
            unknown = [name for name in needed if not name.startswith(known)]
            self.assertEqual(unknown, [], file)


class Notice(unittest.TestCase):
    def test_it_has_the_copyright_and_the_licence_of_all_that_is_compiled_in(self):
        found = sections(NOTICE)
        for each in (each for each in TABLE if each["use"] == "compiled"):
            with self.subTest(name=each["name"]):
                self.assertIn(each["name"], found)
                self.assertIn(f"Licence: {each['licence']}\n", found[each["name"]])
                self.assertRegex(found[each["name"]], r"Copyright .*[A-Za-z]{3}")

    def test_it_has_nothing_that_is_not_compiled_in(self):
        listed = NOTICE.split("TEXTS OF THE LICENCES")[0]
        self.assertEqual(set(sections(listed)), {each["name"] for each in TABLE if each["use"] == "compiled"})

    def test_it_has_the_text_of_each_licence(self):
        texts = sections(NOTICE.split("TEXTS OF THE LICENCES")[1])
        by_reference = {"MPL-2.0", "LicenseRef-NVIDIA", "GPL-3.0-or-later", "LGPL-3.0-only"}  # their sections say where
        for each in (each for each in TABLE if each["use"] == "compiled"):
            for licence in set(re.split(r" (?:AND|OR|WITH) ", each["licence"])) - by_reference:
                self.assertIn(licence, texts, each["name"])
        self.assertIn("without restriction", texts["MIT"])
        self.assertIn("NO EVENT", texts["BSD-3-Clause"])


class Sbom(unittest.TestCase):
    """As installed, against the required fields of SPDX 2.3."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="triptych-contents-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.folder, "--component", "program"],
                       check=True, stdout=subprocess.DEVNULL)
        [cls.path] = cls.folder.rglob("triptych.spdx.json")
        cls.sbom = json.loads(cls.path.read_text())

    def test_licence_and_notice_lie_beside_it(self):
        for name in ("LICENSE", "NOTICE"):
            self.assertEqual((self.path.parent / name).read_text(), (SOURCE / name).read_text())

    def test_required_fields_are_there(self):
        sbom = self.sbom
        self.assertEqual((sbom["spdxVersion"], sbom["dataLicense"], sbom["SPDXID"]),
                         ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertRegex(sbom["documentNamespace"], r"^urn:uuid:[0-9a-f-]{36}$")
        self.assertRegex(sbom["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(sbom["creationInfo"]["creators"][0], r"^Tool: ")
        self.assertTrue(sbom["name"])
        ids = [package["SPDXID"] for package in sbom["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for package in sbom["packages"]:
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            self.assertTrue(package["name"] and package["downloadLocation"] and package["licenseConcluded"])
            if "LicenseRef-" in package["licenseConcluded"]:
                extracted = {each["licenseId"] for each in sbom["hasExtractedLicensingInfos"]}
                self.assertIn(package["licenseConcluded"], extracted)
        elements = {*ids, "SPDXRef-DOCUMENT"}
        for relation in sbom["relationships"]:
            self.assertIn(relation["relationshipType"], ("DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "OPTIONAL_DEPENDENCY_OF"))
            self.assertLessEqual({relation["spdxElementId"], relation["relatedSpdxElement"]}, elements)
        related = {relation[side] for relation in sbom["relationships"] for side in ("spdxElementId", "relatedSpdxElement")}
        self.assertEqual(related, elements, "a package without a relationship")

    def test_it_lists_what_this_build_found(self):
        names = {package["name"] for package in self.sbom["packages"]}
        always = {each["name"] for each in TABLE if "when" not in each}
        self.assertLessEqual(always | {"triptych", "CLI11"}, names)
        self.assertLessEqual(names, {each["name"] for each in TABLE} | {"triptych"})
        needed = Elf(PROGRAM).needed
        for each in TABLE:
            if any(file.startswith(library + ".") for library in each.get("libraries", []) for file in needed):
                self.assertIn(each["name"], names)

    def test_versions_are_those_of_the_packages(self):
        checked = 0
        for package in self.sbom["packages"]:
            for reference in package.get("externalRefs", []):
                self.assertRegex(reference["referenceLocator"], r"^pkg:deb/[a-z]+/[^@ ]+@[^@: ]+$")
                name, version = reference["referenceLocator"].split("/")[-1].replace("%2B", "+").replace("%3A", ":").split("@")
                self.assertEqual(version_of(name), version)
                self.assertTrue(version.split(":")[-1].startswith(package["versionInfo"]), package)
                checked += 1
        if shutil.which("dpkg-query"):
            self.assertGreater(checked, 10)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
