"""Judges what compare_cpu.py measured: a table of Markdown, and JSON with the samples."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
import statistics


@dataclasses.dataclass
class Bar:
    """Bar that `ours` must reach beside the best of `others`, entries or families of the case.

    The ratio says how many times faster ours is; `smaller`: ours over theirs, at most `bound`.
    Without others it is the quantity itself. Without a bound there is no verdict.
    """
    ours: str
    others: tuple
    bound: float | None
    smaller: bool = False
    quantity: str = "seconds"
    work: tuple | None = None  # 10^9 operations of both: rates are shown
    machine: tuple | None = None  # (entry, slower entry, least ratio): other rounds do not count


def by_round(case, name, quantity):
    """The median of each round."""
    return {sample["round"]: statistics.median(sample[quantity])
            if isinstance(sample[quantity], list) else sample[quantity]
            for sample in case.samples.get(name, [])}


def extent(case, name, quantity):
    values = []
    for sample in case.samples[name]:
        value = sample[quantity]
        values += value if isinstance(value, list) else [value]
    return [min(values), max(values)]


def fair_rounds(case, bar):
    """The rounds that count, and the machine's own scaling in the best of them."""
    fast, slow, least = bar.machine
    fast, slow = by_round(case, fast, "seconds"), by_round(case, slow, "seconds")
    gains = {number: slow[number] / fast[number] for number in fast.keys() & slow.keys()}
    return {number for number, gain in gains.items() if gain >= least}, max(gains.values(),
                                                                            default=0)


def best_of(case, bar):
    """The fastest entry of the others that were measured, and which have none at all."""
    names, absent = [], []
    for other in bar.others:
        found = [entry.name for entry in case.entries
                 if other in (entry.name, entry.family) and entry.name in case.samples]
        names += found
        if not found:
            absent.append(other)
    best = min(names, default=None, key=lambda name: statistics.median(
        by_round(case, name, bar.quantity).values()))
    return best, absent


def judge(case, bar):
    """The row of a bar: values, ratio with its extremes, and whether it is met (None: open)."""
    row = {"case": case.name, "bound": bar.bound, "smaller": bar.smaller, "met": None,
           "alone": not bar.others, "quantity": "rate" if bar.work else bar.quantity}
    if bar.ours not in case.samples:
        return {**row, "open": case.errors.get(bar.ours, "not measured")}
    best, absent = best_of(case, bar)
    row["ours"] = shown(case, bar.ours, bar, 0)
    if best:
        row |= {"rival": best, "theirs": shown(case, best, bar, 1)}
    ours, theirs = (by_round(case, name, bar.quantity) for name in (bar.ours, best))
    rounds = ours.keys() & theirs.keys() if bar.others else set(ours)
    if bar.machine:
        fair, gain = fair_rounds(case, bar)
        row["note"] = (f"the machine gives up to {gain:.2f}, {len(fair)} of {len(rounds)} rounds "
                       "count")
        rounds &= fair
    if not rounds:
        return {**row, "open": row.get("note") or f"no {' or '.join(absent) or 'common round'}"}
    add_ratio(row, bar, *({number: values[number] for number in rounds & values.keys()}
                          for values in (ours, theirs)))
    if bar.bound is not None:
        row["met"] = row["ratio"] <= bar.bound if bar.smaller else row["ratio"] >= bar.bound
    if absent and row["met"]:  # the missing one might be the better one
        row |= {"met": None, "open": f"no {', '.join(absent)}"}
    return row


def add_ratio(row, bar, ours, theirs):
    def ratio(mine, other):
        if bar.smaller:
            return mine / other
        return other / mine * (bar.work[0] / bar.work[1] if bar.work else 1)
    if not bar.others:
        theirs = dict.fromkeys(ours, 1)
    pairs = [ratio(ours[number], theirs[number]) for number in ours]
    row["ratio"] = ratio(statistics.median(ours.values()), statistics.median(theirs.values()))
    row["ratio_extent"] = [min(pairs), max(pairs)]


