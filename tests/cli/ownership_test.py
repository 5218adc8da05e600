"""Only the program's own files are replaced or deleted: hostile lists, links, copies, other commands, other runs."""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import fcntl
import signal

from onnx_files import save_relu
from support import *

CONTENT = "content of a file that this program did not write\n"
EVALUATE = ["evaluate", "run", "--out", "ev", "--threads", "1"]
DOT = ["explain", *TINY, "--dot"]


def content(folder):
    return {path.relative_to(folder): os.readlink(path) if path.is_symlink() else path.read_bytes()
            for path in folder.rglob("*") if path.is_file() or path.is_symlink()}


class OwnershipTest(ProgramTest):
    def train(self, out, *more):
        self.succeed("train", *TINY, "--synthetic-images", "4", "--steps", "1", "--mask-pictures", "1", "--out", out, "--threads", "1",
                     *more)

    def put(self, name, text=CONTENT):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def refused(self, *arguments, says=()):
        """The command fails as its user's fault, and no file is other than before."""
        before = content(self.folder)
        result = self.expect_error(2, *arguments, says=says)
        self.assertEqual(content(self.folder), before)
        return result


class Lists(OwnershipTest):
    def test_names_that_lead_out_delete_nothing(self):
        self.train("run")
        victim = self.put("victim/data.csv")
        (self.folder / "ev/worst/a").mkdir(parents=True)
        for name in ("worst/a/../../../victim/data.csv", str(victim), "../victim/data.csv"):
            for more in ([], ["--overwrite"]):
                with self.subTest(name=name, more=more):
                    self.put("ev/.triptych", f"{digest(victim)}  {name}\n")
                    self.refused(*EVALUATE, *more, says=["ev/.triptych", "line 1"])

    def test_linked_folders_are_not_entered(self):
        self.train("run")
        victim = self.put("victim/a.png")
        (self.folder / "ev/worst").mkdir(parents=True)
        (self.folder / "ev/worst/pics").symlink_to(victim.parent)
        self.put("ev/.triptych", f"{digest(victim)}  worst/pics/a.png\n")
        self.succeed(*EVALUATE)
        self.assertEqual(victim.read_text(), CONTENT)
        shutil.rmtree(self.folder / "ev")
        (self.folder / "ev").mkdir()
        (self.folder / "ev/worst").symlink_to(victim.parent)
        for more in ([], ["--overwrite"]):
            self.refused(*EVALUATE, *more, says=["ev/worst", "symbolic link"])
        self.assertEqual(sorted((self.folder / "victim").iterdir()), [victim])

    def test_a_list_that_is_not_the_programs_is_never_touched(self):
        self.put("notes/.triptych", "my notes, not a list\n")
        self.refused(*DOT, "notes/a.dot", says=["notes/.triptych", "move it away"])
        self.succeed(*DOT, "own/a.dot")
        (self.folder / "hard").mkdir()
        (self.folder / "hard/.triptych").hardlink_to(self.folder / "own/.triptych")
        self.refused(*DOT, "hard/b.dot", says=["hard/.triptych", "hard link"])
        (self.folder / "hard/.triptych").unlink()
        for target in ("../own/.triptych", "../absent"):
            (self.folder / "hard/.triptych").symlink_to(target)
            self.refused(*DOT, "hard/b.dot", says=["hard/.triptych", "symbolic link"])
            (self.folder / "hard/.triptych").unlink()

    def test_a_file_with_a_second_name_is_not_replaced(self):
        self.succeed(*DOT, "a.dot")
        (self.folder / "second").hardlink_to(self.folder / "a.dot")
        self.refused(*DOT, "a.dot", says=["a.dot", "hard link"])
        text = (self.folder / "a.dot").read_bytes()
        self.succeed(*DOT, "a.dot", "--overwrite")
        self.assertEqual((self.folder / "second").read_bytes(), text)


class Checkpoints(OwnershipTest):
    def test_copies_beside_a_checkpoint_stay(self):
        self.train("run")
        folder = self.folder / "run/checkpoint"
        tensors = next(folder.glob("step-*"))
        copy = folder / f"{tensors.stem}-good.safetensors"
        shutil.copy(tensors, copy)
        changed = folder / "step-000000009.safetensors"
        changed.write_text(CONTENT)
        for steps in ("2", "3", "4"):
            self.succeed("train", "--resume", "run", "--steps", steps)
        self.assertFalse(tensors.exists())
        self.assertTrue(copy.exists())
        self.assertEqual(changed.read_text(), CONTENT)

    def test_a_link_to_the_checkpoints_of_another_run_is_refused(self):
        self.train("one")
        shutil.copytree(self.folder / "one", self.folder / "two")
        shutil.rmtree(self.folder / "two/checkpoint")
        (self.folder / "two/checkpoint").symlink_to("../one/checkpoint")
        self.refused("train", "--resume", "two", "--steps", "2", says=["two/checkpoint", "the run in", "one"])

    def test_linked_checkpoints_are_locked_where_they_are(self):
        self.train("one")
        (self.folder / "one/checkpoint").rename(self.folder / "far")
        (self.folder / "one/checkpoint").symlink_to("../far")
        shutil.copytree(self.folder / "one", self.folder / "two", symlinks=True)
        first = self.start("train", "--resume", "one", "--steps", "1000000", "--threads", "1", "--checkpoint-every", "1")
        wait_for(lambda: checkpoints(self.folder / "one")[0]["step"] > 1)
        self.expect_error(2, "train", "--resume", "two", "--steps", "2", says=["far", "in use by another command"])
        first.kill()
        first.communicate()
        self.succeed("train", "--resume", "two", "--steps", str(checkpoints(self.folder / "two")[0]["step"] + 1))


