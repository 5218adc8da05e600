"""Two hosts, made of network namespaces: the bits of threads, and a cut link is a named fault."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
import signal
import stat
import subprocess
import time

from support import FEW, PROGRAM, ProgramTest, checkpoints, main, wait_for

RUN = ["train", *FEW, "--batch", "2", "--threads", "1", "--contract", "bf16-exact"]
NAMES = [f"triptych-{os.getpid()}-{side}" for side in "ab"]


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


class HostsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("mpirun"):
            self.skipTest("needs root, ip and mpirun")
        for name in NAMES:
            if ip("netns", "add", name).returncode != 0:
                self.skipTest("no network namespaces here")
            self.addCleanup(self.remove, name)
        if ip("link", "add", "va", "netns", NAMES[0], "type", "veth", "peer", "name", "vb", "netns",
              NAMES[1]).returncode != 0:
            self.skipTest("no pairs of virtual interfaces here")
        for number, name in enumerate(NAMES, 1):
            device = "va" if number == 1 else "vb"
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", device)
            for one in (device, "lo"):
                ip("-n", name, "link", "set", one, "up")
        # In place of ssh: the other host is the other namespace.
        agent = self.folder / "agent.sh"
        agent.write_text(f'#!/bin/bash\nwhile [[ "$1" == -* ]]; do shift; done\nshift\n'
                         f'exec ip netns exec {NAMES[1]} bash -c "$*"\n')
        agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
        (self.folder / "hosts").write_text("10.77.0.1 slots=1\n10.77.0.2 slots=1\n")
        self.mpirun = ["ip", "netns", "exec", NAMES[0], "mpirun", "--hostfile", "hosts", "--map-by", "node", "-np", "2",
                       "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self",
                       "--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24"]
        allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        for name in allow:
            self.mpirun += ["-x", name]
        self.environment = os.environ | allow

    def remove(self, name):
        for process in ip("netns", "pids", name).stdout.split():
            os.kill(int(process), signal.SIGKILL)
        ip("netns", "del", name)

    def test_two_hosts_train_to_the_bits_of_threads(self):
        process = subprocess.run([*self.mpirun, PROGRAM, *RUN, "--steps", "3", "--out", "hosts-run", "--transport", "mpi",
                                  "--json"], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                                 timeout=120)
        if "no MPI" in process.stderr:
            self.skipTest("this build has no MPI")
        self.assertEqual(process.returncode, 0, process.stderr)
        threads = self.train(*RUN[1:], "--steps", "3", "--ranks", "2", "--out", "threads")
        self.assert_same_training(threads, json.loads(process.stdout)["results"][0])

    def test_a_cut_link_is_named(self):
        log = open(self.folder / "log", "w+")
        self.addCleanup(log.close)
        process = subprocess.Popen([*self.mpirun, PROGRAM, *RUN, "--steps", "1000000", "--out", "long", "--validation",
                                    "0", "--transport", "mpi", "--comm-timeout", "1"], cwd=self.folder,
                                   env=self.environment, stdout=log, stderr=log)
        self.addCleanup(process.kill)  # mpirun itself waits long for the other host
        wait_for(lambda: checkpoints(self.folder / "long")
                 or "no MPI" in (self.folder / "log").read_text())
        if "no MPI" in (self.folder / "log").read_text():
            self.skipTest("this build has no MPI")
        time.sleep(0.2)
        ip("-n", NAMES[0], "link", "set", "va", "down")
        wait_for(lambda: "triptych:" in (self.folder / "log").read_text(), 20)
        # On a machine of its own it would have stopped answering; here its starter ends it first, now and then.
        self.assertRegex((self.folder / "log").read_text(),
                         r"triptych: rank 1 (stopped answering for [\d.]+ s|ended) in all-reduce")


if __name__ == "__main__":
    main()
