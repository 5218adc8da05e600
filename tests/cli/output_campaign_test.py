"""Random outputs next to files of somebody else: nothing of theirs changes, and nothing of ours stays.

60 trials, or TRIPTYCH_OUTPUT_TRIALS of them, by TRIPTYCH_OUTPUT_SEED. A trial puts something in the way of a
command (a file, a link, a hard link, a pipe, a hostile list, a copy), or kills it, and looks at every file afterwards.
"""
# SPDX-License-Identifier: Apache-2.0
import stat

from mmu_test import PRODUCT
from onnx_files import save_relu
from support import *

TRIALS = int(os.environ.get("TRIPTYCH_OUTPUT_TRIALS", "60"))
SEED = int(os.environ.get("TRIPTYCH_OUTPUT_SEED", "1"))
FEWEST = ["--synthetic-images", "4", "--steps", "1", "--mask-pictures", "1", "--threads", "1", "--quiet"]
# Arguments, the option that names the output, and the output. One without a dot is a folder.
COMMANDS_TRIED = {
    "train": (["train", *TINY, *FEWEST], "--out", "o"),
    "resume": (["train", "--threads", "1", "--quiet", "--mask-pictures", "1", "--steps", "2"], "--resume", "o"),
    "run": (["run", "S/run", "--input", "S/data/images", "--threads", "1"], "--out", "o"),
    "run file": (["run", "S/run", "--input", "S/data/images/00.png", "--threads", "1"], "--out", "o/a.png"),
    "onnx": (["run", "S/model.onnx", "--input", "S/x.npy", "--threads", "1"], "--out", "o"),
    "evaluate": (["evaluate", "S/run", "--threads", "1", "--worst", "2"], "--out", "o"),
    "export": (["export", "S/run"], "--out", "o/a.onnx"),
    "weights": (["export", "S/run"], "--out", "o/a.safetensors"),
    "page": (["page", "S/run"], "--out", "o/a.html"),
    "dot": (["explain", *TINY], "--dot", "o/a.dot"),
    "assemble": (["mmu", "asm", "S/a.s"], "--out", "o/a.hex"),
    "synthesize": (["synthesize", "--images", "2", "--size", "32"], "--out", "o"),
    "describe": (["data", "describe", "S/data"], "--out", "o/a.png"),
}
MINE = b"of somebody else, number %d\n"
# Obstacles to the output, with their weights.
IN_THE_WAY = {"file": 2, "link": 2, "dangling": 1, "second name": 2, "pipe": 1, "folder link": 2, "changed": 1, "own": 2,
              "hostile list": 4, "foreign list": 1, "linked list": 1, "list of two names": 1, "copy": 3, "kill": 6, "leftover": 2}
ALWAYS_REFUSED = {"pipe", "folder link", "hostile list", "foreign list", "linked list", "list of two names"}
REFUSED = ALWAYS_REFUSED | {"file", "link", "dangling", "second name", "changed"}


def state(folder):
    """Kind, content and inode of each name."""
    result = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if kind == stat.S_IFREG else b""
        result[str(path.relative_to(folder))] = (kind, content, status.st_ino)
    return result


def whole(path):
    content = path.read_bytes()
    ending = {".json": b"}\n", ".html": b"</html>\n", ".csv": b"\n", ".dot": b"}\n", ".hex": b"\n"}.get(path.suffix)
    return b"IEND" in content[-12:] if path.suffix == ".png" else ending is None or content.endswith(ending)