def shown(case, name, bar, side):
    """[median, min, max]: seconds, MiB, or 10^9 operations per second."""
    median = statistics.median(by_round(case, name, bar.quantity).values())
    values = [median, *extent(case, name, bar.quantity)]
    return [bar.work[side] / value for value in (values[0], values[2], values[1])] if bar.work \
        else values


UNITS = {"seconds": (1e3, "ms"), "peak_memory_mib": (1, "MiB"), "rate": (1, "GFLOP/s")}


def cell(values, quantity):
    if values is None:
        return ""
    scale, unit = UNITS[quantity]
    median, low, high = (f"{value * scale:.3g}" if value * scale < 1000 else f"{value * scale:.0f}"
                         for value in values)
    return f"{median} ({low}–{high}) {unit}"


def line(row):
    bound = "" if row["bound"] is None else f"{'≤' if row['smaller'] else '≥'} {row['bound']:.3g}"
    rival = f"{row['rival']}: " if "rival" in row else ""
    ratio = ""
    if row["alone"]:
        scale, unit = UNITS[row["quantity"]]
        bound = f"≤ {row['bound'] * scale:.3g} {unit}"
    elif "ratio" in row:
        ratio = "{:.3g} ({:.3g}–{:.3g})".format(row["ratio"], *row["ratio_extent"])
    verdict = {True: "met", False: "**missed**", None: ""}[row["met"]]
    said = [verdict, f"open: {row['open']}" if "open" in row else row.get("note", "")]
    cells = [row["case"], cell(row.get("ours"), row["quantity"]),
             rival + cell(row.get("theirs"), row["quantity"]), ratio, bound,
             "; ".join(text for text in said if text)]
    return f"| {' | '.join(cells)} |"


def table(rows):
    head = ["| case | ours | rival | ratio | bar | |", "|---|---|---|---|---|---|"]
    return "\n".join(head + [line(row) for row in rows])


def introduction(document, versions):
    machine, others = document["machine"], document["others"] or [0]
    lines = [f"{machine['cpu']}, {machine['processors']} processors; "
             f"{document['threads']} threads, pinned to {document['pinned_to']}; {document['date']}, {document['commit']}; "
             f"{document['rounds']} rounds in turns.",
             f"Something else had {statistics.median(others):.2f} processors meanwhile (median; at "
             f"most {max(others):.2f}): ratios taken beside more than a tenth say little.",
             "Medians of rounds (minimum–maximum of all samples); ratios of the medians "
             "(minimum–maximum of the rounds).", ""]
    lines += [f"- {name}: {version}" for name, version in sorted(versions.items())]
    lines += [f"- {name} is missing: {how}" for name, how in document["missing"].items()]
    return "\n".join(lines) + "\n"


def write(document, cases, folder, roots):
    """Prints the table, writes both files (paths from `roots` on), and gives the exit code."""
    def shortened(part):
        for root in roots:
            part = str(part).replace(f"{root}/", "")
        return part
    rows = [judge(case, bar) for case in cases for bar in case.bars]
    versions = {entry.family: sample["version"] for case in cases for entry in case.entries
                for sample in case.samples.get(entry.name, []) if "version" in sample}
    document["others"] = [sample["others"] for case in cases for samples in case.samples.values()
                          for sample in samples if "others" in sample]
    document |= {"versions": versions, "bars": rows, "cases": [
        {"name": case.name, "errors": case.errors, "entries": [
            {"name": entry.name, "family": entry.family,
             "command": [shortened(part) for part in entry.command],
             "samples": case.samples.get(entry.name, [])} for entry in case.entries]}
        for case in cases]}
    text = f"{introduction(document, versions)}\n{table(rows)}\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"cpu-{document['date'][:19].replace(':', '')}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    path.with_suffix(".md").write_text(text)
    print(f"{text}\n{path}")
    judged = [row for row in rows if row["bound"] is not None]
    return 0 if judged and all(row["met"] for row in judged) else 1
