// SPDX-License-Identifier: BSD-2-Clause
// Where the nodes lie: one row a depth, the heaviest child leftmost; widths are in samples.
// Nodes without samples are left out.

class Layout {
	constructor(tree, weights) {
		this.tree = tree;
		this.total = weights.total;
		this.starts = new Float64Array(tree.count);
		this.sortChildren();
		this.placeRows();
	}

	// children[firstChild[n] .. firstChild[n + 1]] are n's, heaviest first.
	sortChildren() {
		const { tree, total } = this, { parents, count } = tree;
		const live = new Uint32Array(count);
		this.firstChild = new Uint32Array(count + 1);
		let length = 0;
		for (let node = 1; node < count; node++)
			if (total[node] > 0) {
				live[length++] = node;
				this.firstChild[parents[node] + 1]++;
			}
		for (let node = 0; node < count; node++)
			this.firstChild[node + 1] += this.firstChild[node];
		const sorted = live.subarray(0, length).sort((a, b) => total[b] - total[a] || a - b);
		const next = this.firstChild.slice();
		this.children = new Uint32Array(length);
		for (const node of sorted)
			this.children[next[parents[node]]++] = node;
	}

	// order[rows[d] .. rows[d + 1]] are the nodes of depth d, from left to right.
	placeRows() {
		const order = this.order = new Uint32Array(this.children.length + 1);
		this.rows = [0];
		let end = 1;
		for (let i = 0; i < end;) {
			const rowEnd = end;
			for (; i < rowEnd; i++) {
				let start = this.starts[order[i]];
				for (const child of this.childrenOf(order[i])) {
					this.starts[child] = start;
					start += this.total[child];
					order[end++] = child;
				}
			}
			this.rows.push(rowEnd);
		}
	}

	childrenOf(node) {
		return this.children.subarray(this.firstChild[node], this.firstChild[node + 1]);
	}

	get depth() {
		return this.rows.length - 1;
	}

	// The place in `order` of the first node at DEPTH that ends behind X.
	firstBehind(depth, x) {
		let low = this.rows[depth], high = this.rows[depth + 1];
		while (low < high) {
			const middle = low + high >>> 1, node = this.order[middle];
			if (this.starts[node] + this.total[node] > x)
				high = middle;
			else
				low = middle + 1;
		}
		return low;
	}

	nodeAt(depth, x) {
		if (depth < 0 || depth >= this.depth)
			return -1;
		const place = this.firstBehind(depth, x);
		const node = place < this.rows[depth + 1] ? this.order[place] : -1;
		return node >= 0 && this.starts[node] <= x ? node : -1;
	}

	// Rows down to the deepest node inside NODE.
	depthInside(node) {
		const start = this.starts[node], end = start + this.total[node];
		let depth = this.tree.depths[node] + 1;
		for (; depth < this.depth; depth++) {
			const place = this.firstBehind(depth, start);
			if (place === this.rows[depth + 1] || this.starts[this.order[place]] >= end)
				break;
		}
		return depth;
	}

	// The node beside NODE in its row, inside ZOOM; NODE itself where there is none.
	neighbour(node, step, zoom) {
		const depth = this.tree.depths[node];
		const place = this.firstBehind(depth, this.starts[node]) + step;
		if (place < this.rows[depth] || place >= this.rows[depth + 1])
			return node;
		const other = this.order[place];
		return depth <= this.tree.depths[zoom] || !this.tree.isInside(other, zoom) ? node : other;
	}
}
