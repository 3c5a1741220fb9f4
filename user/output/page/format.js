// SPDX-License-Identifier: BSD-2-Clause
// Numbers and names as text.

const countFormat = new Intl.NumberFormat("en-US");

function formatCount(count) {
	return countFormat.format(count);
}

// "12.3 %"; small shares keep two digits, and none but 0 is shown as 0.
function formatShare(part, whole) {
	if (!(whole > 0))
		return "–";
	const percent = 100 * part / whole;
	if (part === 0)
		return "0 %";
	if (percent < 0.01)
		return "< 0.01 %";
	const rounded = percent.toFixed(percent < 1 ? 2 : 1);
	return (rounded === "100.0" && part < whole ? "> 99.9" : rounded) + " %";
}

function eventName({ event }) {
	return event || "cpu-clock";
}

// What is counted: samples of the clock, else the events that were sampled.
let countedEvent = "", countedUnit = "", countedMeaning = "";

// COUNT of what is counted: of nanoseconds as seconds.
function formatAmount(count) {
	return countedUnit === "nanoseconds" ? (count / 1e9).toFixed(3) + " s" : formatCount(count);
}

function formatSamples(count) {
	if (countedEvent)
		return `${formatAmount(count)} ${countedEvent}`;
	return formatCount(count) + (count === 1 ? " sample" : " samples");
}

function formatMilliseconds(nanoseconds) {
	return (nanoseconds / 1e6).toFixed(nanoseconds < 1e6 ? 3 : 1) + " ms";
}

// What moves the cursor, ends a line or turns the direction of what follows is shown as its
// number: a name must not be able to rearrange the page's text.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function printable(text) {
	return text.replace(UNPRINTABLE, (character) =>
		"\\u" + character.charCodeAt(0).toString(16).padStart(4, "0"));
}
