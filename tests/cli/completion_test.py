"""The scripts by which shells complete the program's commands and options."""
# SPDX-License-Identifier: Apache-2.0
import shutil
import subprocess
import unittest

from support import ProgramTest, main


class Completion(ProgramTest):
    def completed(self, *words):
        """What bash offers for the last of these words."""
        script = self.run_program("completion", "bash").stdout
        quoted = " ".join(f"'{word}'" for word in words)
        result = subprocess.run(
            ["bash", "-c", f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _triptych; "
             "printf '%s\\n' \"${COMPREPLY[@]}\""], text=True, capture_output=True, check=True, cwd=self.folder)
        return result.stdout.split()

    def test_commands_and_their_options_are_offered(self):
        self.assertEqual(self.completed("triptych", "tra"), ["train", "trace"])
        self.assertEqual(self.completed("triptych", "train", "--sched"),
                         ["--schedule", "--schedule-steps"])
        self.assertEqual(self.completed("triptych", "bench", "all"), ["all-reduce"])
        self.assertIn("--ranks", self.completed("triptych", "bench", "all-reduce", "--"))

    def test_values_of_options_do_not_change_the_command(self):
        self.assertEqual(self.completed("triptych", "train", "--out", "bench", "--sched"),
                         ["--schedule", "--schedule-steps"])

    def test_values_of_options_are_files_and_directories(self):
        (self.folder / "mine").mkdir()
        (self.folder / "list.csv").touch()
        for words in (["--list", ""], ["--list", "li"], ["--lr", ""], ["--list", "=", "li"], ["--list", "="]):
            self.assertEqual(self.completed("triptych", "train", *words), [], words)  # bash then offers files
        for words in (["--data", ""], ["--data", "mi"], ["--data", "="], ["--resume", "m"]):
            self.assertEqual(self.completed("triptych", "train", *words), ["mine"], words)
        self.assertIn("--data", self.completed("triptych", "train", "--quiet", "--d"))
        self.assertIn("--data", self.completed("triptych", "train", "--data", "mine", ""))

    def test_values_with_names_are_offered(self):
        for words, values in ((["train", "--backend", "cu"], ["cuda", "cuda-emulated"]),
                              (["train", "--backends", "cpu,sy"], ["cpu,systolic"]),
                              (["compare", "--backends", "sy"], ["systolic"]),
                              (["train", "--model", "unet"], ["unet-s", "unet-m", "unet-l"]),
                              (["train", "--contract", "bf"], ["bf16", "bf16-exact"]),
                              (["train", "--schedule", ""], ["constant", "cosine"]),
                              (["train", "--schedule", "=", "cos"], ["cosine"]),
                              (["explain", "--machine", "mmu3"], ["mmu32"]),
                              (["machine", "show", "mmu3"], ["mmu32"]),
                              (["bench", "--device", "rtx"], ["rtx2070super"]),
                              (["completion", "z"], ["zsh"]), (["help", "quan"], ["quantize"])):
            self.assertEqual(self.completed("triptych", *words), values, words)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_takes_its_script(self):
        script = self.run_program("completion", "zsh").stdout
        subprocess.run(["zsh", "-f"], input="autoload -U compinit && compinit -u\n" + script,
                       text=True, check=True)

    def test_fish_is_told_each_option(self):
        script = self.run_program("completion", "fish").stdout
        self.assertIn("-l schedule-steps -r -F\n", script)
        self.assertIn('-l schedule -r -a "constant cosine"\n', script)
        self.assertIn('-l data -x -a "(__fish_complete_directories)"\n', script)
        self.assertIn("-l overwrite\n", script)
        self.assertIn("-a train\n", script)

    def test_other_shells_are_answered_with_these(self):
        self.expect_error(2, "completion", "tcsh", says="bash, zsh, fish")


if __name__ == "__main__":
    main()
