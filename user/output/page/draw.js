// SPDX-License-Identifier: BSD-2-Clause
// The graph on its canvas.
//
// The canvas is as large as what can be seen and stays in place while an extent of the whole
// graph's height scrolls under it, so the cost of a picture depends on what is visible alone.
// Rectangles too narrow to see are drawn together with their neighbours.

const ROW_HEIGHT = 22;
const NARROWEST = 0.6;      // pixels
const NARROWEST_TEXT = 26;
const TEXT_PADDING = 6;
const LABEL_LENGTH_MAX = 400;
const FONT = "12px system-ui, -apple-system, \"Segoe UI\", \"Noto Sans\", \"DejaVu Sans\", sans-serif";

class Graph {
	constructor(scroller, extent, canvas) {
		this.scroller = scroller;
		this.extent = extent;
		this.canvas = canvas;
		this.context = canvas.getContext("2d", { alpha: false });
		this.selected = 0;
		this.hovered = -1;
		this.found = null;
		this.zoom = 0;
		this.fullHeight = 0;
		this.height = 0;
		this.fromBottom = 0;
		scroller.addEventListener("scroll", () => {
			this.keepPlace();
			this.paintSoon();
		}, { passive: true });
	}

	setProfile(profile) {
		this.profile = profile;
		this.places = new Int16Array(profile.frameCount).fill(-1);
		this.widths = new Float32Array(profile.frameCount).fill(-1);
	}

	setTheme(name, background) {
		this.palette = new Palette(name);
		this.background = background;
	}

	// Takes { tree, weights, steps, layout, found, zoom, selected, isFlame } as they now are.  Where
	// only the profile IS_RENEWED, nothing is scrolled.
	setScene(scene, isRenewed) {
		const rowsBefore = this.visibleDepth, wasFlame = this.isFlame;
		Object.assign(this, scene);
		this.visibleDepth = this.layout.depthInside(this.zoom);
		this.resize();
		if (wasFlame !== this.isFlame || rowsBefore !== this.visibleDepth && !isRenewed)
			this.reveal(this.zoom);
	}

	// Makes the canvas fill what is visible.
	resize() {
		this.keepPlace();
		const { fromBottom } = this;
		this.height = this.scroller.clientHeight;
		this.scale = window.devicePixelRatio || 1;
		this.fullHeight = Math.max(this.height, this.visibleDepth * ROW_HEIGHT);
		this.extent.style.height = this.fullHeight + "px";
		// The scroll bar that the extent may have brought takes its width from the canvas.
		this.width = this.scroller.clientWidth;
		const width = Math.round(this.width * this.scale);
		const height = Math.round(this.height * this.scale);
		if (this.canvas.width !== width || this.canvas.height !== height) {
			this.canvas.width = width;
			this.canvas.height = height;
			this.canvas.style.width = this.width + "px";
			this.canvas.style.height = this.height + "px";
		}
		// A flame graph stands on its bottom.
		if (this.isFlame)
			this.scroll(this.fullHeight - this.height - fromBottom);
	}

	// Notes how far what is seen is from the bottom.  Where the window was resized, the browser has
	// moved scrollTop since: what was noted before counts.
	keepPlace() {
		if (this.height === this.scroller.clientHeight)
			this.fromBottom = this.fullHeight - this.height - this.scroller.scrollTop;
	}

	scroll(top) {
		this.scroller.scrollTop = top;
		this.keepPlace();
	}

	// The top of the row of DEPTH in the extent.
	rowTop(depth) {
		return this.isFlame ? this.fullHeight - (depth + 1) * ROW_HEIGHT : depth * ROW_HEIGHT;
	}

	// Scrolls so that NODE is seen with as much as possible of what it called.
	reveal(node) {
		const top = this.rowTop(this.tree.depths[node]), margin = 2 * ROW_HEIGHT;
		this.scroll(this.isFlame ? top + ROW_HEIGHT + margin - this.height : top - margin);
	}

