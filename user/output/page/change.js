// SPDX-License-Identifier: BSD-2-Clause
// What changed, where the profile is compared with one of before: each frame's share of all that
// is shown, then and now.
//
// How much a share changed is a step from -3 to 3; 0 is also what chance alone can make of so few
// samples, by the test of two proportions, at twice the standard error.

const STEPS_MAX = 3;
const STEP_RATIOS = [1.25, 2]; // by how much the second and the third step differ at least
const CHANCE = 2;
const STEP_TEXTS = {
	"-3": "less than half", "-2": "less than ⅘", "-1": "less", "0": "unchanged, or chance",
	"1": "more", "2": "more than ¼ more", "3": "more than twice",
};
const ARROWS = { more: "▲", less: "▼" };

// { was, now, wasAll, nowAll } of INDEX among self or total WEIGHTS: samples.
function sidesOf(weights, index, key = "total") {
	const { was, now } = weights;
	return { was: was[key][index], now: now[key][index], wasAll: was.all, nowAll: now.all };
}

// Percent points by which a share changed.
function shareChange({ was, now, wasAll, nowAll }) {
	return 100 * ((nowAll && now / nowAll) - (wasAll && was / wasAll));
}

function changeStep(sides) {
	const { was, now, wasAll, nowAll } = sides;
	if (!wasAll || !nowAll)
		return 0;
	const change = shareChange(sides) / 100, share = (was + now) / (wasAll + nowAll);
	if (Math.abs(change) <= CHANCE * Math.sqrt(share * (1 - share) * (1 / wasAll + 1 / nowAll)))
		return 0;
	const shares = [was / wasAll, now / nowAll].sort((a, b) => a - b);
	const step = 1 + STEP_RATIOS.filter((ratio) => shares[1] > ratio * shares[0]).length;
	return change > 0 ? step : -step;
}

// The step of every node.
function changeSteps(weights, count) {
	return Int8Array.from({ length: count }, (_, node) => changeStep(sidesOf(weights, node)));
}

function arrowOf(step) {
	return step > 0 ? ARROWS.more : step < 0 ? ARROWS.less : "";
}

// "12.0 % → 30.0 %"
function formatSides({ was, now, wasAll, nowAll }) {
	return `${formatShare(was, wasAll)} → ${formatShare(now, nowAll)}`;
}

// "+18.0", with as many digits as a share has.
function formatChange(change) {
	const size = Math.abs(change), digits = size.toFixed(size < 1 ? 2 : 1);
	return Number(digits) === 0 ? "0" : (change < 0 ? "−" : "+") + digits;
}

// What became of a frame, in words.
function changeText(sides) {
	const { was, now, wasAll, nowAll } = sides;
	if (!wasAll || !nowAll)
		return `nothing to compare with: no sample ${wasAll ? "now" : "before"}`;
	const step = changeStep(sides), text = STEP_TEXTS[step];
	return step && !was ? "new" : step && !now ? "gone" : text;
}

// [term, value] of a node on both sides.
function changeFacts(profile, weights, node) {
	const total = sidesOf(weights, node), self = sidesOf(weights, node, "self");
	const { before, ledger } = profile;
	const ofCpu = { ...total, wasAll: before.rate * before.duration,
		nowAll: ledger.rate_hz * ledger.duration_s };
	return [
		["Change", `${arrowOf(changeStep(total))} ${changeText(total)}`.trim()],
		["Of all", `${formatSides(total)} (${formatChange(shareChange(total))})`],
		["In itself", `${formatSides(self)} (${formatChange(shareChange(self))})`],
		["Of a CPU", formatSides(ofCpu)],
		["Samples", `${formatCount(total.was)} → ${formatCount(total.now)}`],
	];
}

// The legend: a colour, its sign, and what it stands for.
function fillLegend(element, palette) {
	element.replaceChildren("Change in the share of the total:");
	for (let step = -STEPS_MAX; step <= STEPS_MAX; step++) {
		const entry = document.createElement("span"), colour = document.createElement("i");
		colour.style.background = palette.changes[step + STEPS_MAX];
		colour.style.color = palette.theme.text;
		colour.textContent = arrowOf(step) || "\u00a0";
		entry.append(colour, STEP_TEXTS[step]);
		element.append(" ", entry);
	}
}
