# SPDX-License-Identifier: BSD-2-Clause
"""The colours of the graph's frames on the canvas."""

import re


def colours(browser, x, y, width, height):
    """{colour: pixels} of a part of the canvas."""
    return browser.run("""
        const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect();
        const context = new OffscreenCanvas(arguments[2], arguments[3]).getContext("2d");
        context.drawImage(canvas, box.left - arguments[0], box.top - arguments[1]);
        const { data } = context.getImageData(0, 0, arguments[2], arguments[3]);
        const counts = {};
        for (let i = 0; i < data.length; i += 4) {
            const colour = data.slice(i, i + 3).join();
            counts[colour] = (counts[colour] || 0) + 1;
        }
        return counts;""", x, y, width, height)


def fill(page, label, at=2):
    """The most frequent colour in a frame's rectangle, in three rows of pixels from AT on."""
    box = page.box(label)
    counts = colours(page.browser, int(box["x"]) + 2, box["y"] + at, int(box["width"]) - 5, 3)
    return max(counts, key=counts.get)


def luminance(colour):
    linear = [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4
              for value in map(int, re.findall(r"\d+", colour)[:3])]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
