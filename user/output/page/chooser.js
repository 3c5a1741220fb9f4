// SPDX-License-Identifier: BSD-2-Clause
// The menu of processes: a button, and under it a list of commands and processes, which is
// searched by words: of a command line, a PID, a user, a container.

const CHOOSER_ROWS_MAX = 1000;
const CHOOSER_TEXT_MAX = 300;
const CHOOSER_MARGIN = 8;

class ProcessChooser {
	// CHOOSE is called with { process, command }: of both, what was not chosen is -1.
	constructor(choose) {
		const byId = (id) => document.getElementById(id);
		this.choose = choose;
		this.root = byId("process");
		this.button = byId("process-open");
		this.panel = byId("process-panel");
		this.query = byId("process-query");
		this.list = byId("process-list");
		this.chosen = { process: -1, command: -1 };
		this.rows = [];
		this.active = 0;
		this.listen();
	}

	setProfile(profile, totals) {
		this.profile = profile;
		this.totals = totals;
		this.entries = null;
		this.root.hidden = !profile.tellsProcesses;
	}

	get isOpen() {
		return !this.panel.hidden;
	}

	listen() {
		this.button.addEventListener("click", () => this.isOpen ? this.leave() : this.open());
		this.query.addEventListener("input", () => this.fill());
		this.panel.addEventListener("keydown", (event) => this.takeKey(event));
		// The focus stays where words are typed.
		this.root.addEventListener("mousedown", (event) => {
			if (event.target !== this.query)
				event.preventDefault();
		});
		this.list.addEventListener("click", (event) => {
			const row = event.target.closest("[role=option]");
			if (row)
				this.take(Number(row.dataset.row));
		});
		this.root.addEventListener("focusout", (event) => {
			if (!this.root.contains(event.relatedTarget))
				this.close();
		});
		addEventListener("resize", () => this.close());
	}

	// Makes the button say what STATE shows.
	show(state) {
		const { profile } = this;
		this.chosen = { process: state.process, command: state.command };
		const text = state.process >= 0 ? this.processText(state.process) :
			state.command >= 0 ? profile.commands.names[state.command] : this.allText();
		this.button.firstElementChild.textContent = text.slice(0, CHOOSER_TEXT_MAX);
		this.button.title = "Process: " + text.slice(0, CHOOSER_TEXT_MAX);
	}

	allText() {
		const { count } = this.profile.processes;
		return count === 1 ? "1 process" : `All ${formatCount(count)} processes`;
	}

	processText(process) {
		const { processes, strings } = this.profile;
		return `${processes.pids[process] || ""} ${strings[processes.commands[process]] ||
			strings[processes.shortNames[process]]}`.trim();
	}

	// What can be chosen: everything, the commands that several run, each process.
	makeEntries() {
		const { profile, totals } = this, { commands, processes } = profile;
		const sums = commands.members.map((members) => sumOf(totals, members));
		const all = sumOf(totals, [...totals.total.keys()]);
		const heaviest = [...sums.keys()].sort((a, b) => sums[b].all - sums[a].all);
		this.entries = [{ process: -1, command: -1, name: this.allText(), whose: "", samples: all }];
		for (const command of heaviest)
			if (commands.members[command].length > 1)
				this.entries.push({ section: "Commands", process: -1, command,
					name: commands.names[command], samples: sums[command],
					whose: `${formatCount(commands.members[command].length)} processes` });
		const pids = new Map();
		for (const pid of processes.pids)
			pids.set(pid, (pids.get(pid) ?? 0) + 1);
		for (const command of heaviest)
			for (const process of [...commands.members[command]].sort(
				(a, b) => totals.total[b] - totals.total[a]))
				this.entries.push({ section: "Processes", process, command: -1,
					name: this.processText(process), samples: sumOf(totals, [process]),
					whose: this.whoseText(process, pids.get(processes.pids[process]) > 1) });
		for (const entry of this.entries)
			entry.words = this.wordsOf(entry).toLowerCase();
		this.all = all;
	}

	// "www-data · 4f5b3c9de7a8 · shop/web-0"; with the start where another process had the same
	// PID.  A pod's uid tells nobody anything.
	whoseText(process, isPidShared) {
		const start = this.profile.processes.starts[process];
		const begin = isPidShared && start ? [`from ${new Date(start).toLocaleTimeString()}`] : [];
		const pod = this.profile.processes.podNames[process] ? ["Pod"] : [];
		const facts = ownershipFacts(this.profile, [process]).filter(([term]) =>
			["User", "Container", "Unit", ...pod].includes(term));
		return [...begin, ...facts.map(([, value]) => value)].join(" · ");
	}

