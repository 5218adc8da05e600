"""ONNX models with external data in a Hugging Face cache, and checksums of external data."""
# SPDX-License-Identifier: Apache-2.0
from onnx_files import *
from support import *

BLOB = "b" * 64
RUN = ["--input", "x.npy", "--out", "out", "--threads", "1"]
REVISION = pathlib.Path("hub/models--a--b/snapshots/0123")


class HubCache(ProgramTest):
    def setUp(self):
        super().setUp()
        self.repository = self.folder / "hub/models--a--b"
        (self.repository / "blobs").mkdir(parents=True)
        (self.folder / REVISION / "onnx").mkdir(parents=True)
        self.data = struct.pack("<3f", 10, 20, 30)
        (self.repository / "blobs" / BLOB).write_bytes(self.data)
        self.save_model(self.repository / "blobs/model")
        (self.folder / REVISION / "onnx/model.onnx").symlink_to("../../../blobs/model")
        self.link(f"../../../blobs/{BLOB}")
        save_npy(self.folder / "x.npy", (1, 3), [1, 2, 3])

    def save_model(self, path, **entries):
        weight = external_tensor("w", (3,), location="model.onnx_data", **entries)
        path.write_bytes(model([node("Add", ["x", "w"], ["y"])], [value_info("x", ["batch", 3])],
                               [value_info("y", ["batch", 3])], [weight]))

    def link(self, target):
        link = self.folder / REVISION / "onnx/model.onnx_data"
        link.unlink(missing_ok=True)
        link.symlink_to(target)

    def expect_loaded(self, path=REVISION / "onnx/model.onnx"):
        self.succeed("run", path, *RUN)
        self.assertEqual(load_npy(self.folder / "out/output_0.npy"), ("<f4", (1, 3), [11, 22, 33]))

    def expect_refused(self, *says):
        self.expect_error(2, "run", REVISION / "onnx/model.onnx", *RUN, says=["model.onnx_data", *says])
        self.assertFalse((self.folder / "out").exists())

    def test_a_model_of_a_cache_runs(self):
        self.expect_loaded()
        self.assertIn("Add", self.succeed("import", REVISION / "onnx/model.onnx", "--bind", "batch=1").stdout)

    def test_a_directory_may_lead_to_the_snapshot(self):
        (self.folder / "mine").symlink_to(REVISION / "onnx")
        self.expect_loaded("mine/model.onnx")

    def test_other_links_are_refused(self):
        secret = self.folder / "secret"
        secret.write_bytes(self.data)
        (self.folder / "hub/secret").write_bytes(self.data)
        (self.folder / REVISION / "onnx/second").symlink_to(f"../../../blobs/{BLOB}")
        for target in (secret, self.repository / "blobs" / BLOB, "../../../../../secret", "../../../../secret",
                       "../../../blobs/../../secret", "second"):
            with self.subTest(target=target):
                self.link(target)
                self.expect_refused("symbolic link")

    def test_a_blob_is_a_regular_file_of_the_cache(self):
        blob = self.repository / "blobs" / BLOB
        (self.folder / "secret").write_bytes(self.data)
        for change, says in ((lambda: blob.symlink_to("../../../secret"), "symbolic link"),
                             (lambda: os.mkfifo(blob), "not a regular file"),
                             (lambda: os.link(self.folder / "secret", blob), "hard links"),
                             (lambda: None, "No such file")):
            blob.unlink()
            change()
            self.expect_refused(says)
            blob.touch()

    def test_directories_of_the_cache_are_no_links(self):
        elsewhere = self.folder / "elsewhere"
        (self.repository / "blobs").rename(elsewhere)
        (self.repository / "blobs").symlink_to(elsewhere)
        self.expect_refused("symbolic link")

    def test_a_snapshot_in_another_repository_has_none_of_its_blobs(self):
        other = self.folder / "hub/models--c--d/snapshots"
        other.parent.mkdir()
        (self.repository / "snapshots").rename(other)
        (self.repository / "snapshots").symlink_to(other)
        (other.parent / "blobs").mkdir()
        shutil.copy(self.repository / "blobs/model", other.parent / "blobs/model")
        self.expect_refused("No such file")

    def test_a_checksum_is_verified(self):
        digest = hashlib.sha1(self.data).hexdigest()
        for checksum, says in ((digest, None), (digest.upper(), None), ("0" * 40, ["0" * 40, digest]),
                               (digest[1:], ["hexadecimal"]), ("", ["hexadecimal"])):
            with self.subTest(checksum=checksum):
                self.save_model(self.repository / "blobs/model", checksum=checksum)
                shutil.rmtree(self.folder / "out", ignore_errors=True)
                if says is None:
                    self.expect_loaded()
                else:
                    self.expect_refused(*says)


if __name__ == "__main__":
    main()
