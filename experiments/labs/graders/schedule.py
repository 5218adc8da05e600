"""A collective that a student writes as text: at step s rank r sends a chunk to another rank.

  steps N - 1
  send (r - s) % N to (r + 1) % N add
  send all to 0 add if r > 0

A step is a list of messages (from, to, chunk, adds), by sender and line. They carry the content from before the step. A
rank writes its incoming messages in this order.
"""
# SPDX-License-Identifier: Apache-2.0
# The buffer of each of the N ranks has N chunks. `steps` begins a phase with steps s = 0, 1, .... Each step has the
# `send` lines below it, for every rank r that fulfils the condition. The receiver adds the chunk or replaces its own.
# `#` begins a comment.
from array import array

from formula import Formula
from grading import Refused

ALL = -1  # chunks in one message
MOST_STEPS, MOST_LINES, MOST_MESSAGES = 1000, 200, 50_000
FORM = 'a line is "send CHUNK to RANK add" or "... replace", with "if ..."'


def at_line(number, why):
    return Refused(f"line {number}: {why}")


def shown_number(value):
    return f"{value:.0f}" if value == int(value) else repr(value)


class Send:
    """A `send` line. Formulas are parsed when they are first used, so that each message names N, r and s."""

    def __init__(self, text, number):
        self.number = number
        text, _, condition = (part.strip() for part in text.partition(" if "))
        self.condition = condition or "1"
        self.chunk, to, receiver = (part.strip() for part in text.partition(" to "))
        if not to:
            raise at_line(number, f"says not to whom; {FORM}")
        self.adds = receiver.endswith(" add")
        if not self.adds and not receiver.endswith(" replace"):
            raise at_line(number, f"says not what the receiver does; {FORM}")
        self.to = receiver.rpartition(" ")[0].strip()
        self.formulas = {}

    def value(self, text, variables):
        if text not in self.formulas:
            self.formulas[text] = Formula(text, variables)
        return self.formulas[text](**variables)

    def index(self, text, variables, words):
        value, limit = self.value(text, variables), variables["N"]
        if not 0 <= value < limit or value != int(value):
            raise Refused(f'"{text}" is {shown_number(value)}, and {words} are 0 to {limit - 1}')
        return int(value)

    def message(self, variables):
        """The message of rank r at step s, or None."""
        if self.value(self.condition, variables) == 0:
            return None
        chunk = ALL if self.chunk == "all" else self.index(self.chunk, variables, "chunks")
        to = self.index(self.to, variables, "ranks")
        if to == variables["r"]:
            raise Refused("a rank sends to itself")
        return variables["r"], to, chunk, self.adds


class Phase:
    def __init__(self, text, number):
        self.text, self.number, self.sends = text, number, []

    def count(self, world_size):
        try:
            count = Formula(self.text, ["N"])(N=world_size)
        except Refused as problem:
            raise at_line(self.number, problem) from None
        if not 0 <= count <= MOST_STEPS or count != int(count):
            raise at_line(self.number, f'"{self.text}" is {shown_number(count)} for N = {world_size}; '
                                       f"a phase has 0 to {MOST_STEPS} steps")
        return int(count)

    def step(self, world_size, step):
        messages = []
        for rank in range(world_size):
            for send in self.sends:
                try:
                    message = send.message({"N": world_size, "r": rank, "s": step})
                except Refused as problem:
                    raise at_line(send.number, f"{problem} (N = {world_size}, r = {rank}, s = {step})") from None
                messages += [message] if message else []
        return messages


def read_phases(text):
    phases = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if number > MOST_LINES:
            raise at_line(number, f"a schedule of more than {MOST_LINES} lines")
        line = line.partition("#")[0].strip()
        if line.startswith("steps "):
            phases.append(Phase(line[6:].strip(), number))
        elif line.startswith("send "):
            if not phases:
                raise at_line(number, 'stands before the first "steps" line')
            phases[-1].sends.append(Send(line[5:].strip(), number))
        elif line:
            comment = "; a comment begins with #" if line.startswith("//") else ""
            raise at_line(number, f'"{line[:40]}" begins with neither "steps" nor "send"{comment}')
    if not phases:
        raise Refused('the schedule has no "steps" line')
    return phases


