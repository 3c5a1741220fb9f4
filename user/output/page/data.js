// SPDX-License-Identifier: BSD-2-Clause
// The profile, unpacked from the page's JSON (html.c writes it).
//
// All that can stand in the graph is a frame, and frames have one numbering: the locations
// (a function at a line), the functions, the threads, the processes, what they run, and "all".

// As enum frame_kind in bpf/pybpfprof.h.  INTERPRETER is native code of the interpreter's own file;
// GROUP is the page's own.
const KIND = { GROUP: 0, PYTHON: 1, NATIVE: 2, KERNEL: 3, JIT: 4, REASON: 5, INTERPRETER: 6 };

// Column INDEX of a table that was written row by row.
function column(table, width, index) {
	const values = new Float64Array(table.length / width);
	for (let row = 0; row < values.length; row++)
		values[row] = table[row * width + index];
	return values;
}

function unpackSamples(table) {
	return {
		count: table.length / 3,
		threads: column(table, 3, 0),
		stacks: column(table, 3, 1),
		counts: column(table, 3, 2),
	};
}

class Profile {
	constructor(raw) {
		this.strings = raw.strings.map(printable);
		this.title = printable(raw.title);
		this.generator = raw.generator;
		this.startTime = new Date(raw.start_ms);
		this.threadsAtRoot = raw.threads_at_root;
		this.tellsProcesses = raw.tells_processes;
		this.reasons = raw.reasons;
		this.stackNumbers = raw.stacks;
		this.unpackFrames(raw);
		this.unpackThreads(raw);
		this.events = [raw, ...raw.others].map(
			({ event, unit, meaning, ledger, samples }) => ({ event, unit, meaning, ledger, samples }));
		this.before = null;
		this.showEvent(0);
		if (raw.before)
			this.compare(raw.before);
		this.labels = new Array(this.frameCount);
	}

	// Has the samples and the ledger of the event with this number.
	showEvent(index) {
		const { event, unit, meaning, ledger, samples } = this.events[index];
		this.shownEvent = index;
		this.ledger = ledger;
		this.samples = unpackSamples(samples);
		countedEvent = event;
		countedUnit = event && unit;
		countedMeaning = meaning;
	}

	unpackFrames(raw) {
		this.noPython = { function: raw.functions.length / 5, location: raw.locations.length / 2 };
		const functions = raw.functions.concat(
			[this.strings.push(NO_PYTHON) - 1, 0, 0, 0, KIND.REASON]);
		const locations = raw.locations.concat([this.noPython.function, 0]);
		this.functions = {
			count: functions.length / 5,
			names: column(functions, 5, 0),
			filenames: column(functions, 5, 1),
			shortFilenames: column(functions, 5, 2),
			firstLines: column(functions, 5, 3),
			kinds: column(functions, 5, 4),
		};
		this.locations = {
			count: locations.length / 2,
			functions: column(locations, 2, 0),
			lines: column(locations, 2, 1),
		};
		this.frameChoices = frameChoices(this.functions.kinds);
	}

	// Has the samples of BEFORE among the others: `was` and `now` say how many there were of each
	// then and now, `counts` how much time that is together, at the rate of now.
	compare(before) {
		const { samples: now } = this, was = unpackSamples(before.samples);
		const join = (a, b) => {
			const both = new Float64Array(a.length + b.length);
			both.set(a);
			both.set(b, a.length);
			return both;
		};
		this.before = { rate: before.rate_hz, duration: before.duration_s,
			startTime: new Date(before.start_ms),
			samples: was.counts.reduce((a, b) => a + b, 0) };
		this.samples = {
			count: was.count + now.count,
			threads: join(was.threads, now.threads),
			stacks: join(was.stacks, now.stacks),
			was: join(was.counts, new Float64Array(now.count)),
			now: join(new Float64Array(was.count), now.counts),
		};
		this.widths = {
			now: this.samples.now,
			before: this.samples.was.map((count) => count * before.scale),
		};
		this.widths.both = this.widths.before.map((count, i) => count + this.samples.now[i]);
		this.samples.counts = this.widths.both;
		this.mergeFunctions();
	}

	// A function is the same by its name and file, for lines move from one version to the next.
	mergeFunctions() {
		const { names, filenames, kinds, count } = this.functions, latest = new Map();
		const keys = Array.from({ length: count }, (_, i) =>
			[names[i], filenames[i], kinds[i]].join());
		keys.forEach((key, i) => latest.set(key, i));
		this.locations.functions = this.locations.functions.map((i) => latest.get(keys[i]));
	}

	unpackThreads(raw) {
		this.processes = unpackProcesses(raw.processes);
		this.commands = commandsOf(this.strings, this.processes);
		this.threads = {
			count: raw.threads.length / 3,
			processes: column(raw.threads, 3, 0),
			tids: column(raw.threads, 3, 1),
			names: column(raw.threads, 3, 2),
		};
		this.firstFunction = this.locations.count;
		this.firstThread = this.firstFunction + this.functions.count;
		this.firstProcess = this.firstThread + this.threads.count;
		this.firstCommand = this.firstProcess + this.processes.count;
		this.rootFrame = this.firstCommand + this.commands.count;
		this.frameCount = this.rootFrame + 1;
	}

	// The function of a frame, or -1 where it is a group of stacks.
	functionOf(frame) {
		if (frame < this.firstFunction)
			return this.locations.functions[frame];
		return frame < this.firstThread ? frame - this.firstFunction : -1;
	}

	lineOf(frame) {
		return frame < this.firstFunction ? this.locations.lines[frame] : 0;
	}

	kindOf(frame) {
		const index = this.functionOf(frame);
		return index < 0 ? KIND.GROUP : this.functions.kinds[index];
	}

	filenameOf(frame) {
		const index = this.functionOf(frame);
		return index < 0 ? "" : this.strings[this.functions.filenames[index]];
	}

	nameOf(frame) {
		const index = this.functionOf(frame);
		if (index >= 0)
			return this.strings[this.functions.names[index]];
		if (frame === this.rootFrame)
			return "all";
		if (frame >= this.firstCommand)
			return this.commands.names[frame - this.firstCommand];
		if (frame >= this.firstProcess)
			return this.processLabel(frame - this.firstProcess);
		return this.threadLabel(frame - this.firstThread);
	}

	// "(json/decoder.py:355)" of a label, or "".
	placeOf(frame) {
		const index = this.functionOf(frame), isPython = this.kindOf(frame) === KIND.PYTHON;
		if (index < 0 || !isPython && !this.functions.shortFilenames[index])
			return "";
		const file = this.strings[this.functions.shortFilenames[index]] || "?";
		const line = this.lineOf(frame);
		return line ? `${file}:${line}` : file;
	}

	// As every text output spells it: "qualname (json/decoder.py:355)".
	label(frame) {
		if (this.labels[frame] === undefined) {
			const place = this.placeOf(frame), name = this.nameOf(frame);
			this.labels[frame] = place ? `${name} (${place})` : name;
		}
		return this.labels[frame];
	}

	threadLabel(thread) {
		const name = this.strings[this.threads.names[thread]];
		return `thread (${this.threads.tids[thread]}): ${name}`;
	}

	processLabel(process) {
		const { commands, shortNames } = this.processes;
		const command = this.strings[commands[process] || shortNames[process]];
		const pid = this.processes.pids[process];
		// Without a PID, it stands for several processes.
		return pid ? `process ${pid}:"${command}"` : `service "${command}"`;
	}
}