	// All that an entry is found by.
	wordsOf(entry) {
		const { processes, strings } = this.profile;
		if (entry.process < 0)
			return `${entry.name} ${entry.whose}`;
		return ["shortNames", "users", "cgroups", "containers", "podUids", "podNames", "units",
			"versions"].reduce(
			(words, name) => `${words} ${strings[processes[name][entry.process]]}`, entry.name);
	}

	open() {
		if (!this.entries)
			this.makeEntries();
		this.panel.hidden = false;
		this.button.setAttribute("aria-expanded", "true");
		this.query.value = "";
		this.place();
		this.fill();
		this.query.focus();
	}

	close() {
		this.panel.hidden = true;
		this.button.setAttribute("aria-expanded", "false");
		this.list.replaceChildren();
	}

	// Closes it and goes back to the button.
	leave() {
		this.close();
		this.button.focus({ preventScroll: true });
	}

	// Under the button, inside the window.
	place() {
		const { panel } = this, { left, bottom } = this.button.getBoundingClientRect();
		const { width } = panel.getBoundingClientRect();
		panel.style.left = Math.max(CHOOSER_MARGIN,
			Math.min(left, window.innerWidth - width - CHOOSER_MARGIN)) + "px";
		panel.style.top = bottom + 4 + "px";
		panel.style.maxHeight = window.innerHeight - bottom - 4 - CHOOSER_MARGIN + "px";
	}

	// What all of the WANTED words are in; first where one is the PID, for digits are everywhere.
	findEntries(wanted) {
		const isPid = ({ process }) => process >= 0 &&
			wanted.includes(String(this.profile.processes.pids[process]));
		return this.entries.filter((entry) => wanted.every((word) => entry.words.includes(word))).sort(
			(a, b) => isPid(b) - isPid(a));
	}

	// Lists what was found.
	fill() {
		const wanted = this.query.value.toLowerCase().split(/\s+/).filter(Boolean);
		const found = this.findEntries(wanted), elements = [];
		this.rows = found.slice(0, CHOOSER_ROWS_MAX);
		this.rows.forEach((entry, i) => {
			if (entry.section && entry.section !== this.rows[i - 1]?.section)
				elements.push(this.note(entry.section, "heading"));
			elements.push(this.row(entry, i));
		});
		if (!found.length)
			elements.push(this.note("No match.", "note"));
		if (found.length > this.rows.length)
			elements.push(this.note(`${formatCount(found.length - this.rows.length)
			} more: type to narrow the list`, "note"));
		this.list.replaceChildren(...elements);
		this.activate(Math.max(0, wanted.length ? 0 : this.rows.findIndex(
			(entry) => this.isChosen(entry))));
	}

	isChosen({ process, command }) {
		return process === this.chosen.process && command === this.chosen.command;
	}

	note(text, className) {
		const element = document.createElement("div");
		element.className = className;
		element.setAttribute("role", "presentation");
		element.textContent = text;
		return element;
	}

	row(entry, i) {
		const row = document.createElement("div");
		row.id = "process-row-" + i;
		row.dataset.row = i;
		row.setAttribute("role", "option");
		row.setAttribute("aria-selected", String(this.isChosen(entry)));
		row.style.setProperty("--share", 100 * entry.samples.all / this.all.all + "%");
		for (const [className, text] of [["name", entry.name], ["whose", entry.whose],
			["share", formatPart(entry.samples, this.all)]]) {
			const part = document.createElement("span");
			part.className = className;
			part.textContent = text.slice(0, CHOOSER_TEXT_MAX);
			row.append(part, " ");
		}
		row.title = entry.name.slice(0, CHOOSER_TEXT_MAX);
		return row;
	}

	// The row that Enter takes.
	activate(i) {
		const row = this.list.querySelector(`[data-row="${i}"]`);
		this.list.querySelector(".active")?.classList.remove("active");
		this.active = i;
		if (row) {
			row.classList.add("active");
			row.scrollIntoView({ block: "nearest" });
			this.query.setAttribute("aria-activedescendant", row.id);
		} else {
			this.query.removeAttribute("aria-activedescendant");
		}
	}

	take(i) {
		const entry = this.rows[i];
		if (!entry)
			return;
		this.leave();
		this.choose({ process: entry.process, command: entry.command });
	}

	takeKey(event) {
		const last = this.rows.length - 1;
		switch (event.key) {
		case "ArrowDown":
			this.activate(Math.min(last, this.active + 1));
			break;
		case "ArrowUp":
			this.activate(Math.max(0, this.active - 1));
			break;
		case "Enter":
			this.take(this.active);
			break;
		case "Escape":
			this.leave();
			break;
		default:
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}
}
