// SPDX-License-Identifier: BSD-2-Clause
// The page: what is shown follows from one state, and every change of it goes through
// `change`.  `window.pybpfprof` at the end is for tests and for the curious.

// What the tree depends on.
const TREE_KEYS = ["event", "frames", "group", "lines"];

class App {
	constructor(profile) {
		const byId = (id) => document.getElementById(id);
		this.stage = byId("stage");
		this.tableElement = byId("table");
		this.detail = byId("detail");
		this.help = byId("help");
		this.graph = new Graph(this.stage, byId("extent"), byId("canvas"));
		this.tooltip = new Tooltip(byId("tooltip"));
		this.table = new FunctionTable(profile, this.tableElement, (index) => this.choose(index));
		this.controls = new Controls((part) => this.change(part));
		this.state = {};
		this.scene = { selected: 0, zoom: 0 };
		this.lastGraphView = "flame";
		this.timings = { open: 0, change: 0 };
		for (const element of document.querySelectorAll("[data-compared]"))
			element.hidden = !profile.before;
		document.querySelector("[data-plain]").hidden = Boolean(profile.before);
		this.setProfile(profile);
		this.listenToMouse();
		this.listenToWindow();
		listenToKeys(this.stage, () => this.state.view !== "icicle", this.actions());
	}

	setProfile(profile) {
		const { table, tooltip } = this;
		this.profile = table.profile = tooltip.profile = profile;
		this.allStacks = stackTree(profile);
		this.graph.setProfile(profile);
		this.controls.setProfile(profile);
		document.title = `${profile.title} – pybpfprof`;
		document.getElementById("title").textContent = profile.title;
		document.getElementById("empty").hidden = profile.samples.count > 0;
		fillFooter(profile, document.querySelector("footer"));
	}

	// Changes PART of the state, as a person did.  A step can be gone back from.
	change(part) {
		const before = this.state, differs = (key) => before[key] !== this.state[key];
		const isNewTree = TREE_KEYS.some((key) => (part[key] ?? before[key]) !== before[key]);
		this.apply(part, isNewTree ? { zoom: this.place.path } : {});
		this.keepPlace();
		this.showAddress(["zoom", "view", "event", "frames"].some(differs));
	}

	// What is shown is to be found again.
	keepPlace() {
		this.place = placeOf(this.profile, this.scene.tree, this.state);
	}

	showAddress(isStep) {
		showFragment(fragmentFromState(this.profile, this.state), isStep, this.place);
	}

	// Shows the state with PART changed.  PATHS lead to the nodes that are to be zoomed and selected.
	apply(part, paths = {}, isRenewed = false) {
		const began = performance.now(), before = this.state, { profile, scene } = this;
		const state = this.state = { ...before, ...part };
		const differs = (...keys) => keys.some((key) => before[key] !== state[key]);
		const isNewTree = differs(...TREE_KEYS), level = frameLevel(profile, state);
		const isNewWeight = isNewTree || differs("command", "process", "thread", "width");
		if (state.event !== profile.shownEvent) {
			profile.showEvent(state.event);
			this.setProfile(profile);
		}
		if (differs("event", "frames"))
			this.stacks = visibleStacks(profile, this.allStacks, level);
		if (isNewTree)
			scene.tree = shownTree(profile, this.stacks, state, level);
		if (paths.zoom)
			state.zoom = closestNode(profile, scene.tree, paths.zoom);
		if (isNewWeight)
			this.weighTree();
		this.clampZoom();
		if (isNewTree || differs("query", "isRegex"))
			this.search();
		if (isNewTree || differs("zoom"))
			scene.selected = paths.selected ?
				closestNode(profile, scene.tree, paths.selected) : state.zoom;
		if (state.view !== "table")
			this.lastGraphView = state.view;
		scene.zoom = state.zoom;
		this.controls.show(state);
		this.showSearchResult();
		this.isTableStale ||= isNewWeight || differs("query", "isRegex");
		this.show(isRenewed);
		this.timings.change = performance.now() - began;
	}

	// Shows the profile of JSON instead, at the same place.  An open menu keeps its rows until the
	// next one.
	renew(json) {
		const { scene, place, tooltip } = this;
		if (this.controls.processes.isOpen)
			return;
		const isPointing = !tooltip.element.hidden;
		const paths = { zoom: place.path, selected: pathOf(this.profile, scene.tree, scene.selected) };
		this.setProfile(profileWithPlace(JSON.parse(json), place));
		this.state = {};
		this.apply(stateFromPlace(this.profile, place), paths, true);
		this.showAddress(false);
		if (isPointing)
			this.point();
	}

