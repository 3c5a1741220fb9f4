// SPDX-License-Identifier: BSD-2-Clause
// How the profile was recorded, and what became of every sample.

// "Sampling period": a fixed one would keep step with timers of the program.
function periodText(ledger) {
	const { shortest_ns: shortest, longest_ns: longest, changes } = ledger.periods;
	if (!longest)
		return "not recorded";
	if (!changes)
		return `fixed, ${formatMilliseconds(longest)}`;
	return `irregular: ${formatMilliseconds(shortest)} to ${formatMilliseconds(longest)}, drawn ` +
		`anew ${formatCount(changes)} ${changes === 1 ? "time" : "times"}`;
}

function errorCount(ledger) {
	return Object.values(ledger.errors).reduce((sum, count) => sum + count, 0);
}

function pythonVersions(profile) {
	const versions = new Set(profile.processes.versions);
	return [...versions].map((id) => profile.strings[id]).filter(Boolean).join(", ") || "unknown";
}

// The line that is always shown.
function footerSummary(profile) {
	const { ledger } = profile, errors = errorCount(ledger);
	return [
		`${formatCount(ledger.rate_hz)} Hz`,
		`${ledger.duration_s.toFixed(1)} s`,
		`Python ${pythonVersions(profile)}`,
		formatSamples(ledger.samples),
		`${formatCount(errors)} ${errors === 1 ? "error" : "errors"}`,
		`${formatCount(ledger.lost)} lost`,
	].join("  ·  ");
}

// [term, value] of all that the ledger says about the recording.
function recordingRows(profile) {
	const { ledger, processes } = profile;
	const commands = Array.from({ length: processes.count }, (_, i) =>
		`${processes.pids[i]}: ${profile.strings[processes.commands[i]]}`);
	const start = profile.startTime;
	return [
		["Recorded", isNaN(start) || !start.getTime() ? "unknown" : start.toLocaleString()],
		["Duration", `${ledger.duration_s.toFixed(2)} s`],
		["Rate", `${formatCount(ledger.rate_hz)} Hz of CPU time`],
		["Sampling period", periodText(ledger)],
		["Python", pythonVersions(profile)],
		...commands.map((command) => ["Process", command]),
		["Threads", formatCount(profile.threads.count)],
		["Distinct stacks", formatCount(profile.ledger.stacks)],
		["Code objects", formatCount(ledger.code_objects) + (ledger.unnamed_code_objects ?
			`, ${formatCount(ledger.unnamed_code_objects)} gone before they could be named` : "")],
		["Written by", profile.generator],
	];
}

// [term, count, depth of indentation]: events = samples + lost, and so on down.
function ledgerRows(profile) {
	const { ledger, reasons } = profile;
	const errors = Object.entries(ledger.errors).filter(([, count]) => count > 0);
	return [
		["Events", ledger.events, 0],
		["Samples", ledger.samples, 1],
		["with a Python stack", ledger.python, 2],
		["of these cut at the depth limit", ledger.truncated, 3],
		...(ledger.line_unknown ?
			[["of these without their innermost line", ledger.line_unknown, 3]] : []),
		["without Python on the thread", ledger.no_python, 2],
		["Errors", errorCount(ledger), 2],
		...errors.map(([name, count]) => [reasons[name] || name, count, 3]),
		["Lost", ledger.lost, 1],
	];
}

function fillFooter(profile, footer) {
	footer.querySelector("[data-summary]").textContent = footerSummary(profile);
	const recording = footer.querySelector("[data-recording]");
	for (const [term, value] of recordingRows(profile)) {
		const entry = document.createElement("dt"), data = document.createElement("dd");
		entry.textContent = term;
		data.textContent = value;
		recording.append(entry, data);
	}
	const ledger = footer.querySelector("[data-ledger]");
	for (const [term, count, depth] of ledgerRows(profile)) {
		const row = ledger.insertRow(), name = document.createElement("th");
		name.scope = "row";
		name.textContent = term;
		name.className = `depth-${depth}`;
		row.append(name);
		row.insertCell().textContent = formatCount(count);
		row.insertCell().textContent = formatShare(count, profile.ledger.events);
	}
}
