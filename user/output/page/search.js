// SPDX-License-Identifier: BSD-2-Clause
// Which frames a search finds, and what share of the samples they hold.

// Case counts where the query has a capital letter; \S and the like are none.
function isCaseSensitive(query, isRegex) {
	const letters = isRegex ? query.replace(/\\./g, "") : query;
	return letters !== letters.toLowerCase();
}

// { test(label) }, { error } for a regular expression that is none, or null for no search.
function compileQuery(query, isRegex) {
	if (!query)
		return null;
	const sensitive = isCaseSensitive(query, isRegex);
	if (isRegex) {
		try {
			const pattern = new RegExp(query, sensitive ? "" : "i");
			return { test: (label) => pattern.test(label) };
		} catch (error) {
			return { error: error.message.replace(/^.*\/[a-z]*: /, "") };
		}
	}
	if (sensitive)
		return { test: (label) => label.includes(query) };
	const lowered = query.toLowerCase();
	return { test: (label) => label.toLowerCase().includes(lowered) };
}

// A regular expression that finds a function at all of its lines, and no other name.
function functionQuery(profile, index) {
	const escape = (text) => text.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&");
	const frame = profile.firstFunction + index, place = profile.placeOf(frame);
	const name = escape(profile.nameOf(frame));
	return place ? `^${name} \\(${escape(place)}[:)]` : `^${name}$`;
}

// The frames of TREE that the query finds, as flags by frame; the root is never found.
function findFrames(profile, tree, query) {
	const found = new Uint8Array(profile.frameCount), seen = new Uint8Array(profile.frameCount);
	for (let node = 1; node < tree.count; node++) {
		const frame = tree.frames[node];
		if (!seen[frame]) {
			seen[frame] = 1;
			found[frame] = query.test(profile.label(frame)) ? 1 : 0;
		}
	}
	return found;
}

// Samples inside ZOOM that have a found frame; of frames inside each other, the outer counts.
function foundSamples(tree, weights, found, zoom) {
	const inside = new Uint8Array(tree.count);
	let samples = 0;
	inside[zoom] = 1;
	for (let node = zoom; node < tree.count; node++) {
		if (node !== zoom)
			inside[node] = inside[tree.parents[node]];
		if (inside[node] && found[tree.frames[node]]) {
			samples += weights.total[node];
			inside[node] = 0;
		}
	}
	return samples;
}

// The heaviest node that was found, or -1.
function heaviestFound(tree, weights, found) {
	let best = -1;
	for (let node = 1; node < tree.count; node++)
		if (found[tree.frames[node]] && weights.total[node] > (best < 0 ? 0 : weights.total[best]))
			best = node;
	return best;
}
