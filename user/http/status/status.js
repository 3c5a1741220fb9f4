// SPDX-License-Identifier: BSD-2-Clause
// What the agent knows, every five seconds; names are put there as text alone.
const EVERY_MS = 5000;

const find = (id) => document.getElementById(id);
const graph = find("graph"), service = find("service"), live = find("live");

function query() {
	return service.value ? "service=" + encodeURIComponent(service.value) : "";
}

function showGraph() {
	const words = query();

	graph.src = "flamegraph" + (words ? "?" + words : "");
	find("alone").href = graph.src;
	find("pprof").href = "debug/pprof/profile?seconds=10" + (words ? "&" + words : "");
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
			showGraph();
	} catch (error) {
		find("summary").textContent = `the agent does not answer: ${error.message}`;
	}
	setTimeout(update, EVERY_MS);
}

service.addEventListener("change", showGraph);
update();
