// SPDX-License-Identifier: BSD-2-Clause
// The colours of frames, which are the same for a file in every profile.
//
// They are chosen in OKLCH, where one lightness looks equally light in every hue: so text on
// all of them has the same contrast.  Python's files share the warm half of the circle; the
// other kinds have a hue of their own in the cold half.

const WARM_HUES = 24;
const WARM_FROM = 12, WARM_TO = 152;
const SHADES = 3;
const KIND_HUES = { native: 232, kernel: 325, jit: 190, interpreter: 278 };
// Red-blind and green-blind people can distinguish red and blue, too.
const CHANGE_HUES = { more: 30, less: 250 };

const THEMES = {
	light: {
		lightness: 0.825, shade: 0.026, chroma: 0.105, text: "#1d1a16",
		faded: [0.935, 0.018], fadedText: "#5d5a66",
		reason: [0.79, 0.004, 80], group: [0.885, 0.022, 265], crowd: [0.87, 0.02, 70],
		match: [0.5, 0.215, 300], matchText: "#ffffff",
		unchanged: [0.9, 0.003, 80], more: [0.45, 0.18], less: [0.45, 0.16],
		changes: [[0.875, 0.055], [0.8, 0.105], [0.72, 0.15]],
		outline: "#17141f", hover: "rgba(20, 10, 40, 0.16)",
	},
	dark: {
		lightness: 0.515, shade: 0.024, chroma: 0.108, text: "#fffdf8",
		faded: [0.305, 0.016], fadedText: "#b0aebb",
		reason: [0.44, 0.004, 80], group: [0.355, 0.022, 265], crowd: [0.37, 0.02, 70],
		match: [0.77, 0.15, 312], matchText: "#1a1022",
		unchanged: [0.36, 0.004, 80], more: [0.82, 0.12], less: [0.82, 0.1],
		changes: [[0.4, 0.055], [0.44, 0.1], [0.48, 0.145]],
		outline: "#ffffff", hover: "rgba(255, 255, 255, 0.18)",
	},
};

function gammaEncode(linear) {
	const value = Math.min(1, Math.max(0, linear));
	return Math.round(255 * (value <= 0.0031308 ? 12.92 * value :
		1.055 * value ** (1 / 2.4) - 0.055));
}

// OKLCH to "rgb(r, g, b)": Björn Ottosson's matrices.
function oklch(lightness, chroma, hue) {
	const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
	const red = gammaEncode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
	const green = gammaEncode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
	const blue = gammaEncode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
	return `rgb(${red}, ${green}, ${blue})`;
}

// FNV-1a with a final mix, so that names which differ at their end differ in all bits.
function stableHash(text) {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
	hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
	hash = Math.imul(hash ^ hash >>> 13, 0xc2b2ae35);
	return (hash ^ hash >>> 16) >>> 0;
}

// A row of colours; a frame's place in it depends on nothing but its names.
class Palette {
	constructor(themeName) {
		const theme = THEMES[themeName];
		const hues = Array.from({ length: WARM_HUES }, (_, i) =>
			WARM_FROM + (WARM_TO - WARM_FROM) * i / (WARM_HUES - 1));
		hues.push(...Object.values(KIND_HUES));
		this.theme = theme;
		this.fills = [];
		this.faded = [];
		for (const hue of hues)
			for (let shade = 0; shade < SHADES; shade++) {
				const offset = (shade - 1) * theme.shade;
				this.fills.push(oklch(theme.lightness + offset, theme.chroma, hue));
				this.faded.push(oklch(theme.faded[0] + offset / 3, theme.faded[1], hue));
			}
		for (const neutral of [theme.reason, theme.group]) {
			this.fills.push(oklch(...neutral));
			this.faded.push(oklch(theme.faded[0], 0.004, 265));
		}
		this.addChanges(theme);
		this.match = oklch(...theme.match);
		this.crowd = oklch(...theme.crowd);
		this.fadedCrowd = oklch(theme.faded[0] - theme.shade, 0.006, theme.crowd[2]);
	}

	// A colour for each step of a change, from the most of less to the most of more.
	addChanges(theme) {
		const row = (hue) => theme.changes.map(([lightness, chroma]) =>
			oklch(lightness, chroma, hue));
		const { more, less } = CHANGE_HUES;
		this.changes = [...row(less).reverse(), oklch(...theme.unchanged), ...row(more)];
		this.edges = { more: oklch(...theme.more, more), less: oklch(...theme.less, less) };
	}

	// A colour of frames of KIND.
	sample(kind) {
		return this.fills[Palette.place(kind, "", "")];
	}

	// The place of a frame of KIND in either row.
	static place(kind, filename, name) {
		const neutral = SHADES * (WARM_HUES + Object.keys(KIND_HUES).length);
		const shade = stableHash(name) % SHADES;
		switch (kind) {
		case KIND.PYTHON:
			return stableHash(filename) % WARM_HUES * SHADES + shade;
		case KIND.NATIVE:
			return WARM_HUES * SHADES + shade;
		case KIND.KERNEL:
			return (WARM_HUES + 1) * SHADES + shade;
		case KIND.JIT:
			return (WARM_HUES + 2) * SHADES + shade;
		case KIND.INTERPRETER:
			return (WARM_HUES + 3) * SHADES + shade;
		case KIND.REASON:
			return neutral;
		default:
			return neutral + 1;
		}
	}
}