	// Scrolls no further than it takes to see NODE.
	scrollTo(node) {
		const top = this.rowTop(this.tree.depths[node]), { scroller } = this;
		if (top < scroller.scrollTop)
			this.scroll(top - ROW_HEIGHT);
		else if (top + ROW_HEIGHT > scroller.scrollTop + this.height)
			this.scroll(top + 2 * ROW_HEIGHT - this.height);
	}

	// Pixels from the left of a place that is given in samples.
	pixel(place) {
		const start = this.layout.starts[this.zoom];
		return (place - start) * this.width / this.weights.total[this.zoom];
	}

	// { x, y, width, height } of NODE on the canvas, cut to it from left to right.
	box(node) {
		const start = this.layout.starts[node];
		const x = Math.max(0, this.pixel(start));
		const right = Math.min(this.width, this.pixel(start + this.weights.total[node]));
		const y = this.rowTop(this.tree.depths[node]) - this.scroller.scrollTop;
		return { x, y, width: right - x, height: ROW_HEIGHT };
	}

	nodeAt(x, y) {
		if (!this.weights.all || x < 0 || x >= this.width)
			return -1;
		const below = y + this.scroller.scrollTop;
		const row = Math.floor((this.isFlame ? this.fullHeight - below : below) / ROW_HEIGHT);
		const start = this.layout.starts[this.zoom];
		return this.layout.nodeAt(row, start + x / this.width * this.weights.total[this.zoom]);
	}

	paintSoon() {
		if (!this.pending)
			this.pending = requestAnimationFrame(() => this.paint());
	}

	paint() {
		cancelAnimationFrame(this.pending);
		this.pending = 0;
		const { context, scale } = this;
		context.setTransform(scale, 0, 0, scale, 0, 0);
		context.fillStyle = this.background;
		context.fillRect(0, 0, this.width, this.height);
		context.font = FONT;
		context.textBaseline = "middle";
		if (!this.weights.all)
			return;
		const top = this.scroller.scrollTop, bottom = top + this.height;
		const [near, far] = this.isFlame ? [this.fullHeight - bottom, this.fullHeight - top] :
			[top, bottom];
		const last = Math.min(this.visibleDepth, Math.ceil(far / ROW_HEIGHT));
		for (let depth = Math.max(0, Math.floor(near / ROW_HEIGHT)); depth < last; depth++)
			this.paintRow(depth);
		this.paintOutlines();
	}

	paintRow(depth) {
		const { layout, weights } = this, { starts, order } = layout;
		const from = starts[this.zoom], end = from + weights.total[this.zoom];
		const ratio = this.width / weights.total[this.zoom];
		const y = this.rowTop(depth) - this.scroller.scrollTop, rowEnd = layout.rows[depth + 1];
		const crowd = { from: 0, to: 0, found: false };
		for (let i = layout.firstBehind(depth, from); i < rowEnd; i++) {
			const node = order[i], start = starts[node];
			if (start >= end)
				break;
			const x = (start - from) * ratio, width = weights.total[node] * ratio;
			if (width >= NARROWEST) {
				this.paintFrame(node, Math.max(0, x), Math.min(this.width, x + width), y);
				continue;
			}
			const found = this.isFound(node), isPixel = crowd.to - crowd.from >= 1;
			if (x > crowd.to + NARROWEST || isPixel && found !== crowd.found) {
				this.paintCrowd(crowd, depth, y);
				Object.assign(crowd, { from: x, found: false });
			}
			crowd.to = x + width;
			crowd.found ||= found;
		}
		this.paintCrowd(crowd, depth, y);
	}

	isFaded(depth) {
		return this.found !== null || depth < this.tree.depths[this.zoom];
	}

