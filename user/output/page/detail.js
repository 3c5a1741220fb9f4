// SPDX-License-Identifier: BSD-2-Clause
// What is said about one frame: the tooltip, and the line that screen readers follow.

const TOOLTIP_DISTANCE = 14;

// Where a frame is, in full: "/usr/lib/python3.11/json/decoder.py:355".
function fullPlace(profile, frame) {
	const file = profile.filenameOf(frame), line = profile.lineOf(frame);
	return file && line ? `${file}:${line}` : file;
}

// How much a node is of what.
function sampleTexts({ tree, weights }, node) {
	const count = weights.total[node];
	return [formatSamples(count), formatShare(count, weights.all) + " of all",
		...node > 0 ? [formatShare(count, weights.total[tree.parents[node]]) + " of its parent"] : [],
		formatAmount(weights.self[node]) + " in itself"];
}

// [term, value] of the same.
function sampleFacts({ tree, weights, zoom }, node) {
	const count = weights.total[node], facts = [["Samples", formatAmount(count)],
		["Of all", formatShare(count, weights.all)]];
	if (node > 0)
		facts.push(["Of parent", formatShare(count, weights.total[tree.parents[node]])]);
	if (zoom > 0 && tree.isInside(node, zoom))
		facts.push(["Of zoomed", formatShare(count, weights.total[zoom])]);
	return [...facts, ["In itself", `${formatAmount(weights.self[node])} (${
		formatShare(weights.self[node], weights.all)})`]];
}

// [term, value] of what a frame stands for, where it is not a Python function.
function frameFacts(profile, frame) {
	return [...groupFacts(profile, frame), ...kindFacts(profile, frame)];
}

// One sentence on a node.
function describeNode(scene, profile, node) {
	const { tree } = scene, parts = [profile.label(tree.frames[node]).slice(0, LABEL_LENGTH_MAX),
		...profile.before ? changeFacts(profile, scene.weights, node).map(
			([term, value]) => term === "Change" ? value : `${term.toLowerCase()} ${value}`) :
			sampleTexts(scene, node), "depth " + tree.depths[node]];
	for (const [term, value] of frameFacts(profile, tree.frames[node]))
		parts.push(`${term.toLowerCase()} ${value}`);
	return parts.join(" · ");
}

class Tooltip {
	constructor(element) {
		this.element = element;
		this.node = -1;
	}

	hide() {
		this.element.hidden = true;
		this.node = -1;
	}

	// Shows NODE beside the point, inside the window.
	show(scene, node, x, y) {
		const { element } = this;
		element.hidden = false;
		if (node !== this.node)
			this.fill(scene, node);
		this.node = node;
		const { width, height } = element.getBoundingClientRect();
		const left = x + TOOLTIP_DISTANCE + width > window.innerWidth ?
			x - TOOLTIP_DISTANCE - width : x + TOOLTIP_DISTANCE;
		const top = y + TOOLTIP_DISTANCE + height > window.innerHeight ?
			y - TOOLTIP_DISTANCE - height : y + TOOLTIP_DISTANCE;
		element.style.left = Math.max(4, left) + "px";
		element.style.top = Math.max(4, top) + "px";
	}

	fill(scene, node) {
		const { profile } = this, frame = scene.tree.frames[node];
		const name = document.createElement("strong"), place = document.createElement("div");
		const figures = document.createElement("dl");
		name.textContent = profile.nameOf(frame).slice(0, LABEL_LENGTH_MAX);
		place.className = "place";
		place.textContent = fullPlace(profile, frame).slice(-LABEL_LENGTH_MAX);
		const add = (term, value) => {
			const entry = document.createElement("dt"), data = document.createElement("dd");
			entry.textContent = term;
			data.textContent = value;
			figures.append(entry, data);
		};
		for (const [term, value] of profile.before ?
			changeFacts(profile, scene.weights, node) : sampleFacts(scene, node))
			add(term, value);
		for (const [term, value] of frameFacts(profile, frame))
			add(term, value.slice(0, LABEL_LENGTH_MAX));
		const index = profile.functionOf(frame);
		if (index >= 0 && profile.functions.firstLines[index])
			add("Begins at line", String(profile.functions.firstLines[index]));
		this.element.replaceChildren(name, ...place.textContent ? [place] : [], figures);
	}
}
