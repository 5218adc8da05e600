# SPDX-License-Identifier: Apache-2.0
"""Kernels of warp_kernels.py, interpreted: what their warps request in lockstep, and which accesses race.

Lanes that part at a branch meet at its immediate post-dominator in the graph of the ways that the warp's lanes take
until all of them are together again. Post-dominators are found by their definition: nodes without which the end cannot
be reached. Accesses are ordered by clocks of threads, and every pair of them is tried.
"""
import collections

from warp_kernels import END, SHARED

TOGETHER = {"barrier", "warp", "shuffle"}  # all lanes of a warp
STORES = {"store", "atomic"}


def next_operation(operation, at, variables):
    """Does what an operation does to a thread's variables; returns the number of the next one."""
    if operation.kind == "branch":
        return at + 1 if operation.value(variables) else operation.target
    if operation.kind == "jump":
        return operation.target
    if operation.kind == "return":
        return END
    if operation.kind == "set":
        variables[operation.variable] = operation.value(variables)
    if operation.kind == "read":
        variables["p"] = variables["c"][operation.value(variables)]
    return at + 1


class Run:
    """One launch of a kernel with these values of c."""

    def __init__(self, kernel, numbers):
        self.kernel = kernel
        self.numbers = numbers
        self.lines = collections.defaultdict(lambda: [0, 0, 0])  # (line, access): requests, lanes, sectors or passes
        self.races = set()  # pairs of lines
        for block in range(kernel.blocks):
            self.run_block(block)

    def thread(self, block, number):
        return {"t": number, "l": number % 32, "b": block, "p": block, "c": self.numbers}

    def run_block(self, block):
        threads = [self.thread(block, number) for number in range(self.kernel.threads)]
        ways = [self.way(dict(thread)) for thread in threads]
        self.find_races(block, ways)
        for first in range(0, len(threads), 32):
            lanes = range(first, min(first + 32, len(threads)))
            self.run_warp({lane: threads[lane] for lane in lanes}, [ways[lane] for lane in lanes])

    def way(self, variables):
        """Operations of one thread, each with the index that it accesses."""
        way, at = [], 0
        while at not in (END, len(self.kernel.operations)):
            operation = self.kernel.operations[at]
            way.append((at, operation.value(variables) if operation.space else None))
            at = next_operation(operation, at, variables)
        return way

    # Lockstep.

    def run_warp(self, lanes, ways):
        graphs = self.graphs(ways)
        at = {lane: 0 for lane in lanes}
        for graph in graphs:
            self.meets = {}
            self.graph = graph
            self.run_lanes(lanes, sorted(at), next(iter(at.values())) if at else END, END, at)
            # All that are left stand at one operation that they do together.
            at = {lane: place for lane, place in at.items() if place != END}
            for lane in at:
                at[lane] = at[lane] + 1

    def graphs(self, ways):
        """The edges between two times at which all lanes are together, for each such stretch."""
        graphs = []
        for way in ways:
            part, last = 0, None
            for at, _ in [*way, (END, None)]:
                if len(graphs) <= part:
                    graphs.append(collections.defaultdict(set))
                together = at == END or self.kernel.operations[at].kind in TOGETHER
                if last is not None:
                    graphs[part][last].add(END if together else at)
                last = at
                if together:
                    part, last = part + 1, None
        return graphs

    def run_lanes(self, lanes, group, at, until, places):
        """Runs the lanes of a group, which stand at one operation, until they come to another."""
        operations = self.kernel.operations
        while at != until and at != END and group:
            if at == len(operations) or operations[at].kind in TOGETHER:
                for lane in group:
                    places[lane] = at if at < len(operations) else END
                return
            operation = operations[at]
            if operation.space:
                self.request(operation, [operation.value(lanes[lane]) for lane in group])
            after = collections.defaultdict(list)
            for lane in group:
                after[next_operation(operation, at, lanes[lane])].append(lane)
            for lane in after.get(END, []):
                places[lane] = END
            if len(after) == 1:
                at = next(iter(after))
                continue
            meet = self.meeting_point(at)
            for place, part in after.items():
                if place != meet:
                    self.run_lanes(lanes, part, place, meet, places)
            if meet == END:
                return
            at = meet

    def meeting_point(self, node):
        if node not in self.meets:
            behind = self.post_dominators(node)
            self.meets[node] = max(behind, key=lambda other: len(self.post_dominators(other)))
        return self.meets[node]

    def post_dominators(self, node):
        """Nodes behind this one without which the end cannot be reached."""
        if node == END:
            return set()
        reached = self.reached(node, None)
        return {other for other in reached if other != node and (other == END or END not in self.reached(node, other))}

    def reached(self, node, without):
        seen, open_nodes = set(), [node]
        while open_nodes:
            for after in self.graph.get(open_nodes.pop(), ()):
                if after != without and after not in seen:
                    seen.add(after)
                    open_nodes.append(after)
        return seen

    def request(self, operation, indices):
        access = {"read": "load"}.get(operation.kind, operation.kind)
        entry = self.lines[operation.line, access]
        entry[0] += 1
        entry[1] += len(indices)
        if operation.space != "shared":
            entry[2] += len({index // 8 for index in indices})
            return
        banks = collections.Counter(index % 32 for index in (indices if access == "atomic" else set(indices)))
        entry[2] += max(banks.values())

    # Races.

    def find_races(self, block, ways):
        """Walks the threads from meeting to meeting, then tries all pairs of accesses to shared memory."""
        clocks = [[0] * len(ways) for _ in ways]
        for thread, clock in enumerate(clocks):
            clock[thread] = 1
        accesses = [[] for _ in range(SHARED)]
        places = [0] * len(ways)
        while any(place < len(way) for place, way in zip(places, ways)):
            for thread, way in enumerate(ways):
                places[thread] = self.walk(thread, way, places[thread], clocks[thread], accesses)
            self.meet_all(ways, places, clocks)
        for slot in accesses:
            for number, later in enumerate(slot):
                for earlier in slot[:number]:
                    if conflict(earlier, later) and not ordered(earlier, later) and not ordered(later, earlier):
                        self.races.add(frozenset((earlier["line"], later["line"])))

    def walk(self, thread, way, place, clock, accesses):
        while place < len(way):
            at, index = way[place]
            operation = self.kernel.operations[at]
            if operation.kind in TOGETHER or operation.kind == "halves":
                return place
            if operation.space == "shared":
                accesses[index].append({"thread": thread, "clock": list(clock), "line": operation.line,
                                        "writes": operation.kind in STORES, "strength": operation.strength})
            place += 1
        return place

    def meet_all(self, ways, places, clocks):
        """Threads that stand at a meeting do it, group by group."""
        groups = collections.defaultdict(list)
        for thread, way in enumerate(ways):
            if places[thread] == len(way):
                continue
            at, _ = way[places[thread]]
            kind = self.kernel.operations[at].kind
            size = {"barrier": len(ways), "halves": 16}.get(kind, 32)
            groups[at, size, thread // size].append(thread)
        for (at, size, _), group in groups.items():
            kind = self.kernel.operations[at].kind
            if kind == "barrier" and len(group) < size:
                continue  # others are on their way
            if kind != "shuffle":
                joined = [max(clocks[thread][i] for thread in group) for i in range(len(ways))]
                for thread in group:
                    clocks[thread] = list(joined)
                    clocks[thread][thread] += 1
            for thread in group:
                places[thread] += 1


def conflict(a, b):
    if a["thread"] == b["thread"] or not (a["writes"] or b["writes"]):
        return False
    if "plain" in (a["strength"], b["strength"]):
        return True
    return a["strength"] == b["strength"] == "volatile" and a["thread"] // 32 == b["thread"] // 32


def ordered(earlier, later):
    """True when the later access knows of the time at which its thread did the earlier one."""
    return later["clock"][earlier["thread"]] >= earlier["clock"][earlier["thread"]]
