// SPDX-License-Identifier: BSD-2-Clause
// What is shown, in words.  Numbers of processes, frames and nodes hold for one profile only; a
// place is found again in a later profile of the same programs.

// A process as its row of the table, with strings in place of their numbers.
function processWords(profile, process) {
	return PROCESS_COLUMNS.map((name, i) => {
		const value = profile.processes[name][process];
		return i > 0 && i < PROCESS_COLUMNS.length - 1 ? profile.strings[value] : value;
	});
}

// Of CANDIDATES the one that HAS_NAME; without a NUMBER of its own nothing else tells them apart.
function pick(candidates, hasName, number) {
	return candidates.find(hasName) ?? (number ? candidates[0] : undefined) ?? -1;
}

// A process may change its title.
function findProcess(profile, words) {
	const { pids, starts, commands, shortNames } = profile.processes, { strings } = profile;
	const [pid, command, shortName] = words, start = words[words.length - 1];
	const same = [...pids.keys()].filter((i) => pids[i] === pid && starts[i] === start);
	return pick(same, (i) => strings[commands[i]] === command &&
		strings[shortNames[i]] === shortName, pid);
}

function findCommand(profile, words) {
	return profile.commands.names.indexOf(words[2] || words[1] || UNKNOWN_COMMAND);
}

function findThread(profile, process, [tid, name]) {
	const { processes, tids, names } = profile.threads;
	const same = [...tids.keys()].filter((i) => processes[i] === process && tids[i] === tid);
	return pick(same, (i) => profile.strings[names[i]] === name, tid);
}

function isGroup(profile, frame) {
	return profile.functionOf(frame) < 0;
}

// What a frame that stands for stacks of a process, command or thread is: [kind, which].
function groupWords(profile, frame) {
	const { threads, processes } = profile;
	if (frame >= profile.firstCommand)
		return ["command", profile.nameOf(frame)];
	if (frame >= profile.firstProcess) {
		const process = frame - profile.firstProcess, pid = processes.pids[process];
		return ["process", pid ? `${pid} ${processes.starts[process]}` : profile.nameOf(frame)];
	}
	const thread = frame - profile.firstThread, tid = threads.tids[thread];
	return ["thread", tid ? String(tid) : profile.nameOf(frame)];
}

function functionWords(profile, frame) {
	const { kinds, firstLines } = profile.functions, index = profile.functionOf(frame);
	return [kinds[index], firstLines[index], profile.nameOf(frame),
		profile.filenameOf(frame)].join("\0");
}

// From the root's child to NODE: the groups, then the functions, their lines and kinds.
function pathOf(profile, tree, node) {
	const frames = tree.path(node);
	return {
		groups: frames.filter((frame) => isGroup(profile, frame)).map(
			(frame) => groupWords(profile, frame)),
		functions: frames.filter((frame) => !isGroup(profile, frame)).map(
			(frame) => [functionWords(profile, frame), profile.lineOf(frame), profile.kindOf(frame)]),
		level: tree.level,
	};
}

// The node of TREE that comes closest to PATH: the same functions from the root on, if possible
// at the same lines.  Groups of a kind that PATH has must be the same; others are passed through, as
// are frames that are hidden on one side.
function closestNode(profile, tree, { groups, functions: all, level }) {
	const reached = new Int32Array(tree.count).fill(-1), scores = new Float64Array(tree.count);
	const functions = all.filter(([, , kind]) => isKindShown(kind, tree.level));
	const wantedGroups = new Map(groups), functionScore = functions.length + groups.length + 1;
	let best = 0;
	reached[0] = 0;
	for (let child = 1; child < tree.count; child++) {
		const from = reached[tree.parents[child]], frame = tree.frames[child];
		if (from < 0)
			continue;
		let score = 0, step = 0;
		if (isGroup(profile, frame)) {
			const [kind, which] = groupWords(profile, frame);
			if (wantedGroups.has(kind) && wantedGroups.get(kind) !== which)
				continue;
			score = wantedGroups.has(kind) ? 1 : 0;
		} else if (isKindShown(profile.kindOf(frame), level)) {
			const [words, line] = functions[from] ?? [];
			if (functionWords(profile, frame) !== words)
				continue;
			step = 1;
			score = functionScore + (profile.lineOf(frame) === line ? 1 : 0);
		}
		reached[child] = from + step;
		scores[child] = scores[tree.parents[child]] + score;
		if (scores[child] > scores[best])
			best = child;
	}
	return best;
}

// STATE of PROFILE, whose zoomed node is in TREE, in words.
function placeOf(profile, tree, state) {
	const { process, command, thread, zoom, ...rest } = state, { threads, commands } = profile;
	const member = process >= 0 ? process : thread >= 0 ? threads.processes[thread] :
		command >= 0 ? commands.members[command][0] : -1;
	return {
		...rest,
		only: process >= 0 ? "process" : command >= 0 ? "command" : "",
		member: member >= 0 ? processWords(profile, member) : null,
		thread: thread >= 0 ?
			[threads.tids[thread], profile.strings[threads.names[thread]]] : null,
		path: pathOf(profile, tree, zoom),
	};
}

// The state that shows PLACE, but for the zoom; what PROFILE lacks is not chosen.
function stateFromPlace(profile, place) {
	const { only, member, thread, path, ...rest } = place;
	const process = member ? findProcess(profile, member) : -1;
	return {
		...rest,
		event: place.event < profile.events.length ? place.event : 0,
		process: only === "process" ? process : -1,
		command: only === "command" ? findCommand(profile, member) : -1,
		thread: thread ? findThread(profile, process, thread) : -1,
	};
}

// The profile of RAW, where the chosen process and thread stay even if they have no samples.
function profileWithPlace(raw, { only, member, thread }) {
	const profile = new Profile(raw);
	if (!member)
		return profile;
	let process = findProcess(profile, member);
	const isFound = only === "command" && !thread ? findCommand(profile, member) >= 0 : process >= 0;
	if (isFound && (!thread || findThread(profile, process, thread) >= 0))
		return profile;
	const numberOf = (text) => raw.strings.push(text) - 1;
	if (!isFound) {
		process = profile.processes.count;
		raw.processes.push(...member.map((value) =>
			typeof value === "string" ? numberOf(value) : value));
	}
	if (thread)
		raw.threads.push(process, thread[0], numberOf(thread[1]));
	return new Profile(raw);
}
