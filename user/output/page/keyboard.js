// SPDX-License-Identifier: BSD-2-Clause
// The keyboard: everything that a mouse can do, and the list of it that "?" shows.

function isTyping(event) {
	return event.target.matches("input, select, textarea");
}

// Keys that work wherever the focus is.  ACTIONS are functions of app.js.
function pageKey(event, actions) {
	if (event.key === "f" && (event.ctrlKey || event.metaKey) && !event.altKey)
		return actions.focusSearch;
	if (event.key === "Escape")
		return actions.escape;
	if (isTyping(event) || event.ctrlKey || event.metaKey || event.altKey)
		return null;
	switch (event.key) {
	case "/":
		return actions.focusSearch;
	case "?":
		return actions.help;
	default:
		return null;
	}
}

// Keys of the graph.  UP is towards the top of the window, so it depends on the view.
function graphKey(event, isFlame, actions) {
	if (event.ctrlKey || event.metaKey || event.altKey)
		return null;
	switch (event.key) {
	case "ArrowUp":
		return isFlame ? actions.child : actions.parent;
	case "ArrowDown":
		return isFlame ? actions.parent : actions.child;
	case "ArrowLeft":
		return actions.left;
	case "ArrowRight":
		return actions.right;
	case "Home":
		return actions.home;
	case "Enter":
	case " ":
		return actions.zoom;
	case "Backspace":
		return actions.zoomOut;
	default:
		return null;
	}
}

function listenToKeys(stage, isFlame, actions) {
	const run = (event, action) => {
		if (!action)
			return;
		event.preventDefault();
		action();
	};
	stage.addEventListener("keydown", (event) =>
		run(event, graphKey(event, isFlame(), actions)));
	document.addEventListener("keydown", (event) => {
		if (!document.querySelector("dialog[open]"))
			run(event, pageKey(event, actions));
	});
}