class Data(OwnershipTest):
    MAKE = ["synthesize", "--images", "4", "--size", "32", "--out", "made"]

    def test_data_that_runs_trained_on_is_replaced_when_its_user_says_so(self):
        self.succeed(*self.MAKE)
        use = [*TINY, "--invert", "--steps", "1", "--threads", "1"]
        self.succeed("train", *use, "--data", "made", "--out", "runs/one")
        self.succeed("train", *use, "--images", "made/images", "--masks", "made/masks", "--out", "two")
        self.succeed(*self.MAKE)  # the same bytes
        says = ["made", "runs/one", "two", "--overwrite"]
        self.refused(*self.MAKE, "--seed", "1", says=says)
        self.succeed("train", "--resume", "two", "--steps", "2")
        shutil.rmtree(self.folder / "two")
        self.assertNotIn('/two"', self.refused(*self.MAKE, "--seed", "1", says=says[:2]).stderr)
        self.assertIn("runs/one", self.succeed(*self.MAKE, "--seed", "1", "--overwrite").stderr)

    def test_data_of_others_and_data_without_runs_have_no_such_notes(self):
        make_data(self.folder / "data", [(20, 20), (24, 16), (16, 16)])
        before = content(self.folder)
        self.succeed("train", *TINY, "--data", "data", "--steps", "1", "--out", "run", "--threads", "1")
        self.assertEqual({name: text for name, text in content(self.folder).items() if name.parts[0] == "data"}, before)
        self.succeed(*self.MAKE)
        self.succeed(*self.MAKE, "--seed", "1")


class Several(OwnershipTest):
    def together(self, *commands):
        processes = [self.start(*command) for command in commands]
        return [(process.wait(timeout=300), process.stderr.read()) for process in processes]

    def test_evaluations_of_one_folder_work_or_say_that_it_is_in_use(self):
        self.train("run")
        for _ in range(3):
            for code, said in self.together(*[EVALUATE] * 4):
                self.assertIn(code, (0, 2), said)
                if code == 2:
                    self.assertIn('"ev" is in use by another command', said)
        self.succeed(*EVALUATE)

    def test_a_folder_that_a_command_holds_is_in_use(self):
        self.train("run")
        make_data(self.folder / "data", [(20, 20)])
        save_relu(self.folder)
        commands = {"ev": EVALUATE, "made": ["synthesize", "--images", "2", "--size", "32", "--out", "made"],
                    "y": ["run", "model.onnx", "--input", "x.npy", "--out", "y"],
                    "other": ["train", *TINY, "--steps", "1", "--out", "other"], "run": ["train", "--resume", "run", "--steps", "2"]}
        for folder, command in commands.items():
            (self.folder / folder).mkdir(exist_ok=True)
            (self.folder / "link").symlink_to(folder)
            descriptor = os.open(self.folder / "link", os.O_RDONLY)
            (self.folder / "link").unlink()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self.refused(*command, says=f'"{folder}" is in use by another command')
            os.close(descriptor)
            self.succeed(*command)

    def test_files_of_one_folder_are_written_side_by_side(self):
        for _ in range(3):
            for code, said in self.together(*[[*DOT, "a.dot"]] * 4, [*DOT, "b.dot"]):
                self.assertEqual(code, 0, said)
        self.assertEqual(len((self.folder / ".triptych").read_text().splitlines()), 2)

    def test_runs_without_a_name_have_folders_of_their_own(self):
        command = ["train", *TINY, "--synthetic-images", "4", "--steps", "1", "--mask-pictures", "0", "--threads", "1", "--quiet"]
        for code, said in self.together(*[command] * 4):
            self.assertEqual(code, 0, said)
        self.assertEqual(len(list((self.folder / "runs").glob("unet-s-*/report.json"))), 4)

    def test_a_run_that_is_refused_leaves_no_folder(self):
        self.refused("train", *TINY, "--data", "absent", "--steps", "1", says="absent")
        self.assertEqual([path for path in (self.folder / "runs").glob("*")], [])


def end_group(number):
    """Kills what is left of a process group: nothing, where its members have ended with their parent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)


class Killed(OwnershipTest):
    def test_what_a_killed_command_left_goes_with_the_next(self):
        tmp = self.folder / "tmp"
        tmp.mkdir()
        mine = tmp / "triptych-results.backup"
        mine.mkdir()
        (mine / "file").write_text(CONTENT)
        environment = {**os.environ, "TMPDIR": str(tmp)}
        compiler = self.folder / "bin/g++"  # which never ends
        started = self.folder / "started"  # it has left the parent's descriptors, and so its locks
        self.put("bin/g++", f"#!/bin/sh\n: >'{started}'\nexec sleep 1000\n").chmod(0o755)
        self.put("scale.cu", "__global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n")
        slow = {**environment, "PATH": f"{compiler.parent}:{os.environ['PATH']}"}
        process = subprocess.Popen([PROGRAM, "kernel", "build", "scale.cu"], cwd=self.folder, env=slow,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(end_group, process.pid)
        left = lambda: list(tmp.glob("triptych-*/.triptych-files/*log"))
        wait_for(started.exists)
        process.kill()
        process.wait()
        self.assertTrue(left())
        self.run_program("kernel", "build", "absent.cu", env=environment)
        self.assertEqual(list(tmp.iterdir()), [mine])
        self.assertEqual((mine / "file").read_text(), CONTENT)

    def test_half_written_outputs_go_with_the_next(self):
        self.succeed(*DOT, "out/a.dot")
        half = self.put("out/.a.dot.123.0.triptych.tmp", "half")
        kept = self.put("out/.a.dot.123.0.tmp")
        self.succeed(*DOT, "out/a.dot")
        self.assertFalse(half.exists())
        self.assertTrue(kept.exists())


if __name__ == "__main__":
    main()
