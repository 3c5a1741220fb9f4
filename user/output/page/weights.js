// SPDX-License-Identifier: BSD-2-Clause
// How many samples each node and each function has, of the threads that are shown.

// Whether STATE shows the process of THREAD.
function isProcessShown(profile, state, thread) {
	const process = profile.threads.processes[thread];
	if (state.process >= 0)
		return process === state.process;
	return state.command < 0 || profile.commands.ofProcess[process] === state.command;
}

// Samples with each node as their leaf, and with it anywhere.
function weigh(profile, tree, isShown) {
	const { samples } = profile, self = new Float64Array(tree.count);
	for (let i = 0; i < samples.count; i++)
		if (isShown(samples.threads[i]))
			self[tree.sampleNodes[i]] += samples.counts[i];
	const total = self.slice();
	for (let node = tree.count - 1; node > 0; node--)
		total[tree.parents[node]] += total[node];
	return { self, total, all: total[0] };
}

// The same for functions, from the stacks' tree: recursion counts once.
function functionTotals(profile, stacks, isShown) {
	const weights = weigh(profile, stacks, isShown);
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
function threadTotals(profile) {
	const totals = new Float64Array(profile.threads.count), { samples } = profile;
	for (let i = 0; i < samples.count; i++)
		totals[samples.threads[i]] += samples.counts[i];
	return totals;
}
