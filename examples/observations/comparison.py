"""Compares computed results with those of a collector: its archived results, or JSON of its API."""

import json
from pathlib import Path

COUNTS = ["sent", "received", "matched", "lost", "duplicated", "reordered", "unexpected", "given_up_sent",
          "given_up_received", "identical"]
SPREAD = ["min", "p50", "p90", "p99", "p999", "max"]
# Parts of a distribution in computed results, in this order.
PARTS = ["n", "min", "total", "p50", "p90", "p99", "p999", "max"]
KEYS = ["task", "task_number", "begin_ns"]
COLUMNS = (KEYS + COUNTS + ["error_ns", "not_synchronised", "contradicts_the_clocks"]
           + [f"{name}_{part}_ns" for name in ("delay", "variation") for part in ["mean", *SPREAD]])


def from_json(path):
    """Results of the collector, from JSON files of its API, or a folder of them."""
    path = Path(path)
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        document = json.loads(file.read_text())
        task = document["task"]
        for window in document["results"]:
            row = {"task": task["name"], "task_number": task["number"]}
            row |= {name: window[name] for name in ["begin_ns", *COUNTS, "error_ns", "not_synchronised"]}
            row["contradicts_the_clocks"] = int(window["contradicts_the_clocks"])
            for name in ("delay", "variation"):
                spread = window[f"{name}_ns"] or {}
                row |= {f"{name}_{part}_ns": spread.get(part) for part in ["mean", *SPREAD]}
            yield row


def flat(row, delay, variation):
    """A computed result as a row with the names of the collector. `delay` and `variation`: PARTS, or None."""
    for name, parts in (("delay", delay), ("variation", variation)):
        parts = dict(zip(PARTS, parts)) if parts and parts[0] else {}
        row |= {f"{name}_{part}_ns": parts.get(part) for part in SPREAD}
        row[f"{name}_mean_ns"] = parts["total"] / parts["n"] if parts else None
    return row


def is_equal(name, computed, stored, row):
    """Integers are equal. The collector computes a mean in double precision, so it has an error of rounding."""
    if "_mean_" not in name or computed is None or stored is None:
        return computed == stored
    low, high = (row[name.replace("mean", part)] for part in ("min", "max"))
    return abs(computed - stored) <= 1e-9 * max(abs(low), abs(high), 1)


def compare(computed, stored, most=20):
    """Prints the differences of results, at most `most`, and returns their number."""
    computed = {tuple(row[key] for key in KEYS): row for row in computed}
    stored = {tuple(row[key] for key in KEYS): row for row in stored}
    differences = []
    for key in sorted(computed.keys() | stored.keys()):
        one, other = computed.get(key), stored.get(key)
        if one is None or other is None:
            differences.append((key, "only in the results of the collector" if one is None else "only computed"))
            continue
        for name in COLUMNS:
            if name not in KEYS and not is_equal(name, one[name], other[name], one):
                differences.append((key, f"{name}: computed {one[name]}, collector {other[name]}"))
    for (task, number, begin), what in differences[:most]:
        print(f"{task} ({number}), {begin}: {what}")
    values = len(stored) * (len(COLUMNS) - len(KEYS))
    print(f"{len(stored)} results with {values} values: {len(differences) or 'no'} differences")
    return len(differences)


def show(rows, most):
    """Prints a table of the first rows."""
    names = ["task", "begin_ns", "sent", "matched", "lost", "duplicated", "reordered", "unexpected", "given_up_sent",
             "delay_min_ns", "delay_mean_ns", "delay_p99_ns", "delay_max_ns", "variation_mean_ns", "variation_p99_ns"]
    lines = [[name.removesuffix("_ns") for name in names]]
    for row in rows[:most]:
        values = [row[name] for name in names]
        lines.append(["-" if it is None else f"{it:.1f}" if isinstance(it, float) else str(it) for it in values])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
    if len(rows) > most:
        print(f"... {len(rows)} results; times in nanoseconds")
