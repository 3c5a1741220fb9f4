// SPDX-License-Identifier: BSD-2-Clause
// The table of functions.  Only the rows that can be seen are in the document.

const TABLE_ROW_HEIGHT = 30;
const SPARE_ROWS = 8;

// What a click on a column's head sorts by; figures begin with the largest.
const COLUMNS = [
	{ key: "self", first: "descending" },
	{ key: "total", first: "descending" },
	{ key: "name", first: "ascending" },
	{ key: "place", first: "ascending" },
];

class FunctionTable {
	// CHOOSE is called with the function whose row was clicked.
	constructor(profile, element, choose) {
		this.profile = profile;
		this.scroller = element;
		this.body = element.querySelector("tbody");
		this.heads = [...element.querySelectorAll("th")];
		this.choose = choose;
		this.sort = { key: "self", direction: "descending" };
		this.rows = [];
		this.totals = { all: 0 };
		this.heads.forEach((head, i) =>
			head.firstElementChild.addEventListener("click", () => this.sortBy(COLUMNS[i])));
		if (profile.before)
			this.nameChanges();
		element.addEventListener("scroll", () => this.paint(), { passive: true });
		element.addEventListener("keydown", (event) => this.moveFocus(event));
	}

	nameChanges() {
		this.scroller.classList.add("compared");
		for (const head of this.heads.slice(0, 2))
			head.firstElementChild.textContent += ", change";
	}

	// Shows the functions with samples; of those only the FOUND ones (flags), unless null.
	setTotals(totals, found) {
		this.totals = totals;
		this.rows = [];
		for (let i = 0; i < totals.total.length; i++)
			if (totals.total[i] > 0 && (found === null || found[i]))
				this.rows.push(i);
		this.order();
	}

	sortBy(column) {
		const { sort } = this;
		if (sort.key !== column.key)
			this.sort = { key: column.key, direction: column.first };
		else
			sort.direction = sort.direction === "ascending" ? "descending" : "ascending";
		this.order();
		this.scroller.scrollTop = 0;
		this.paint();
	}

	order() {
		const { key, direction } = this.sort;
		const self = this.measures("self"), total = this.measures("total");
		const sign = direction === "ascending" ? 1 : -1;
		const text = (index) => key === "name" ? this.nameOf(index) : this.placeOf(index);
		const compareText = new Intl.Collator("en", { numeric: true }).compare;
		const compare = key === "self" ? (a, b) => sign * (self[a] - self[b] || total[a] - total[b]) :
			key === "total" ? (a, b) => sign * (total[a] - total[b] || self[a] - self[b]) :
			(a, b) => sign * compareText(text(a), text(b));
		this.rows.sort((a, b) => compare(a, b) || a - b);
		COLUMNS.forEach((column, i) =>
			this.heads[i].setAttribute("aria-sort", column.key === key ? direction : "none"));
		this.painted = "";
	}

	// What functions are sorted by: samples, or how their share changed.
	measures(key) {
		const { totals } = this;
		return totals.was ? Float64Array.from({ length: totals[key].length },
			(_, index) => shareChange(sidesOf(totals, index, key))) : totals[key];
	}

	nameOf(index) {
		return this.profile.nameOf(this.profile.firstFunction + index);
	}

	// "json/decoder.py:343", with the line where the function begins.
	placeOf(index) {
		const place = this.profile.placeOf(this.profile.firstFunction + index);
		const line = this.profile.functions.firstLines[index];
		return place && line ? `${place}:${line}` : place;
	}

	paint() {
		const { scroller, rows } = this;
		const first = Math.max(0, Math.floor(scroller.scrollTop / TABLE_ROW_HEIGHT) - SPARE_ROWS);
		const visible = Math.ceil(scroller.clientHeight / TABLE_ROW_HEIGHT) + 2 * SPARE_ROWS;
		const last = Math.min(rows.length, first + visible), painted = first + "-" + last;
		if (painted === this.painted)
			return;
		this.painted = painted;
		const focused = Number(document.activeElement?.closest("tr")?.dataset.row ?? -1);
		this.body.replaceChildren(this.gap(first), ...rows.slice(first, last).map(
			(index, i) => this.row(index, first + i)), this.gap(rows.length - last));
		scroller.querySelector("table").setAttribute("aria-rowcount", rows.length + 1);
		if (focused >= 0)
			this.body.querySelector(`[data-row="${focused}"] button`)?.focus({ preventScroll: true });
	}

	// Stands for rows that are not in the document.
	gap(count) {
		const row = document.createElement("tr");
		row.className = "gap";
		row.style.height = count * TABLE_ROW_HEIGHT + "px";
		return row;
	}

	row(index, number) {
		const row = document.createElement("tr");
		row.dataset.row = number;
		row.setAttribute("aria-rowindex", number + 2);
		row.append(this.figure(index, "self"), this.figure(index, "total"));
		const button = document.createElement("button"), name = document.createElement("td");
		button.type = "button";
		button.textContent = this.nameOf(index).slice(0, LABEL_LENGTH_MAX);
		name.append(button);
		const place = document.createElement("td");
		place.className = "place";
		place.textContent = this.placeOf(index).slice(-LABEL_LENGTH_MAX);
		place.title = this.profile.filenameOf(this.profile.firstFunction + index);
		row.append(name, place);
		row.addEventListener("click", () => this.choose(index));
		return row;
	}

	// A count and its share, or a change and both shares, with a bar behind.
	figure(index, key) {
		const cell = document.createElement("td"), share = document.createElement("span");
		const { totals } = this, count = totals[key][index];
		cell.className = "figure";
		cell.style.setProperty("--share", 100 * count / totals.all + "%");
		share.className = "share";
		if (totals.was) {
			const sides = sidesOf(totals, index, key);
			share.textContent = formatSides(sides);
			cell.title = changeText(sides);
			cell.append(`${arrowOf(changeStep(sides))} ${formatChange(shareChange(sides))}`, share);
		} else {
			share.textContent = formatShare(count, totals.all);
			cell.append(formatCount(count), share);
		}
		return cell;
	}

	moveFocus(event) {
		const row = event.target.closest("tr[data-row]");
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!row || !step)
			return;
		event.preventDefault();
		const next = Math.min(this.rows.length - 1, Math.max(0, Number(row.dataset.row) + step));
		this.body.querySelector(`[data-row="${next}"] button`)?.focus({ preventScroll: true });
		const top = next * TABLE_ROW_HEIGHT, height = this.scroller.clientHeight - 2 * TABLE_ROW_HEIGHT;
		this.scroller.scrollTop = Math.min(top, Math.max(this.scroller.scrollTop, top - height));
	}
}
