// SPDX-License-Identifier: BSD-2-Clause
// Which frames are shown: those of Python alone, or also those of extensions, of the interpreter
// and of the kernel.  Each choice has all frames of the ones before it, and has its place in this
// row as its level.

const FRAME_CHOICES = ["python", "extensions", "interpreter", "kernel"];

// The lowest level that shows frames of a kind; others are always shown.
const KIND_LEVELS = { [KIND.NATIVE]: 1, [KIND.JIT]: 1, [KIND.INTERPRETER]: 2, [KIND.KERNEL]: 3 };

const KIND_TEXTS = { [KIND.NATIVE]: "an extension or library", [KIND.JIT]: "a JIT compiler",
	[KIND.INTERPRETER]: "the Python interpreter", [KIND.KERNEL]: "the kernel" };

// Stands for a stack that has no other frame to show.
const NO_PYTHON = "[no Python]";

function isKindShown(kind, level) {
	return (KIND_LEVELS[kind] ?? 0) <= level;
}

// The choices that differ in a profile with functions of these KINDS.
function frameChoices(kinds) {
	const levels = new Set(Array.from(kinds, (kind) => KIND_LEVELS[kind] ?? 0)).add(0);
	return FRAME_CHOICES.filter((_, level) => levels.has(level));
}

// What is shown where nobody has chosen.
function initialFrames(choices) {
	return ["extensions", "interpreter"].some((choice) => choices.includes(choice)) ?
		"extensions" : "kernel";
}

// The choice that STATE shows: "" is none.
function chosenFrames(profile, state) {
	return state.frames || initialFrames(profile.frameChoices);
}

function frameLevel(profile, state) {
	return FRAME_CHOICES.indexOf(chosenFrames(profile, state));
}

// Of the choices that PROFILE offers, the one that shows what STATE does.
function offeredFrames(profile, state) {
	const level = frameLevel(profile, state);
	return profile.frameChoices.filter((choice) => FRAME_CHOICES.indexOf(choice) <= level).pop();
}

// [term, value] of what a frame is, where it is not Python's.
function kindFacts(profile, frame) {
	if (frame < profile.firstThread && profile.functionOf(frame) === profile.noPython.function)
		return [["Frames", "all hidden: choose more above"]];
	const text = KIND_TEXTS[profile.kindOf(frame)];
	return text ? [["Code of", text]] : [];
}

// STACKS without the frames that LEVEL hides.  What a hidden frame did, its caller did.
function visibleStacks(profile, stacks, level) {
	const shows = (node) => isKindShown(profile.kindOf(stacks.frames[node]), level);
	const tree = new Tree(), copies = new Int32Array(stacks.count);
	tree.add(-1, profile.rootFrame);
	for (let node = 1; node < stacks.count; node++) {
		const parent = copies[stacks.parents[node]];
		copies[node] = shows(node) ? tree.add(parent, stacks.frames[node]) : parent;
	}
	if (tree.count === stacks.count)
		return stacks;
	const none = tree.add(0, profile.noPython.location);
	tree.sampleNodes = stacks.sampleNodes.map((node) => copies[node] || none);
	tree.outermost = outermostNodes(profile, tree);
	return tree;
}
