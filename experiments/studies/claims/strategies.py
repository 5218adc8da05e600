"""Two GPUs with several strategies: the claim "strategies"."""
# SPDX-License-Identifier: Apache-2.0
from program import command
from report import figure, finding, table
from rules import judge_strategies

WORDS = ("--batch", 8, "--device", "rtx2070super", "--link", "pcie3x8")


def gains(times):
    """T1 / T2 - 1 by strategy."""
    return {name: times["single"] / seconds - 1 for name, seconds in times.items()}


def best_gains(times):
    """Of data and of model parallelism. The survey does not state how it cut the model: the better way counts."""
    gain = gains(times)
    return gain["dp"], max(gain["layers"], gain["pipeline:2"])


def examine_strategies(program):
    words = ("--model", "unet-m" if program.quick else "unet-l", *WORDS)
    rows = program.results("bench", "strategies", *words, "--strategies", "dp,layers,pipeline:2")
    sets = {name: {row["strategy"]: row for row in rows if row["assumptions"] == name} for name in ("plain", "fitted")}
    times = {name: {strategy: row["modelled"]["value"] for strategy, row in own.items()} for name, own in sets.items()}
    survey = {strategy: row["survey"]["value"] for strategy, row in sets["plain"].items()}
    said, plain, fitted = best_gains(survey), best_gains(times["plain"]), best_gains(times["fitted"])
    model = sets["fitted"]["single"]["epoch_model"]
    by_plain, by_fit = gains(times["plain"]), gains(times["fitted"])
    return finding(
        judge_strategies(said, plain, fitted),
        f"The table says {100 * said[0]:+.1f} % and {100 * said[1]:+.1f} %. Data sheets of its GPUs and their link give "
        f"{100 * plain[0]:+.1f} % to data parallelism and at most {100 * plain[1]:+.1f} % to a cut of the model. With a "
        f"fit, {model['fixed']['value']:g} s of the epoch that do not scale and two micro-batches at "
        f"{model['micro_batch_efficiency']:g} of their efficiency, the model gives {100 * fitted[0]:+.1f} % and "
        f"{100 * fitted[1]:+.1f} %; the survey states neither.",
        [command("bench", "strategies", *words)],
        [table("An epoch on two RTX 2070 SUPER (table 2)",
               [("strategy", ""), ("survey", "s"), ("from data sheets", "s"), ("with the fit", "s"),
                ("gain from data sheets", "%"), ("gain with the fit", "%")],
               [[name, row["survey"], row["modelled"], sets["fitted"][name]["modelled"],
                 figure(by_plain[name], "%", "modelled"), figure(by_fit[name], "%", "modelled")]
                for name, row in sets["plain"].items()])])
