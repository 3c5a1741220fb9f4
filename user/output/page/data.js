// SPDX-License-Identifier: BSD-2-Clause
// The profile, unpacked from the page's JSON (html.c writes it).
//
// All that can stand in the graph is a frame, and frames have one numbering: the locations
// (a function at a line), the functions, the threads, the processes, what they run, and "all".

// As enum frame_kind in bpf/pybpfprof.h; GROUP is the page's own.
const KIND = { GROUP: 0, PYTHON: 1, NATIVE: 2, KERNEL: 3, JIT: 4, REASON: 5 };

// Column INDEX of a table that was written row by row.
function column(table, width, index) {
	const values = new Float64Array(table.length / width);
	for (let row = 0; row < values.length; row++)
		values[row] = table[row * width + index];
	return values;
}

class Profile {
	constructor(raw) {
		this.strings = raw.strings.map(printable);
		this.title = printable(raw.title);
		this.generator = raw.generator;
		this.startTime = new Date(raw.start_ms);
		this.threadsAtRoot = raw.threads_at_root;
		this.tellsProcesses = raw.tells_processes;
		this.ledger = raw.ledger;
		this.reasons = raw.reasons;
		this.stackNumbers = raw.stacks;
		this.unpackFrames(raw);
		this.unpackThreads(raw);
		this.samples = {
			count: raw.samples.length / 3,
			threads: column(raw.samples, 3, 0),
			stacks: column(raw.samples, 3, 1),
			counts: column(raw.samples, 3, 2),
		};
		this.labels = new Array(this.frameCount);
	}

	unpackFrames(raw) {
		this.functions = {
			count: raw.functions.length / 5,
			names: column(raw.functions, 5, 0),
			filenames: column(raw.functions, 5, 1),
			shortFilenames: column(raw.functions, 5, 2),
			firstLines: column(raw.functions, 5, 3),
			kinds: column(raw.functions, 5, 4),
		};
		this.locations = {
			count: raw.locations.length / 2,
			functions: column(raw.locations, 2, 0),
			lines: column(raw.locations, 2, 1),
		};
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
		const index = this.functionOf(frame);
		if (index < 0 || this.functions.kinds[index] === KIND.REASON)
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
		// What has no PID stands for several.
		return pid ? `process ${pid}:"${command}"` : `service "${command}"`;
	}
}