class Trial:
    def __init__(self, test, random_numbers, number):
        self.test, self.random = test, random_numbers
        self.name = self.random.choice(list(COMMANDS_TRIED))
        ways = list(IN_THE_WAY)  # each of them once, then at random
        self.way = ways[number] if number < len(ways) else self.random.choices(ways, IN_THE_WAY.values())[0]
        self.overwrite = ["--overwrite"] * (self.random.random() < 0.3)
        self.arguments, self.option, value = COMMANDS_TRIED[self.name]
        self.top = test.folder / "trial"
        self.work, self.theirs, self.tmp = (self.top / name for name in ("w", "theirs", "tmp"))
        for folder in (self.work, self.theirs / "deep", self.tmp):
            folder.mkdir(parents=True)
        self.value = self.work / value
        self.out = self.value.parent if self.value.suffix else self.value
        self.number = self.random.randrange(1 << 30)
        for path in (self.theirs / "precious", self.theirs / "deep/x"):
            path.write_bytes(MINE % self.number)

    def command(self):
        seeds = [argument.replace("S/", f"{self.test.folder}/S/", 1) if argument.startswith("S/") else argument
                 for argument in self.arguments]
        return [PROGRAM, *seeds, self.option, str(self.value.relative_to(self.work)), *self.overwrite]

    def run(self, seconds=None):
        process = subprocess.Popen(self.command(), cwd=self.work, env={**os.environ, "TMPDIR": str(self.tmp)},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            said = process.communicate(timeout=seconds or 300)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, ""
        return process.returncode, said.decode()

    def files(self):
        """The outputs of the command, except logs that a run replaces without a message."""
        names = self.test.written[self.name]
        return [name for name in names if not name.endswith((".triptych", "losses.csv", "metrics.csv", "updates.csv"))
                and not name.startswith(("checkpoint/", "events"))]

    def begin(self):
        """Makes the obstacle. Returns the names of files that must not change."""
        if self.name == "resume":
            shutil.copytree(self.test.folder / "S/run", self.value)
        self.out.mkdir(exist_ok=True)
        (self.out / "bystander").write_bytes(MINE % self.number)
        victim = self.out / self.random.choice(self.files())
        victim.parent.mkdir(parents=True, exist_ok=True)
        list_file = self.out / ".triptych"
        if self.way in ("own", "changed", "copy", "linked list", "list of two names"):
            code, said = self.run()
            self.test.assertEqual(code, 0, f"{self.command()} {said}")
        elif self.way in REFUSED - {"hostile list", "foreign list", "folder link"}:
            victim.unlink(missing_ok=True)
        getattr(self, "put_" + self.way.replace(" ", "_"), lambda *_: None)(victim, list_file)

    def put_file(self, victim, _):
        victim.write_bytes(MINE % self.number)

    def put_link(self, victim, _):
        victim.symlink_to(self.theirs / "precious")

    def put_dangling(self, victim, _):
        victim.symlink_to(self.theirs / "absent")

    def put_second_name(self, victim, _):
        victim.hardlink_to(self.theirs / "precious")

    def put_pipe(self, victim, _):
        os.mkfifo(victim)

    def put_folder_link(self, victim, list_file):
        """A listed file behind a link, also where the command writes to a folder below."""
        (self.out / "way").symlink_to(self.theirs / "deep")
        with list_file.open("a") as file:
            file.write(f"{digest(self.theirs / 'deep/x')}  way/x\n")
        self.may_succeed = victim.parent == self.out
        if victim.parent != self.out:
            shutil.rmtree(victim.parent)
            victim.parent.symlink_to(self.theirs / "deep")
            (self.theirs / "deep" / victim.name).write_bytes(MINE % self.number)

    def put_changed(self, victim, _):
        with victim.open("ab") as file:
            file.write(MINE % self.number)

    def put_hostile_list(self, _, list_file):
        inner = self.random.choice(["", "worst/", "masks/a/", "images/"])
        up = "../" * (inner.count("/") + 2)
        name = self.random.choice([f"{inner}{up}theirs/precious", str(self.theirs / "precious"), "../../theirs/precious",
                                   "../../theirs/deep/x", f"./{inner}../bystander", f"{inner}/./bystander"])
        (self.out / inner).mkdir(parents=True, exist_ok=True)
        with list_file.open("a") as file:
            file.write(f"{digest(self.theirs / 'precious')}  {name}\n")

    def put_foreign_list(self, _, list_file):
        list_file.write_bytes(MINE % self.number)

    def put_linked_list(self, _, list_file):
        list_file.rename(self.theirs / "list")
        list_file.symlink_to(self.theirs / "list")

    def put_list_of_two_names(self, _, list_file):
        (self.theirs / "list").hardlink_to(list_file)

    def put_copy(self, *_):
        for path in [path for path in self.out.rglob("*") if path.is_file() and not path.name.startswith(".")]:
            shutil.copy(path, path.with_name(f"{path.stem}-good{path.suffix}"))

    def put_leftover(self, victim, _):
        victim.with_name(f".{victim.name}.12.3.triptych.tmp").write_bytes(b"half")
        left = self.tmp / "triptych-kernel.abc123/.triptych-files/deep"
        left.mkdir(parents=True)
        (left / "file").write_bytes(b"half")

    def run_all(self):
        self.may_succeed = False
        self.begin()
        before = state(self.top)
        if self.way == "kill":
            while (code := self.run(self.random.uniform(0.01, 0.5))[0]) is None and self.random.random() < 0.6:
                pass
            if code == 0 and self.name in ("train", "resume"):
                return  # the next would be refused, or have nothing to do
            if self.name == "train" and any((self.value / "checkpoint").glob("checkpoint-*.json")):
                self.arguments, self.option, _ = COMMANDS_TRIED["resume"]
        code, said = self.run()
        self.look(before, code, said)

    def look(self, before, code, said):
        what = f"{self.command()} with {self.way}: {code} {said}"
        after = state(self.top)
        refused = self.way in (ALWAYS_REFUSED if self.overwrite else REFUSED) and not self.may_succeed
        if self.name == "evaluate" and self.way == "copy" and not self.overwrite:
            refused = True  # all pictures in worst/ belong to the result
        taken = self.name == "train" and self.way in ("own", "changed", "copy", "linked list", "list of two names")
        self.test.assertEqual(code, 2 if refused or taken else 0, what)
        for name, was in before.items():
            theirs = name.startswith("theirs/") or "-good" in name or name.endswith("bystander")
            if theirs or ((refused or taken) and not name.startswith("tmp") and was[0] != stat.S_IFDIR):
                self.test.assertEqual(after.get(name), was, f"{name}: {what}")
        left = [name for name in after if name.endswith(".triptych.tmp") or name.startswith("tmp/")]
        made_temporaries = self.way != "leftover" or not refused
        if made_temporaries:
            self.test.assertEqual([name for name in left if not name.startswith("tmp/triptych-kernel.abc123")], [], what)
        if code == 0:
            for name in self.test.written[self.name]:
                path = self.out / name
                self.test.assertTrue(path.is_file() and whole(path), f"{name}: {what}")


class Campaign(ProgramTest):
    def setUp(self):
        super().setUp()
        seeds = self.folder / "S"
        make_data(seeds / "data", [(20, 20), (24, 16), (16, 16)])
        save_relu(seeds)
        (seeds / "a.s").write_text(PRODUCT)
        self.succeed("train", *TINY, *FEWEST, "--out", "S/run")
        self.written = {}
        for name, (arguments, option, value) in COMMANDS_TRIED.items():
            out = self.folder / "written" / value
            out.parent.mkdir(parents=True, exist_ok=True)
            if name == "resume":
                shutil.copytree(seeds / "run", out)
            self.succeed(*arguments, option, out)
            folder = out.parent if out.suffix else out
            self.written[name] = sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                                        if path.is_file() and ".tfevents." not in path.name and "checkpoint/" not in str(path))
            shutil.rmtree(self.folder / "written")

    def test_nothing_of_others_changes_and_nothing_is_left(self):
        random_numbers = random.Random(SEED)
        for number in range(TRIALS):
            trial = Trial(self, random_numbers, number)
            with self.subTest(trial=number, seed=SEED, command=trial.name, way=trial.way, overwrite=bool(trial.overwrite)):
                trial.run_all()
            shutil.rmtree(trial.top)


if __name__ == "__main__":
    main()
