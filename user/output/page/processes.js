// SPDX-License-Identifier: BSD-2-Clause
// The processes, what they run, and whose they are.

// In the order of their columns (html.c writes them); strings but for the first and the last.
const PROCESS_COLUMNS = ["pids", "commands", "shortNames", "versions", "users", "cgroups",
	"containers", "podUids", "podNames", "units", "starts"];
const VALUES_MAX = 3;
const UNKNOWN_COMMAND = "[unknown command]";

function unpackProcesses(table) {
	const width = PROCESS_COLUMNS.length, processes = { count: table.length / width };
	PROCESS_COLUMNS.forEach((name, i) => processes[name] = column(table, width, i));
	return processes;
}

// What several processes run: those of one short name, or where there is none, of one command
// line, are one command.
function commandsOf(strings, processes) {
	const indices = new Map(), commands = { names: [], members: [], ofProcess: [] };
	for (let process = 0; process < processes.count; process++) {
		const string = processes.shortNames[process] || processes.commands[process];
		if (!indices.has(string)) {
			indices.set(string, commands.names.length);
			commands.names.push(strings[string] || UNKNOWN_COMMAND);
			commands.members.push([]);
		}
		commands.ofProcess.push(indices.get(string));
		commands.members[indices.get(string)].push(process);
	}
	commands.count = commands.names.length;
	return commands;
}

// As many digits of a container's ID as its tools show.
function shortId(id) {
	return /^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : id;
}

// What is known of PROCESSES in one column, each value once; "" where nothing is.
function distinctValues(profile, processes, name, shown = (text) => text) {
	const ids = new Set(processes.map((process) => profile.processes[name][process]));
	return listText([...ids].map((id) => shown(profile.strings[id])));
}

// TEXTS, each once, without those that are "".
function listText(texts) {
	const values = [...new Set(texts)].filter(Boolean), more = values.length - VALUES_MAX;
	return values.slice(0, VALUES_MAX).join(", ") + (more > 0 ? ` and ${formatCount(more)} more` : "");
}

// What pods are called: by their names where these are known.
function podText(profile, processes) {
	const { podNames, podUids } = profile.processes, { strings } = profile;
	return listText(processes.map((process) =>
		strings[podNames[process]] || strings[podUids[process]]));
}

function startText(profile, process) {
	const start = profile.processes.starts[process];
	return start ? new Date(start).toLocaleString() : "";
}

// [term, value] of whose PROCESSES are, as far as it is known.
function ownershipFacts(profile, processes) {
	const values = (...options) => distinctValues(profile, processes, ...options);
	const facts = [["User", values("users")], ["Container", values("containers", shortId)],
		["Pod", podText(profile, processes)], ["Unit", values("units")]];
	// A container's and a unit's cgroup say nothing new.
	if (!facts.slice(1).some(([, value]) => value))
		facts.push(["Cgroup", values("cgroups")]);
	if (processes.length === 1)
		facts.push(["Started", startText(profile, processes[0])]);
	return facts.filter(([, value]) => value);
}

// [term, value] of a frame that stands for processes.
function groupFacts(profile, frame) {
	if (frame >= profile.rootFrame || frame < profile.firstProcess)
		return [];
	if (frame < profile.firstCommand)
		return ownershipFacts(profile, [frame - profile.firstProcess]);
	const members = profile.commands.members[frame - profile.firstCommand];
	const pid = profile.processes.pids[members[0]];
	const runners = members.length > 1 ? `${formatCount(members.length)} processes` :
		pid ? `process ${pid}` : "";
	return [["Run by", runners], ...ownershipFacts(profile, members)].filter(([, value]) => value);
}

// Samples of each process.
function processTotals(profile) {
	return weighSides(profile, "both", (counts) => {
		const threads = threadCounts(profile, counts);
		const total = new Float64Array(profile.processes.count);
		threads.total.forEach((count, thread) => total[profile.threads.processes[thread]] += count);
		return { total, all: threads.all };
	});
}
