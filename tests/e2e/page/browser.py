# SPDX-License-Identifier: BSD-2-Clause
"""Headless Chromium, driven with a user's input through plain WebDriver."""

import base64
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

PATIENCE = 120
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowUp": "\ue013", "ArrowDown": "\ue015",
        "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "Home": "\ue011", "Tab": "\ue004",
        "Backspace": "\ue003", "Control": "\ue009"}

SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--force-device-scale-factor=1", "--hide-scrollbars",
            # A pipe instead of a port of localhost, a name that a bare system cannot resolve.
            "--remote-debugging-pipe"]


def wait(condition):
    """Returns once CONDITION holds, or after a minute.  The assertions of the test then fail with a better message."""
    patience = time.monotonic() + 60
    while not condition() and time.monotonic() < patience:
        time.sleep(0.05)


class WebDriverError(Exception):
    """An error that the driver returned."""


class Browser:
    """One window in its own browser process."""

    def __init__(self, driver, chromium, folder, size=(1280, 800)):
        self.folder = folder
        environment = dict(os.environ, HOME=folder, XDG_CONFIG_HOME=folder, XDG_CACHE_HOME=folder)
        self.log = open(os.path.join(folder, "driver.log"), "w+b")
        self.process = subprocess.Popen([driver, "--port=0"], stdout=self.log,
                                        stderr=subprocess.STDOUT, env=environment)
        self.base = None
        try:
            self.base = "http://127.0.0.1:%d" % self.wait_for_port()
            self.start(chromium, size)
        except BaseException:
            self.close()
            raise

    def wait_for_port(self):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            with open(self.log.name, encoding="utf-8", errors="replace") as log:
                said = re.search(r"started successfully on port (\d+)", log.read())
            if said:
                return int(said.group(1))
            time.sleep(0.02)
        raise WebDriverError("chromedriver did not start")

    def start(self, chromium, size):
        profile = os.path.join(self.folder, "profile")
        arguments = SWITCHES + ["--user-data-dir=" + profile, "--window-size=%d,%d" % size]
        capabilities = {
            "browserName": "chrome", "unhandledPromptBehavior": "ignore",
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.base += "/session/" + answer["sessionId"]
        self.cdp("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                 deviceScaleFactor=1, mobile=False)
        # On a busy machine the window may briefly lack focus, and would then get no keys.
        self.cdp("Emulation.setFocusEmulationEnabled", enabled=True)

    def ask(self, method, path, body=None):
        data = None if method in ("GET", "DELETE") else json.dumps(body or {}).encode("utf-8")
        request = urllib.request.Request(self.base + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=PATIENCE) as answer:
                return json.loads(answer.read().decode("utf-8"))["value"]
        except urllib.error.HTTPError as error:
            said = json.loads(error.read().decode("utf-8"))["value"]
            raise WebDriverError("%s: %s" % (said["error"], said["message"])) from error

    def close(self):
        try:
            if self.base and "/session/" in self.base:
                self.ask("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()
            self.log.close()

    def cdp(self, command, **parameters):
        """Runs a command of the DevTools protocol."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """Sets the preferred colour scheme, "light" or "dark"."""
        self.cdp("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        """Loads a page afresh."""
        self.ask("POST", "/url", {"url": "about:blank"})
        self.ask("POST", "/url", {"url": url})
        self.await_paint()

    def await_paint(self):
        """Waits for the first paint.  Until then Chromium drops keys."""
        wait(lambda: self.run("return performance.getEntriesByType('paint').length"))

    def reload(self):
        self.ask("POST", "/refresh")
        self.await_paint()

    def back(self):
        self.ask("POST", "/back")

    @property
    def url(self):
        return self.ask("GET", "/url")

    def run(self, script, *arguments):
        """Runs a script and returns its `return` value."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.ask("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def enter(self, selector):
        """Enters a frame: later commands apply to its document."""
        self.ask("POST", "/frame", {"id": {ELEMENT: self.find(selector)}})

    def click(self, selector):
        """Clicks an element with the mouse: it must be visible and not covered."""
        self.ask("POST", "/element/%s/click" % self.find(selector))

    def choose(self, selector, text):
        """Chooses the menu option whose text contains TEXT."""
        done = self.run("""
            const menu = document.querySelector(arguments[0]);
            const option = [...menu.options].find((each) => each.text.includes(arguments[1]));
            if (!option)
                return false;
            menu.value = option.value;
            menu.dispatchEvent(new Event("change", { bubbles: true }));
            return true;""", selector, text)
        assert done, "no option %s in %s" % (text, selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def point(self, x, y, press=True):
        """Moves the mouse there, and clicks if PRESS."""
        actions = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}]
        if press:
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.ask("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "actions": actions}]})

    def press(self, *keys):
        """Presses keys one after another.  The parts of "Control+f" are pressed together."""
        actions = []
        for key in keys:
            parts = key.split("+") if len(key) > 1 else [key]
            held = [KEYS.get(part, part) for part in parts]
            actions += [{"type": "keyDown", "value": value} for value in held]
            actions += [{"type": "keyUp", "value": value} for value in reversed(held)]
        self.ask("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def type(self, text):
        self.press(*text)

    def messages(self):
        """The console's messages since the last call, including security violations."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("GET", "/screenshot")))


def find_browser():
    """The paths of Chromium and of its driver; None if missing."""
    path = os.environ["PATH"] + ":/usr/lib/chromium:/usr/sbin:/sbin"
    return shutil.which("chromium", path=path), shutil.which("chromedriver", path=path)
