// SPDX-License-Identifier: BSD-2-Clause
// How the profile was recorded, and what became of every sample.

const FOOTER_PROCESSES_MAX = 20;

// "Sampling period": a fixed one would keep step with timers of the program.
function periodText(ledger) {
	const { shortest_ns: shortest, longest_ns: longest, changes } = ledger.periods;
	if (!longest)
		return "not recorded";
	if (!changes)
		return `fixed, ${formatMilliseconds(longest)}`;
	return `irregular: ${formatMilliseconds(shortest)} to ${formatMilliseconds(longest)}, ` +
		`redrawn ${formatCount(changes)} ${changes === 1 ? "time" : "times"}`;
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
		countedEvent || `${formatCount(ledger.rate_hz)} Hz`,
		`${ledger.duration_s.toFixed(1)} s`,
		`Python ${pythonVersions(profile)}`,
		...profile.processes.count > 1 ? [`${formatCount(profile.processes.count)} processes`] : [],
		`${formatCount(ledger.samples)} ${ledger.samples === 1 ? "sample" : "samples"}`,
		`${formatCount(errors)} ${errors === 1 ? "error" : "errors"}`,
		`${formatCount(ledger.lost)} lost`,
		...profile.before ? [`compared with ${formatSamples(profile.before.samples)}`] : [],
	].join("  ·  ");
}

// [term, value] of each process, or of very many, of what they run.
function processRows(profile) {
	const { processes, commands, strings } = profile;
	if (processes.count <= FOOTER_PROCESSES_MAX)
		return Array.from({ length: processes.count }, (_, i) => ["Process", [
			`${processes.pids[i] ? `${processes.pids[i]}: ` : ""}` +
				`${strings[processes.commands[i]] || strings[processes.shortNames[i]]}`,
			...ownershipFacts(profile, [i]).map(([term, value]) => `${term.toLowerCase()} ${value}`),
		].join(" · ")]);
	const most = [...commands.members.keys()].sort((a, b) =>
		commands.members[b].length - commands.members[a].length);
	const named = most.slice(0, FOOTER_PROCESSES_MAX).map((command) =>
		`${formatCount(commands.members[command].length)} ${commands.names[command]}`);
	if (most.length > named.length)
		named.push(`${formatCount(most.length - named.length)} other commands`);
	return [["Processes", `${formatCount(processes.count)}: ${named.join(", ")}`]];
}

function startTimeText(start) {
	return isNaN(start) || !start.getTime() ? "unknown" : start.toLocaleString();
}

function beforeText({ startTime, duration, rate, samples }) {
	return `${startTimeText(startTime)}, ${duration.toFixed(2)} s at ${formatCount(rate)} Hz: ${
		formatSamples(samples)}`;
}

// [term, value] of all that the ledger says about the recording.
function recordingRows(profile) {
	const { ledger } = profile;
	return [
		["Recorded", startTimeText(profile.startTime)],
		["Duration", `${ledger.duration_s.toFixed(2)} s`],
		...countedEvent ? [["Event", countedMeaning ? `${countedEvent}: ${countedMeaning}` : countedEvent]] : [
			["Rate", `${formatCount(ledger.rate_hz)} Hz of CPU time`],
			["Sampling period", periodText(ledger)],
		],
		...profile.before ? [["Compared with", beforeText(profile.before)]] : [],
		["Python", pythonVersions(profile)],
		...processRows(profile),
		["Threads", formatCount(profile.threads.count)],
		["Distinct stacks", formatCount(profile.ledger.stacks)],
		["Code objects", formatCount(ledger.code_objects) + (ledger.unnamed_code_objects ?
			`, ${formatCount(ledger.unnamed_code_objects)} gone before they could be named` : "")],
		["Written by", profile.generator],
	];
}

// [term, count, depth of indentation]: events = samples + passed over + lost, and so on down.
function ledgerRows(profile) {
	const { ledger, reasons } = profile;
	const errors = Object.entries(ledger.errors).filter(([, count]) => count > 0);
	return [
		["Events", ledger.events, 0],
		["Samples", ledger.samples, 1],
		["with a Python stack", ledger.python, 2],
		["cut at the depth limit", ledger.truncated, 3],
		...(ledger.line_unknown ?
			[["without the line of the innermost frame", ledger.line_unknown, 3]] : []),
		...(ledger.name_unknown ?
			[["with a function of unknown name", ledger.name_unknown, 3]] : []),
		["without Python on the thread", ledger.no_python, 2],
		["Errors", errorCount(ledger), 2],
		...errors.map(([name, count]) => [reasons[name] || name, count, 3]),
		...(ledger.without_gil ?
			[["Passed over: without the GIL, or nobody waited for it", ledger.without_gil, 1]] : []),
		["Lost", ledger.lost, 1],
	];
}

function fillFooter(profile, footer) {
	footer.querySelector("[data-summary]").textContent = footerSummary(profile);
	const recording = footer.querySelector("[data-recording]");
	recording.replaceChildren();
	for (const [term, value] of recordingRows(profile)) {
		const entry = document.createElement("dt"), data = document.createElement("dd");
		entry.textContent = term;
		data.textContent = value;
		recording.append(entry, data);
	}
	const ledger = footer.querySelector("[data-ledger]");
	ledger.replaceChildren();
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
