// SPDX-License-Identifier: BSD-2-Clause
// Trees of frames.  Node 0 is the root, and a parent's number is below its children's.
//
// The first tree is the one that the stacks spell out (see html.c): its frames are locations,
// and its nodes are numbered depth first.  What is shown is made from it: with threads or
// processes or what they run at the root, with one node a function where lines are off.

class Tree {
	constructor() {
		this.count = 0;
		this.capacity = 1024;
		this.frames = new Int32Array(this.capacity);
		this.parents = new Int32Array(this.capacity);
		this.depths = new Int32Array(this.capacity);
		this.sampleNodes = null; // the leaf of each sample
		this.level = 0;          // which frames it has: frames.js
	}

	add(parent, frame) {
		if (this.count === this.capacity)
			this.grow();
		const node = this.count++;
		this.frames[node] = frame;
		this.parents[node] = parent;
		this.depths[node] = parent < 0 ? 0 : this.depths[parent] + 1;
		return node;
	}

	grow() {
		this.capacity *= 2;
		for (const name of ["frames", "parents", "depths"]) {
			const longer = new Int32Array(this.capacity);
			longer.set(this[name]);
			this[name] = longer;
		}
	}

	isInside(node, ancestor) {
		while (this.depths[node] > this.depths[ancestor])
			node = this.parents[node];
		return node === ancestor;
	}

	// Frames from the root's child to the node.
	path(node) {
		const frames = [];
		for (; node > 0; node = this.parents[node])
			frames.push(this.frames[node]);
		return frames.reverse();
	}
}

// Finds a node by its parent and frame: open addressing over node numbers.
class ChildIndex {
	constructor(tree) {
		this.tree = tree;
		this.slots = new Int32Array(4096).fill(-1);
	}

	slotOf(parent, frame) {
		const { parents, frames } = this.tree, mask = this.slots.length - 1;
		let slot = Math.imul(Math.imul(parent, 0x9e3779b1) ^ frame, 0x85ebca6b);
		slot = (slot ^ slot >>> 15) & mask;
		for (let node; (node = this.slots[slot]) >= 0; slot = slot + 1 & mask)
			if (parents[node] === parent && frames[node] === frame)
				break;
		return slot;
	}

	childOf(parent, frame) {
		let slot = this.slotOf(parent, frame);
		if (this.slots[slot] >= 0)
			return this.slots[slot];
		if (2 * this.tree.count > this.slots.length) {
			this.rehash();
			slot = this.slotOf(parent, frame);
		}
		return this.slots[slot] = this.tree.add(parent, frame);
	}

	rehash() {
		const { parents, frames, count } = this.tree;
		this.slots = new Int32Array(4 * this.slots.length).fill(-1);
		for (let node = 1; node < count; node++)
			this.slots[this.slotOf(parents[node], frames[node])] = node;
	}
}

// The frame of each location.  All addresses of a function of machine code are one.
function locationFrames({ locations, functions }) {
	const first = new Int32Array(functions.count).fill(-1);
	return Int32Array.from(locations.functions, (index, location) => {
		if (locations.lines[location])
			return location;
		return first[index] < 0 ? first[index] = location : first[index];
	});
}

// The tree that the stacks spell out.
function stackTree(profile) {
	const numbers = profile.stackNumbers, tree = new Tree(), leaves = [];
	const frames = locationFrames(profile);
	const path = [tree.add(-1, profile.rootFrame)];
	for (let i = 0; i < numbers.length;) {
		let depth = numbers[i++];
		for (let added = numbers[i++]; added > 0; added--, depth++)
			path[depth + 1] = tree.add(path[depth], frames[numbers[i++]]);
		leaves.push(path[depth]);
	}
	tree.sampleNodes = Int32Array.from(profile.samples.stacks, (stack) => leaves[stack]);
	tree.outermost = outermostNodes(profile, tree);
	return tree;
}

// Which nodes have no ancestor of their own function: recursion counts once.
function outermostNodes(profile, tree) {
	const flags = new Uint8Array(tree.count), open = new Int32Array(profile.functions.count);
	const path = [];
	for (let node = 1; node < tree.count; node++) {
		while (path.length >= tree.depths[node])
			open[path.pop()]--;
		const index = profile.functionOf(tree.frames[node]);
		flags[node] = open[index] === 0 ? 1 : 0;
		open[index]++;
		path.push(index);
	}
	return flags;
}

// The frames that stand between the root and the stacks of a thread.
function groupFrames(profile, thread, group) {
	const process = profile.threads.processes[thread], frames = [];
	if (profile.tellsProcesses && group === "command")
		frames.push(profile.firstCommand + profile.commands.ofProcess[process]);
	else if (profile.tellsProcesses && group !== "none")
		frames.push(profile.firstProcess + process);
	if (group === "thread")
		frames.push(profile.firstThread + thread);
	return frames;
}

// Makes the shown tree's nodes as they are asked for.
class TreeCopy {
	constructor(profile, stacks, lines) {
		this.stacks = stacks;
		this.tree = new Tree();
		this.root = this.tree.add(-1, profile.rootFrame);
		this.index = new ChildIndex(this.tree);
		// What each node of the stacks' tree became, and under which group's node.
		this.copies = new Int32Array(stacks.count);
		this.tops = new Int32Array(stacks.count).fill(-1);
		this.frames = lines ? stacks.frames : stacks.frames.map((frame) =>
			frame === profile.rootFrame ? frame : profile.firstFunction + profile.functionOf(frame));
		this.pending = new Int32Array(stacks.depths.reduce((a, b) => Math.max(a, b), 0) + 1);
	}

	// The copy of NODE under TOP.
	copyOf(node, top) {
		const { copies, tops, pending, frames, index } = this, { parents } = this.stacks;
		let length = 0;
		for (; node > 0 && tops[node] !== top; node = parents[node])
			pending[length++] = node;
		let copy = node > 0 ? copies[node] : top;
		while (length > 0) {
			node = pending[--length];
			copy = index.childOf(copy, frames[node]);
			copies[node] = copy;
			tops[node] = top;
		}
		return copy;
	}
}

// The tree to show, of STACKS with the frames of LEVEL.  GROUP is "none", "command", "process" or
// "thread".
function shownTree(profile, stacks, { group, lines }, level) {
	const { threads, count } = profile.samples, copy = new TreeCopy(profile, stacks, lines);
	const order = new Uint32Array(count).map((_, i) => i), sampleNodes = new Int32Array(count);
	const tops = Int32Array.from({ length: profile.threads.count }, (_, thread) =>
		groupFrames(profile, thread, group).reduce(
			(node, frame) => copy.index.childOf(node, frame), copy.root));
	// One group after the other, so that each stack is walked once in each.
	if (group !== "none")
		order.sort((a, b) => tops[threads[a]] - tops[threads[b]] || a - b);
	for (const sample of order)
		sampleNodes[sample] = copy.copyOf(stacks.sampleNodes[sample], tops[threads[sample]]);
	copy.tree.sampleNodes = sampleNodes;
	copy.tree.level = level;
	return copy.tree;
}
