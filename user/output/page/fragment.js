// SPDX-License-Identifier: BSD-2-Clause
// What is shown, as the fragment of the page's address: whoever opens it sees the same.
// What is as it would be anyway is left out.

const VIEWS = ["flame", "icicle", "table"];
const GROUPS = ["none", "command", "process", "thread"];
const WIDTHS = ["both", "now", "before"];

function initialState(profile) {
	return {
		view: "flame",
		group: profile.threadsAtRoot ? "thread" : profile.tellsProcesses ? "command" : "none",
		event: 0,
		frames: "", // frames.js
		lines: !profile.before, // they move from one version to the next
		width: "both",
		command: -1,
		process: -1,
		thread: -1,
		zoom: 0,
		query: "",
		isRegex: false,
	};
}

// A whole number below LIMIT, or OTHERWISE: anybody can write an address.
function parseIndex(text, limit, otherwise) {
	return /^\d{1,9}$/.test(text ?? "") && Number(text) < limit ? Number(text) : otherwise;
}

function stateFromFragment(profile, fragment) {
	const values = new URLSearchParams(fragment.replace(/^#/, ""));
	const state = initialState(profile);
	if (VIEWS.includes(values.get("view")))
		state.view = values.get("view");
	if (GROUPS.includes(values.get("group")))
		state.group = values.get("group");
	state.event = Math.max(0, profile.events.findIndex(
		(each) => eventName(each) === values.get("event")));
	if (profile.frameChoices.includes(values.get("frames")))
		state.frames = values.get("frames");
	if (["on", "off"].includes(values.get("lines")))
		state.lines = values.get("lines") === "on";
	if (profile.before && WIDTHS.includes(values.get("width")))
		state.width = values.get("width");
	state.process = parseIndex(values.get("process"), profile.processes.count, -1);
	if (state.process < 0)
		state.command = parseIndex(values.get("command"), profile.commands.count, -1);
	state.thread = parseIndex(values.get("thread"), profile.threads.count, -1);
	state.zoom = parseIndex(values.get("zoom"), Infinity, 0);
	state.query = values.get("search") ?? values.get("regex") ?? "";
	state.isRegex = !values.has("search") && values.has("regex");
	return state;
}

function fragmentFromState(profile, state) {
	const initial = initialState(profile), values = new URLSearchParams();
	for (const key of ["view", "group", "width", "command", "process", "thread", "zoom"])
		if (state[key] !== initial[key])
			values.set(key, state[key]);
	if (state.event !== initial.event)
		values.set("event", eventName(profile.events[state.event]));
	if (chosenFrames(profile, state) !== chosenFrames(profile, initial))
		values.set("frames", state.frames);
	if (state.lines !== initial.lines)
		values.set("lines", state.lines ? "on" : "off");
	if (state.query)
		values.set(state.isRegex ? "regex" : "search", state.query);
	return values.toString();
}

// With IS_STEP the browser's Back leads to what was shown before; PLACE is what it finds here.
function showFragment(fragment, isStep, place) {
	const address = fragment ? "#" + fragment : location.pathname + location.search;
	if (location.hash === (fragment ? "#" + fragment : ""))
		return;
	try {
		history[isStep ? "pushState" : "replaceState"](place, "", address);
	} catch {
		// A document without an address of its own, in a frame say, cannot have this one.
	}
}
