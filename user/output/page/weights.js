// SPDX-License-Identifier: BSD-2-Clause
// How many samples each node and each function has, of the threads that are shown.

// Whether STATE shows the process of THREAD.
function isProcessShown(profile, state, thread) {
	const process = profile.threads.processes[thread];
	if (state.process >= 0)
		return process === state.process;
	return state.command < 0 || profile.commands.ofProcess[process] === state.command;
}

// Samples with each node as their leaf, and with it anywhere; COUNTS: of each sample.
function weighCounts(profile, tree, isShown, counts) {
	const { samples } = profile, self = new Float64Array(tree.count);
	for (let i = 0; i < samples.count; i++)
		if (isShown(samples.threads[i]))
			self[tree.sampleNodes[i]] += counts[i];
	const total = self.slice();
	for (let node = tree.count - 1; node > 0; node--)
		total[tree.parents[node]] += total[node];
	return { self, total, all: total[0] };
}

// Runs WEIGHER with counts of samples; where the profile is compared, for what is drawn as WIDTH
// says, and for both sides.
function weighSides(profile, width, weigher) {
	const { samples } = profile;
	return profile.before ? { ...weigher(profile.widths[width]), was: weigher(samples.was),
		now: weigher(samples.now) } : weigher(samples.counts);
}

function weigh(profile, tree, isShown, width) {
	return weighSides(profile, width, (counts) => weighCounts(profile, tree, isShown, counts));
}

// The same for functions, from the stacks' tree: recursion counts once.
function functionTotals(profile, stacks, isShown) {
	return weighSides(profile, "both", (counts) =>
		functionCounts(profile, stacks, isShown, counts));
}

function functionCounts(profile, stacks, isShown, counts) {
	const weights = weighCounts(profile, stacks, isShown, counts);
	const self = new Float64Array(profile.functions.count);
	const total = new Float64Array(profile.functions.count);
	for (let node = 1; node < stacks.count; node++) {
		const index = profile.functionOf(stacks.frames[node]);
		self[index] += weights.self[node];
		if (stacks.outermost[node])
			total[index] += weights.total[node];
	}
	return { self, total, all: weights.all };
}

// Samples of each thread.
function threadCounts(profile, counts) {
	const totals = new Float64Array(profile.threads.count), { samples } = profile;
	for (let i = 0; i < samples.count; i++)
		totals[samples.threads[i]] += counts[i];
	return { total: totals, all: totals.reduce((sum, total) => sum + total, 0) };
}

function threadTotals(profile) {
	return weighSides(profile, "both", (counts) => threadCounts(profile, counts));
}

// What MEMBERS of TOTALS have together.
function sumOf(totals, members) {
	const sum = (side) => members.reduce((all, index) => all + side.total[index], 0);
	return { all: sum(totals), ...totals.was && { was: sum(totals.was), now: sum(totals.now) } };
}

// The share of one such sum in another, or in each side's.
function formatPart(part, whole) {
	return part.was === undefined ? formatShare(part.all, whole.all) : formatSides(
		{ was: part.was, now: part.now, wasAll: whole.was, nowAll: whole.now });
}
