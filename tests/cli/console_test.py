"""How much the program says and in which colours, and that it stops where it is told to: all commands alike."""
# SPDX-License-Identifier: Apache-2.0
import os
import pty
import signal
import subprocess

from support import COMMANDS, FEW, PROGRAM, ProgramTest, TINY, disc, main, png_bytes

ESCAPE = "\x1b["
MANY = 2000


class SpeechTest(ProgramTest):
    def on_terminal(self, *arguments, **environment):
        """Text that a terminal gets from the program's outputs."""
        try:
            terminal, end = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had here: {error}")
        known = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        with subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdout=end, stderr=end,
                              env={**known, "TERM": "xterm", **environment}) as process:
            os.close(end)
            text = b""
            while True:
                try:
                    text += os.read(terminal, 4096)
                except OSError:  # the program has closed its end
                    break
        os.close(terminal)
        self.assertEqual(process.returncode, 0, text)
        return text.decode()


class Loudness(SpeechTest):
    def test_every_command_takes_the_same_three_options(self):
        for command in [*([c] for c in COMMANDS), ["bench", "matmul"], ["data", "describe"], ["machine", "show"],
                        ["completion"]]:
            text = self.succeed(*command, "--help").stdout
            for option in ("--quiet", "-v, --verbose", "--color"):
                self.assertIn(f"  {option} ", text, command)
        self.expect_error(2, "devices", "--quiet", "-v", says="--quiet: does not apply with --verbose")
        self.expect_error(2, "devices", "--color", "sometimes", says=["--color", "auto, always, never"])
        self.expect_error(2, "--quiet", "devices", says="belongs after the command: triptych devices --quiet")

    def test_a_quiet_command_says_results_and_notes_alone(self):
        result = self.succeed("train", *FEW, "--steps", "2", "--out", "a", "--quiet")
        self.assertRegex(result.stderr, r"^(NOTE: .*\n)*$")
        self.assertIn("weights", result.stdout)
        masks = self.folder / "a/masks"
        (masks / "notes.txt").write_text("no picture")
        result = self.succeed("run", "a", "--input", masks, "--out", "m", "--quiet")
        self.assertRegex(result.stderr, r"^NOTE: .*notes\.txt")
        self.expect_error(2, "run", "none", "--input", masks, "--out", "m", "--quiet", says="none")

    def test_a_verbose_command_says_details(self):
        usual = self.succeed("train", *FEW, "--steps", "2", "--out", "a").stderr
        details = self.succeed("train", *FEW, "--steps", "2", "--out", "b", "-v").stderr
        for text in ("nodes of a step", "validation loss", "MiB of memory at most"):
            self.assertIn(text, details)
            self.assertNotIn(text, usual)
        self.assertRegex(self.succeed("run", "a", "--input", "a/masks", "--out", "m", "-v").stderr,
                         r"\w+\.png: \d+ x \d+ pixels in .* \(measured\)")
        self.assertRegex(self.succeed("evaluate", "a", "--verbose").stderr, r"Dice \d\.\d+, pixel accuracy")
        self.assertRegex(self.succeed("devices", "-v").stderr, r"^triptych .*s and \d+ MiB of memory at most\n$")


class Colours(SpeechTest):
    def test_a_terminal_gets_colours_and_a_file_none(self):
        command = ["train", *FEW, "--steps", "4", "--out"]
        self.assertIn(f"{ESCAPE}32m#", self.on_terminal(*command, "a"))  # of the bar
        result = self.succeed(*command, "b")
        self.assertNotIn(ESCAPE, result.stdout + result.stderr)

    def test_they_can_be_switched_off_and_on(self):
        self.assertIn(f"{ESCAPE}32mok{ESCAPE}0m", self.on_terminal("doctor"))
        for options, environment in ((["--color", "never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})):
            self.assertNotIn(ESCAPE, self.on_terminal("doctor", *options, **environment))
        self.assertIn(f"{ESCAPE}32mok", self.succeed("doctor", "--color", "always").stdout)
        result = self.run_program("run", "none", "--input", "x", "--out", "y", "--color", "always")
        self.assertTrue(result.stderr.startswith(f"{ESCAPE}31mtriptych:{ESCAPE}0m "), result.stderr)

    def test_documents_for_programs_have_none(self):
        for name in ("devices", "doctor"):
            self.assertNotIn(ESCAPE, self.succeed(name, "--json", "--color", "always").stdout)


class Stops(SpeechTest):
    """Ctrl-C while many images are done."""

    def setUp(self):
        super().setUp()
        self.succeed("train", *TINY, "--synthetic-images", "5", "--steps", "1", "--out", "run")
        for name, sample in (("images", lambda x, y, _: (x * 7 + y * 13) & 255), ("masks", disc(64, 64))):
            (self.folder / "many" / name).mkdir(parents=True)
            one = self.folder / f"{name}.png"
            one.write_bytes(png_bytes(64, 64, sample=sample))
            for i in range(MANY):
                os.link(one, self.folder / "many" / name / f"{i:04}.png")

    def stopped(self, says, *command):
        """What `command` says until it has ended, when it was told to stop once it had said `says`."""
        process = self.start(*command, "-v")
        errors = ""
        for line in process.stderr:
            errors += line
            if says in line:
                break
        process.send_signal(signal.SIGINT)
        output, rest = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, errors + rest)
        self.assertIn("stopping after this step or tile", rest)
        return output, rest

    def test_a_prediction_keeps_whole_masks(self):
        _, errors = self.stopped("0003.png: ", "run", "run", "--input", "many/images", "--out", "found")
        self.assertRegex(errors, rf"NOTE: stopped after \d+ of {MANY} images")
        written = sorted(path.name for path in (self.folder / "found").iterdir() if not path.name.startswith("."))
        self.assertGreaterEqual(len(written), 4)
        self.assertLess(len(written), MANY)
        self.assertEqual(written, [f"{i:04}.png" for i in range(len(written))])
        self.assertIn(f"stopped after {len(written)} of", errors)

    def test_an_evaluation_writes_nothing(self):
        output, errors = self.stopped("0003: ", "evaluate", "run", "--data", "many", "--out", "judged")
        self.assertIn("NOTE: stopped; nothing was written", errors)
        self.assertEqual(output, "")
        self.assertFalse((self.folder / "judged").exists())


if __name__ == "__main__":
    main()
