// SPDX-License-Identifier: BSD-2-Clause
// Runs in speedscope's own page, like the script that its command line generates.  Loads the file
// `input` ({name, base64}) and puts the result into the page, as base64 of JSON:
// {"saved": the output of speedscope's "save" command} or {"failed": the reason}.
"use strict";

function report(result) {
	const bytes = new TextEncoder().encode(JSON.stringify(result));
	const characters = Array.from(bytes, (byte) => String.fromCharCode(byte));
	const element = document.createElement("output");

	element.id = "report";
	element.textContent = btoa(characters.join(""));
	document.body.appendChild(element);
}

function save() {
	if (document.getElementById("report"))
		return;
	window.dispatchEvent(new KeyboardEvent("keydown", { key: "s", ctrlKey: true }));
	setTimeout(save, 100);
}

window.alert = (message) => report({ failed: message });
window.addEventListener("error", (event) => report({ failed: event.message }));
window.addEventListener("unhandledrejection", (event) => report({ failed: String(event.reason) }));
URL.createObjectURL = (blob) => {
	blob.text().then((text) => report({ saved: JSON.parse(text) }));
	return "#";
};

speedscope.loadFileFromBase64(input.name, input.base64);
save();