	weighTree() {
		const { profile, scene, state } = this;
		const isShown = (thread) => (state.thread < 0 || thread === state.thread) &&
			isProcessShown(profile, state, thread);
		scene.weights = weigh(profile, scene.tree, isShown, state.width);
		scene.steps = profile.before ? changeSteps(scene.weights, scene.tree.count) : null;
		scene.layout = new Layout(scene.tree, scene.weights);
		this.totals = functionTotals(profile, this.stacks, isShown);
	}

	// Up to what exists and has samples.
	clampZoom() {
		const { state } = this, { tree, weights } = this.scene;
		if (state.zoom >= tree.count)
			state.zoom = 0;
		while (state.zoom > 0 && !weights.total[state.zoom])
			state.zoom = tree.parents[state.zoom];
		if (this.scene.selected >= tree.count)
			this.scene.selected = 0;
	}

	search() {
		const { profile, scene, state } = this, query = compileQuery(state.query, state.isRegex);
		this.searchError = query?.error;
		scene.found = query?.test ? findFrames(profile, scene.tree, query) : null;
		this.foundFunctions = null;
		if (!scene.found)
			return;
		this.foundFunctions = new Uint8Array(profile.functions.count);
		for (let frame = 0; frame < profile.firstThread; frame++)
			if (scene.found[frame])
				this.foundFunctions[profile.functionOf(frame)] = 1;
	}

	// [samples, of how many, of what, and where the profile is compared, both sides] of what was
	// found, in all and in the zoomed frame.
	foundShares() {
		const { tree, weights, found, zoom } = this.scene;
		const shareIn = (node, name) => {
			const inside = (side) => [foundSamples(tree, side, found, node), side.total[node]];
			if (!weights.was)
				return [...inside(weights), name];
			const [was, wasAll] = inside(weights.was), [now, nowAll] = inside(weights.now);
			return [...inside(weights), name, { was, now, wasAll, nowAll }];
		};
		if (!found)
			return [];
		return [shareIn(0, "all"), ...zoom > 0 ? [shareIn(zoom, "zoomed")] : []];
	}

	showSearchResult() {
		this.shares = this.foundShares();
		this.controls.showResult(this.shares, this.searchError);
	}

	show(isRenewed = false) {
		const isTable = this.state.view === "table", { scene, table } = this;
		this.tooltip.hide();
		scene.isFlame = this.state.view === "flame";
		this.stage.hidden = isTable;
		this.detail.hidden = isTable;
		this.tableElement.hidden = !isTable;
		if (!isTable) {
			this.graph.hovered = -1;
			this.graph.setScene(scene, isRenewed);
			this.graph.paint();
			this.showDetail();
			return;
		}
		if (this.isTableStale)
			table.setTotals(this.totals, this.foundFunctions);
		this.isTableStale = false;
		table.paint();
	}

	showDetail() {
		this.detail.textContent = this.scene.weights.all ?
			describeNode(this.scene, this.profile, this.scene.selected) : "";
	}

	select(node) {
		this.scene.selected = this.graph.selected = node;
		this.graph.scrollTo(node);
		this.graph.paint();
		this.showDetail();
	}

	// A row of the table: its frames stand out in the graph.
	choose(index) {
		this.change({ view: this.lastGraphView, query: functionQuery(this.profile, index),
			isRegex: true, zoom: 0 });
		this.selectHeaviest();
	}

	selectHeaviest() {
		const { tree, weights, found } = this.scene;
		const node = found ? heaviestFound(tree, weights, found) : -1;
		this.stage.focus({ preventScroll: true });
		if (node > 0)
			this.select(node);
	}

	// What the keyboard can do.
	actions() {
		const { scene, controls } = this;
		const beside = (step) => this.select(
			scene.layout.neighbour(scene.selected, step, scene.zoom));
		return {
			child: () => this.select(this.childTowardsZoom(scene.selected)),
			parent: () => this.select(Math.max(0, scene.tree.parents[scene.selected])),
			left: () => beside(-1),
			right: () => beside(1),
			home: () => this.select(scene.zoom),
			zoom: () => this.change({ zoom: scene.selected }),
			zoomOut: () => this.change({ zoom: Math.max(0, scene.tree.parents[scene.zoom]) }),
			focusSearch: () => {
				controls.search.focus();
				controls.search.select();
			},
			help: () => this.help.showModal(),
			escape: () => this.escape(),
		};
	}