	paintCrowd(crowd, depth, y) {
		const { palette } = this;
		if (crowd.to - crowd.from < NARROWEST)
			return;
		this.context.fillStyle = crowd.found ? palette.match :
			this.isFaded(depth) ? palette.fadedCrowd : palette.crowd;
		this.context.fillRect(crowd.from, y, crowd.to - crowd.from, ROW_HEIGHT - 1);
	}

	isFound(node) {
		return this.found !== null && this.found[this.tree.frames[node]] === 1;
	}

	paintFrame(node, x, right, y) {
		const { context, palette } = this, { theme } = palette, frame = this.tree.frames[node];
		const isFaded = this.isFaded(this.tree.depths[node]);
		const width = right - x, drawn = width > 3 ? width - 1 : width;
		const isFound = this.isFound(node), step = this.steps ? this.steps[node] : 0;
		context.fillStyle = isFound ? palette.match : this.fillOf(node, isFaded);
		context.fillRect(x, y, drawn, ROW_HEIGHT - 1);
		if (step && (isFound || !isFaded))
			this.paintEdge(step, x, drawn, y);
		if (width < NARROWEST_TEXT)
			return;
		const text = this.fittingText(frame, arrowOf(step), width - 2 * TEXT_PADDING);
		context.fillStyle = isFound ? theme.matchText : isFaded ? theme.fadedText : theme.text;
		context.fillText(text, x + TEXT_PADDING, y + ROW_HEIGHT / 2);
	}

	fillOf(node, isFaded) {
		const { palette } = this, place = this.placeOf(this.tree.frames[node]);
		if (isFaded)
			return palette.faded[place];
		return this.steps ? palette.changes[this.steps[node] + STEPS_MAX] : palette.fills[place];
	}

	// More is a line along the upper edge, less one along the lower: thicker for more of it.
	paintEdge(step, x, width, y) {
		const { context, palette } = this, height = 1 + Math.abs(step);
		context.fillStyle = step > 0 ? palette.edges.more : palette.edges.less;
		context.fillRect(x, step > 0 ? y : y + ROW_HEIGHT - 1 - height, width, height);
	}

	placeOf(frame) {
		if (this.places[frame] < 0) {
			const { profile } = this;
			this.places[frame] = Palette.place(profile.kindOf(frame), profile.filenameOf(frame),
				profile.nameOf(frame));
		}
		return this.places[frame];
	}

	// SIGN and the label if they fit, else as much of them as does.
	fittingText(frame, sign, room) {
		const { context } = this, prefix = sign && sign + " ";
		const label = prefix + this.profile.label(frame).slice(0, LABEL_LENGTH_MAX);
		if (this.widths[frame] < 0)
			this.widths[frame] = context.measureText(label.slice(prefix.length)).width;
		const width = this.widths[frame] + (prefix && context.measureText(prefix).width);
		if (width <= room)
			return label;
		let length = Math.floor(label.length * room / width);
		while (length > 0) {
			const text = label.slice(0, length).replace(/[\ud800-\udbff]$/, "") + "…";
			const excess = context.measureText(text).width - room;
			if (excess <= 0)
				return text;
			length -= Math.max(1, Math.floor(excess / 12));
		}
		return "";
	}

	paintOutlines() {
		const { context, palette } = this;
		const isVisible = (node) => node >= 0 && this.weights.total[node] > 0 &&
			(this.tree.isInside(node, this.zoom) || this.tree.isInside(this.zoom, node));
		if (isVisible(this.hovered)) {
			const { x, y, width, height } = this.box(this.hovered);
			context.fillStyle = palette.theme.hover;
			context.fillRect(x, y, Math.max(1, width - 1), height - 1);
		}
		if (isVisible(this.selected) && this.selected > 0) {
			const { x, y, width, height } = this.box(this.selected);
			context.strokeStyle = palette.theme.outline;
			context.lineWidth = 2;
			context.strokeRect(x + 1, y + 1, Math.max(1, width - 3), height - 3);
		}
	}
}
