// SPDX-License-Identifier: BSD-2-Clause
// What the agent knows, every five seconds; names are put there as text alone.
const EVERY_MS = 5000;

const find = (id) => document.getElementById(id);
const graph = find("graph"), service = find("service"), live = find("live");
let isLoading = false, version = null;

function query() {
	return service.value ? "service=" + encodeURIComponent(service.value) : "";
}

function loadGraph() {
	const words = query();

	isLoading = true;
	graph.src = "flamegraph" + (words ? "?" + words : "");
	find("alone").href = graph.src;
	find("pprof").href = "debug/pprof/profile?seconds=10" + (words ? "&" + words : "");
}

// What the flame graph's page offers; nothing of an error's page, or while there is none.
function shownGraph() {
	return graph.contentDocument?.defaultView.pybpfprof;
}

// Only the numbers are new: what somebody has zoomed, searched or typed there stays.
async function renewGraph() {
	const address = graph.src;

	if (isLoading)
		return;
	if (!shownGraph()) {
		loadGraph();
		return;
	}
	const answer = await fetch(address);
	// The agent may be too busy to make one.
	if (!answer.ok)
		return;
	// No "<" stands in it.
	const profile = (await answer.text()).match(/ id="profile">([^<]*)</)[1];
	if (graph.src === address && !isLoading)
		shownGraph()?.renew(profile);
}

function row(target, rate) {
	const line = document.createElement("tr");
	const state = target.rate_hz < rate ? `${target.state} at ${target.rate_hz} Hz` : target.state;

	line.dataset.walked = target.state === "sampled";
	for (const text of [target.pid, target.service, target.comm, target.python, state])
		line.insertCell().textContent = text;
	return line;
}

function showServices(names) {
	const before = service.value;
	const options = ["", ...names].map((name) => new Option(name || "all", name));

	if (before && !names.includes(before))
		options.push(new Option(before, before));
	service.replaceChildren(...options);
	service.value = before;
}

function show(status) {
	const hidden = status.target_count - status.targets.length;

	// Another agent has other pages.
	if (version && version !== status.version)
		location.reload();
	version = status.version;
	find("summary").textContent = `${status.node}: ${status.target_count} processes, ` +
		`${status.samples} samples of ${status.events} events, ${status.rate_hz} Hz, ` +
		`pybpfprof ${status.version}`;
	find("targets").replaceChildren(...status.targets.map((target) => row(target, status.rate_hz)));
	find("more").textContent = `and ${hidden} more`;
	find("more").hidden = !hidden;
	if (document.activeElement !== service)
		showServices([...new Set(status.targets.map((target) => target.service))].sort());
}

async function update() {
	try {
		const answer = await fetch("status");

		if (!answer.ok)
			throw new Error(`${answer.status} ${answer.statusText}`);
		show(await answer.json());
		if (live.checked)
			await renewGraph();
	} catch (error) {
		find("summary").textContent = `the agent does not answer: ${error.message}`;
	}
	setTimeout(update, EVERY_MS);
}

graph.addEventListener("load", () => isLoading = false);
service.addEventListener("change", loadGraph);
loadGraph();
update();
