"""The report as Markdown, ready for docs/lifecycle.md."""

from tests.bench.report import GPU_IDLE, MEASURES, Phase, Report


def table(report: Report) -> str:
    """Return where it was measured, then one table a phase."""
    model = f"{report.model.get('name')} {report.model.get('quantisation')}"
    lines = [
        f"{_adapter(report)}; Chromium {report.chromium}; {model}; {report.n_samples} samples, seed {report.seed}.",
        GPU_IDLE,
    ]
    for phase in report.phases:
        lines += ["", *_phase(phase)]
    lines += [f"FAULT {fault}" for fault in report.faults]
    return "\n".join(lines)


def _adapter(report: Report) -> str:
    found = report.adapter
    names = (found.get("vendor"), found.get("architecture"), found.get("description"))
    return " ".join(str(name) for name in names if name)


def _phase(phase: Phase) -> list[str]:
    low, high = phase.prompt_tokens or (0, 0)
    n_tokens = str(low) if low == high else f"{low} to {high}"
    missed = f"; {phase.n_missed} taken again" if phase.n_missed else ""
    lines = [
        f"| {phase.name}: {n_tokens} prompt tokens{missed} | p50 | p95 | max | n |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, found in phase.spreads().items():
        digits, unit = (1, " ms") if name.endswith("_ms") else (0, "")
        numbers = " | ".join(f"{value:.{digits}f}{unit}" for value in (found.p50, found.p95, found.max))
        lines.append(f"| {MEASURES[name]} | {numbers} | {found.n} |")
    return lines
