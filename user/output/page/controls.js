// SPDX-License-Identifier: BSD-2-Clause
// The buttons, menus and fields above the graph.

const MENU_THREADS_MAX = 200;

class Controls {
	// CHANGE is called with the part of the state that a person changed.
	constructor(change) {
		const byId = (id) => document.getElementById(id);
		this.change = change;
		this.views = [...document.querySelectorAll("[data-view]")];
		this.frames = byId("frames");
		this.choices = [...this.frames.children];
		this.search = byId("search");
		this.regex = byId("regex");
		this.result = byId("search-result");
		this.thread = byId("thread");
		this.group = byId("group");
		this.lines = byId("lines");
		this.reset = byId("reset");
		this.processes = new ProcessChooser((chosen) => change({ ...chosen, thread: -1 }));
		this.width = byId("width");
		this.event = byId("event");
		this.listen();
	}

	setProfile(profile) {
		this.profile = profile;
		this.totals = threadTotals(profile);
		this.filled = null;
		this.processes.setProfile(profile, processTotals(profile));
		this.fillFrames();
		this.fillGroups();
		fillMenu(this.event, profile.events.map((each, i) => [i, eventName(each)]));
		this.event.parentNode.hidden = profile.events.length < 2;
	}

	listen() {
		const { change } = this;
		for (const button of this.views)
			button.addEventListener("click", () => change({ view: button.dataset.view }));
		for (const button of this.choices)
			button.addEventListener("click", () => change({ frames: button.dataset.frames }));
		this.search.addEventListener("input", () => change({ query: this.search.value }));
		this.regex.addEventListener("click", () =>
			change({ isRegex: this.regex.getAttribute("aria-pressed") !== "true" }));
		this.thread.addEventListener("change", () => change({ thread: Number(this.thread.value) }));
		this.group.addEventListener("change", () => change({ group: this.group.value }));
		this.event.addEventListener("change", () => change({ event: Number(this.event.value) }));
		this.width.addEventListener("change", () => change({ width: this.width.value }));
		this.lines.addEventListener("click", () =>
			change({ lines: this.lines.getAttribute("aria-pressed") !== "true" }));
		this.reset.addEventListener("click", () => change({ zoom: 0 }));
	}

	// The choices that make a difference.  Where they are the same, the focus stays.
	fillFrames() {
		const { frames, choices } = this, { frameChoices: offered } = this.profile;
		const wanted = choices.filter((button) => offered.includes(button.dataset.frames));
		if (wanted.length !== frames.children.length || wanted.some((each) => !each.parentNode))
			frames.replaceChildren(...wanted);
		frames.hidden = wanted.length < 2;
	}

	// Gives each choice the colour of the frames that it adds.
	showColours(palette) {
		for (const button of this.choices)
			button.firstElementChild.style.background = palette.sample(
				KIND[button.dataset.kind]);
	}

	fillGroups() {
		const processes = [["command", "Merged by command"], ["process", "By process"]];
		fillMenu(this.group, [["none", "All merged"], ...this.profile.tellsProcesses ? processes : [],
			["thread", "By thread"]]);
	}

	// The threads of the processes that are shown, the busiest first; of very many, only those,
	// and the one that is shown.
	fillThreads(state) {
		const { profile, totals } = this, { threads } = profile, { total } = totals;
		const indices = [...total.keys()].filter((thread) =>
			total[thread] > 0 && isProcessShown(profile, state, thread));
		const all = sumOf(totals, indices);
		indices.sort((a, b) => total[b] - total[a]);
		const listed = indices.filter((thread, i) => i < MENU_THREADS_MAX || thread === state.thread);
		fillMenu(this.thread, [["-1", indices.length === 1 ? "1 thread" :
			`All ${formatCount(indices.length)} threads`], ...listed.map((thread) => [thread,
			`${menuText(profile.strings[threads.names[thread]])} (${threads.tids[thread]}) ${
				formatPart(sumOf(totals, [thread]), all)}`])]);
		if (listed.length < indices.length) {
			const rest = new Option(`${formatCount(indices.length - listed.length)} more: choose a process`);
			rest.disabled = true;
			this.thread.add(rest);
		}
		this.filled = state;
	}

	// Makes all of them say what STATE is.
	show(state) {
		for (const button of this.views)
			button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
		const shown = offeredFrames(this.profile, state);
		for (const button of this.choices)
			button.setAttribute("aria-pressed", String(button.dataset.frames === shown));
		if (this.filled?.process !== state.process || this.filled.command !== state.command ||
			!this.thread.querySelector(`[value="${state.thread}"]`))
			this.fillThreads(state);
		this.processes.show(state);
		if (this.search.value !== state.query)
			this.search.value = state.query;
		this.regex.setAttribute("aria-pressed", String(state.isRegex));
		this.lines.setAttribute("aria-pressed", String(state.lines));
		this.thread.value = state.thread;
		this.width.value = state.width;
		this.event.value = state.event;
		this.group.value = this.group.querySelector(`[value="${state.group}"]`) ? state.group : "none";
		this.reset.hidden = state.zoom === 0 || state.view === "table";
	}

	// SHARES are [samples, of how many, of what, how it was]; ERROR is why there are none.
	showResult(shares, error) {
		this.search.setAttribute("aria-invalid", String(Boolean(error)));
		this.result.classList.toggle("error", Boolean(error));
		this.result.textContent = error ? `Invalid: ${error}` : shares.map(
			([samples, whole, name, sides]) => `${sides ? formatSides(sides) :
				formatShare(samples, whole)} of ${name}`).join(", ");
		this.result.title = !error && shares.length && !shares[0][3] ? formatSamples(shares[0][0]) : "";
	}
}

function menuText(text) {
	return text.length > 60 ? text.slice(0, 59) + "…" : text;
}

function fillMenu(menu, options) {
	menu.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}