def read_schedule(text, world_size):
    """The steps for that many ranks. Raises Refused, with the line, for a text that is none, and for chunks and ranks that
    do not exist."""
    steps, messages = [], 0
    for phase in read_phases(text):
        for step in range(phase.count(world_size)):
            steps.append(phase.step(world_size, step))
            messages += len(steps[-1])
            if messages > MOST_MESSAGES:
                raise at_line(phase.number, f"more than {MOST_MESSAGES} messages in all")
    return steps


def range_of(chunk, world_size, elements):
    """(begin, end) of a chunk. The first ones have an element more where N does not divide the elements."""
    if chunk == ALL:
        return 0, elements
    size, more = divmod(elements, world_size)
    begin = chunk * size + min(chunk, more)
    return begin, begin + size + (chunk < more)


def run_on(steps, buffers):
    """The buffers of all ranks, arrays of float32, after the steps."""
    buffers = [array("f", buffer) for buffer in buffers]
    ranks, elements = len(buffers), len(buffers[0])
    for step in steps:
        before = [buffer[:] for buffer in buffers] if step else []
        for source, to, chunk, adds in step:
            for i in range(*range_of(chunk, ranks, elements)):
                sent = before[source][i]
                buffers[to][i] = buffers[to][i] + sent if adds else sent
    return buffers


def bytes_by_link(steps, world_size, elements):
    """Bytes that each rank sends to each other one: [from][to]."""
    sent = [[0] * world_size for _ in range(world_size)]
    for step in steps:
        for source, to, chunk, _ in step:
            begin, end = range_of(chunk, world_size, elements)
            sent[source][to] += 4 * (end - begin)
    return sent


class Contributions:
    """How many times each chunk of each rank holds each rank's contribution, and the last step, from 1, that took it
    out (0: none did)."""

    def __init__(self, steps, world_size):
        ranks = range(world_size)
        self.steps, self.ranks = len(steps), ranks
        self.times = [[[int(i == rank) for i in ranks] for _ in ranks] for rank in ranks]
        self.replaced = [[[0] * world_size for _ in ranks] for _ in ranks]
        for number, step in enumerate(steps, 1):
            before = [list(chunks) for chunks in self.times] if step else []
            for source, to, chunk, adds in step:
                for each in ranks if chunk == ALL else (chunk,):
                    self.deliver(before[source][each], to, each, number, adds)

    def deliver(self, sent, to, chunk, number, adds):
        held = self.times[to][chunk]
        if adds:
            self.times[to][chunk] = [min(a + b, 1000) for a, b in zip(held, sent)]
            return
        replaced = self.replaced[to][chunk]
        for i in self.ranks:
            if held[i] > 0 and sent[i] == 0:
                replaced[i] = number
        self.times[to][chunk] = sent

    def names(self, rank, chunk):
        """The contributions in a chunk: "0, 1 (2 times)"."""
        times = self.times[rank][chunk]
        return ", ".join(str(i) if times[i] == 1 else f"{i} ({times[i]} times)" for i in self.ranks if times[i])

    def replacement(self, rank, chunk):
        """Text about the first missing contribution that was present earlier. Empty: there is none."""
        for i in self.ranks:
            if self.times[rank][chunk][i] == 0 and self.replaced[rank][chunk][i]:
                return (f"; that of rank {i} was there until step {self.replaced[rank][chunk][i]} of all "
                        f"{self.steps} replaced it")
        return ""


def first_wrong_sum(steps, world_size):
    """The first wrong sum as text. Empty when every chunk of every rank holds each rank's contribution once. One that lost
    a contribution comes before others."""
    held, first = Contributions(steps, world_size), ""
    for rank in held.ranks:
        for chunk in held.ranks:
            if all(times == 1 for times in held.times[rank][chunk]):
                continue
            replaced = held.replacement(rank, chunk)
            if first and not replaced:
                continue
            first = (f"with {world_size} ranks, after the last step, chunk {chunk} of rank {rank} holds contributions of "
                     f"rank {held.names(rank, chunk)}, and should hold that of each rank once{replaced}")
            if replaced:
                return first
    return first