	// The heaviest child; above the zoomed frame, the one that leads to it.
	childTowardsZoom(node) {
		const { tree, layout, zoom } = this.scene;
		let below = zoom;
		while (tree.depths[below] > tree.depths[node] + 1)
			below = tree.parents[below];
		return below > 0 && tree.parents[below] === node ? below :
			layout.childrenOf(node)[0] ?? node;
	}

	// One thing at a time: the search that is being typed, the zoom, the search.
	escape() {
		const { search } = this.controls, isTyping = document.activeElement === search;
		if (isTyping && !search.value)
			this.stage.focus({ preventScroll: true });
		else if (!isTyping && this.state.zoom > 0)
			this.change({ zoom: 0 });
		else if (this.state.query)
			this.change({ query: "" });
	}

	listenToMouse() {
		const { stage, graph, tooltip } = this;
		let pointer = null;
		const nodeOf = (event) => {
			const { left, top } = graph.canvas.getBoundingClientRect();
			return graph.nodeAt(event.clientX - left, event.clientY - top);
		};
		const hover = (node) => {
			stage.classList.toggle("over-frame", node >= 0);
			if (graph.hovered !== node) {
				graph.hovered = node;
				graph.paintSoon();
			}
		};
		this.point = (event = pointer) => {
			const node = nodeOf(event);
			pointer = event;
			hover(node);
			if (node >= 0 && event.pointerType !== "touch")
				tooltip.show(this.scene, node, event.clientX, event.clientY);
			else
				tooltip.hide();
		};
		graph.canvas.addEventListener("pointermove", this.point);
		for (const name of ["pointerleave", "pointercancel"])
			graph.canvas.addEventListener(name, () => {
				hover(-1);
				tooltip.hide();
			});
		stage.addEventListener("scroll", () => tooltip.hide(), { passive: true });
		graph.canvas.addEventListener("click", (event) => {
			const node = nodeOf(event);
			if (node >= 0)
				this.change({ zoom: node });
		});
	}

	listenToWindow() {
		const dark = matchMedia("(prefers-color-scheme: dark)");
		dark.addEventListener("change", () => this.setTheme(dark.matches ? "dark" : "light"));
		document.getElementById("theme").addEventListener("click", () =>
			this.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
		document.getElementById("help-open").addEventListener("click", () => this.help.showModal());
		this.controls.search.addEventListener("keydown", (event) => {
			if (event.key === "Enter" && this.state.view !== "table")
				this.selectHeaviest();
		});
		addEventListener("popstate", (event) => this.restore(event.state));
		new ResizeObserver(() => {
			if (this.scene.layout)
				this.show();
		}).observe(document.querySelector("main"));
		this.setTheme(dark.matches ? "dark" : "light");
	}

	setTheme(name) {
		document.documentElement.dataset.theme = name;
		const style = getComputedStyle(document.documentElement);
		this.graph.setTheme(name, style.getPropertyValue("--stage").trim());
		if (this.profile.before)
			fillLegend(document.getElementById("legend"), this.graph.palette);
		else
			this.controls.showColours(this.graph.palette);
		if (this.scene.layout)
			this.show();
	}

	// Shows PLACE, or without one what the address says.
	restore(place) {
		if (place)
			this.apply(stateFromPlace(this.profile, place), { zoom: place.path });
		else
			this.apply(stateFromFragment(this.profile, location.hash));
		this.keepPlace();
	}
}

function start() {
	const data = document.getElementById("profile");
	const app = new App(new Profile(JSON.parse(data.textContent)));
	data.remove();
	app.restore();
	app.timings.open = performance.now();
	return app;
}

const app = start();

// The agent's page calls `renew`; all else is for tests.  `timings` are milliseconds: from the
// navigation to the first picture, and of the last change with its picture.  Nodes are numbers;
// `nodes` finds them by their frames' label.
window.pybpfprof = {
	renew: (json) => app.renew(json),
	timings: app.timings,
	state: () => ({ ...app.state, selected: app.scene.selected }),
	shares: () => app.shares,
	count: () => app.scene.tree.count,
	nodes: (label) => {
		const { tree, weights } = app.scene, nodes = [];
		for (let node = 0; node < tree.count; node++)
			if (weights.total[node] > 0 && app.profile.label(tree.frames[node]) === label)
				nodes.push(node);
		return nodes;
	},
	samples: (node) => app.scene.weights.total[node],
	sides: (node) => sidesOf(app.scene.weights, node),
	step: (node) => app.scene.steps[node],
	// Where a node is in the window, as far as it can be seen.
	box: (node) => {
		const { left, top } = app.graph.canvas.getBoundingClientRect(), box = app.graph.box(node);
		return { ...box, x: left + box.x, y: top + box.y };
	},
};
