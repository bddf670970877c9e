"""The summary of a run on a device: figures beside their targets, and whether all is well."""

import math

from tests.on_device.shards import Report


def told(title: str, report: Report, least: int) -> list[str]:
    """What came of the tests of a part."""
    lines = [f"{title}: {report.passed} passed, {len(report.failed)} failed, {len(report.not_run)} not run"]
    if report.unfinished:
        lines[0] += f", no time for {report.unfinished}"
    lines += [f"  failed: {name}" for name in list(report.failed)[:40]]
    reasons = sorted({said.removeprefix("Skipped: ").strip() for said in report.not_run.values()})
    lines += [f"  not run: {reason.removeprefix('NOT RUN: ')}" for reason in reasons]
    if (known := report.run + len(report.not_run) + report.unfinished) < least:
        lines.append(f"  failed: {known} checks are known here, at least {least} exist")
    return lines


def passes(report: Report, least: int) -> bool:
    """Whether all tests of a part ran that can run here, and passed."""
    return bool(report.passed) and not report.failed and not report.unfinished and report.collected >= least


def rated(results: dict) -> list[str]:
    """The figures beside their targets."""
    seconds, copy = results["seconds"], results["copy_bytes_per_second"]
    if results["once"]:
        return [f"called {len(seconds)} rows once, on few samples: their times say nothing", *_not_measured(results)]
    lines = [f"copy of {results['large']} float32: {copy / 1e9:.0f} GB/s"] if copy else []
    beside = {name: row["torch"] / row["corefw"] for name, row in seconds.items() if "torch" in row}
    for title, chosen in (
        ("training steps", [name for name in beside if name.startswith("step ")]),
        ("matmul and convolution", [name for name in beside if name.startswith(("matmul", "bmm", "conv"))]),
        ("all rows", list(beside)),
    ):
        if chosen:
            mean = math.exp(sum(math.log(beside[name]) for name in chosen) / len(chosen))
            slower = sorted((beside[name], name) for name in chosen if beside[name] < 1 / 1.05)
            said = ", ".join(f"{name} {ratio:.2f}" for ratio, name in slower[:12])
            lines.append(f"{title}: {mean:.2f} times PyTorch's speed over {len(chosen)}; slower: {said or 'none'}")
    if copy:
        large = f"-{results['large']}"
        shares = {name: size / seconds[name]["corefw"] / copy for name, size in results["bytes"].items()}
        low = sorted((share, name) for name, share in shares.items() if share < 0.85 and name.endswith(large))
        said = ", ".join(f"{name} {share:.2f}" for share, name in low)
        lines.append(f"large rows below 0.85 of the copy's rate: {said or 'none'}")
    return [*lines, f"measured {len(seconds)} rows", *_not_measured(results)]


def _not_measured(results: dict) -> list[str]:
    lines = [f"failed: {name}: {error}" for name, error in results["failed"].items()]
    return lines + ([f"no time for {len(results['left_out'])} rows"] if results["left_out"] else [])
