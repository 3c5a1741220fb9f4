// SPDX-License-Identifier: BSD-2-Clause
// The buttons, menus and fields above the graph.

class Controls {
	// CHANGE is called with the part of the state that a person changed.
	constructor(profile, change) {
		const byId = (id) => document.getElementById(id);
		this.profile = profile;
		this.change = change;
		this.views = [...document.querySelectorAll("[data-view]")];
		this.search = byId("search");
		this.regex = byId("regex");
		this.result = byId("search-result");
		this.process = byId("process");
		this.thread = byId("thread");
		this.group = byId("group");
		this.lines = byId("lines");
		this.reset = byId("reset");
		this.totals = threadTotals(profile);
		this.fillMenus();
		this.listen();
	}

	listen() {
		const { change } = this;
		for (const button of this.views)
			button.addEventListener("click", () => change({ view: button.dataset.view }));
		this.search.addEventListener("input", () => change({ query: this.search.value }));
		this.regex.addEventListener("click", () =>
			change({ isRegex: this.regex.getAttribute("aria-pressed") !== "true" }));
		this.process.addEventListener("change", () =>
			change({ process: Number(this.process.value), thread: -1 }));
		this.thread.addEventListener("change", () => change({ thread: Number(this.thread.value) }));
		this.group.addEventListener("change", () => change({ group: this.group.value }));
		this.lines.addEventListener("click", () =>
			change({ lines: this.lines.getAttribute("aria-pressed") !== "true" }));
		this.reset.addEventListener("click", () => change({ zoom: 0 }));
	}

	fillMenus() {
		const { profile } = this, { processes, threads } = profile;
		const options = [["none", "All merged"], ["process", "By process"], ["thread", "By thread"]];
		fillMenu(this.group, processes.count > 1 ? options : options.filter(
			([value]) => value !== "process"));
		const sums = new Float64Array(processes.count);
		this.totals.forEach((total, thread) => sums[threads.processes[thread]] += total);
		const all = sums.reduce((sum, total) => sum + total, 0);
		const indices = [...sums.keys()].sort((a, b) => sums[b] - sums[a]);
		fillMenu(this.process, [["-1", `All ${formatCount(processes.count)} processes`],
			...indices.map((i) => [i, `${processes.pids[i]} ${menuText(
				profile.strings[processes.commands[i]])} (${formatShare(sums[i], all)})`])]);
		this.process.closest("label").hidden = processes.count < 2;
	}

	// The threads of PROCESS, or all for -1, the busiest first.
	fillThreads(process) {
		const { profile, totals } = this, { threads } = profile;
		const indices = [...totals.keys()].filter((thread) =>
			totals[thread] > 0 && (process < 0 || threads.processes[thread] === process));
		const all = indices.reduce((sum, thread) => sum + totals[thread], 0);
		indices.sort((a, b) => totals[b] - totals[a]);
		fillMenu(this.thread, [["-1", indices.length === 1 ? "1 thread" :
			`All ${formatCount(indices.length)} threads`], ...indices.map((thread) => [thread,
			`${menuText(profile.strings[threads.names[thread]])} (${threads.tids[thread]}) ${
				formatShare(totals[thread], all)}`])]);
		this.filledProcess = process;
	}

	// Makes all of them say what STATE is.
	show(state) {
		for (const button of this.views)
			button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
		if (this.filledProcess !== state.process)
			this.fillThreads(state.process);
		if (this.search.value !== state.query)
			this.search.value = state.query;
		this.regex.setAttribute("aria-pressed", String(state.isRegex));
		this.lines.setAttribute("aria-pressed", String(state.lines));
		this.process.value = state.process;
		this.thread.value = state.thread;
		this.group.value = this.group.querySelector(`[value="${state.group}"]`) ? state.group : "none";
		this.reset.hidden = state.zoom === 0 || state.view === "table";
	}

	// SHARES are [samples, of how many, of what]; ERROR is why there are none.
	showResult(shares, error) {
		this.search.setAttribute("aria-invalid", String(Boolean(error)));
		this.result.classList.toggle("error", Boolean(error));
		this.result.textContent = error ? `Invalid: ${error}` : shares.map(
			([samples, whole, name]) => `${formatShare(samples, whole)} of ${name}`).join(", ");
		this.result.title = !error && shares.length ? formatSamples(shares[0][0]) : "";
	}
}

function menuText(text) {
	return text.length > 60 ? text.slice(0, 59) + "…" : text;
}

function fillMenu(menu, options) {
	menu.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}
