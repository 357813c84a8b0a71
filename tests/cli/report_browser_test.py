#!/usr/bin/env python3
"""Opens pages of `keel report` in a browser, without a network, and uses them.

Needs Playwright for Python and Chromium; without them it is skipped (exit code 77), saying which is
missing. `./dev test` installs both. KEEL_BROWSER_PYTHON is a Python that has Playwright, if this one
has not.
"""

import os
import shutil
import sys
import tempfile
import unittest

SKIPPED = 77

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    other = os.environ.pop("KEEL_BROWSER_PYTHON", "")
    if os.path.exists(other):
        os.execv(other, [other, "-B", *sys.argv])
    print("skipped: Playwright for Python is not installed; './dev setup' does")
    sys.exit(SKIPPED)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    print("skipped: there is no chromium; './dev setup' installs it")
    sys.exit(SKIPPED)

# After the above, because these need what ctest sets.
from command_line import keel  # noqa: E402
from recordings import MIB, RESNET, RecordingTest, event  # noqa: E402

HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"


class Shared:
    """What all tests use: one browser, and one page of a real history."""

    playwright = browser = folder = resnet = None


def setUpModule():
    arguments = ["--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND"]
    if os.geteuid() == 0:  # which Chromium's sandbox refuses
        arguments.append("--no-sandbox")
    Shared.playwright = sync_playwright().start()
    Shared.browser = Shared.playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
    Shared.folder = tempfile.TemporaryDirectory()
    Shared.resnet = os.path.join(Shared.folder.name, "resnet.html")
    run = keel("report", RESNET, "-o", Shared.resnet)
    assert run.returncode == 0, run.stderr


def tearDownModule():
    Shared.browser.close()
    Shared.playwright.stop()
    Shared.folder.cleanup()


class BrowserTest(RecordingTest):
    def open(self, path, **options):
        """A page that is ready. When the test ends it has asked for nothing but itself and complained
        about nothing."""
        context = Shared.browser.new_context(offline=True, **options)
        self.addCleanup(context.close)
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        self.addCleanup(lambda: self.assertEqual(complaints, []))
        self.addCleanup(lambda: self.assertEqual(requests, ["file://" + path]))
        page.goto("file://" + path)
        page.wait_for_selector("html[data-ready]")
        self.settle(page)
        return page

    @staticmethod
    def settle(page):
        """What was asked for is drawn."""
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def view(self, page):
        self.settle(page)
        data = page.locator("#overlay").evaluate("(canvas) => [canvas.dataset.from, canvas.dataset.to]")
        return float(data[0]), float(data[1])

    def width(self, page):
        begin, end = self.view(page)
        return end - begin

    def colours(self, page):
        """How many there are in the picture of the blocks."""
        return page.locator("#blocks").evaluate("""(canvas) => {
          const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }""")

    def details(self, page):
        return dict(zip(page.locator("#details dt").all_inner_texts(), page.locator("#details dd").all_inner_texts()))


class TimelineTest(BrowserTest):
    def test_shows_blocks(self):
        self.assertGreater(self.colours(self.open(Shared.resnet)), 50)

    def test_numbers_are_those_of_a_replay(self):
        page = self.open(Shared.resnet)
        replayed = self.json_of("replay", RESNET, "--json", "--conf", "", "--conf", "expandable_segments:false")
        for row in replayed:
            cells = page.locator(f"#replays-table tr[data-conf='{row['conf']}']:not(.recorded) td")
            for column, key in ((2, "peak_requested"), (3, "peak_allocated"), (4, "peak_reserved")):
                self.assertEqual(cells.nth(column).get_attribute("data-bytes"), str(row[key]))
            self.assertEqual(cells.nth(5).inner_text(), f"{row['ratio']:.3f}")
        self.assertEqual(page.locator("#replays-table tr.recorded td").nth(4).get_attribute("data-bytes"), "11106516992")
        self.assertEqual(page.locator("#figures dd").first.inner_text(), "7.27 GiB")
        first = page.locator("#peak-table tbody tr").first
        self.assertEqual(first.locator("td").nth(1).get_attribute("data-bytes"), "2684354560")

    def test_zoom_and_move(self):
        page = self.open(Shared.resnet)
        overlay = page.locator("#overlay")
        box = overlay.bounding_box()
        everything = self.view(page)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.wheel(0, -400)
        begin, end = self.view(page)
        self.assertLess(end - begin, 0.6 * everything[1])
        self.assertGreater(begin, 0)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 - 100, box["y"] + box["height"] / 2, steps=4)
        page.mouse.up()
        moved = self.view(page)
        self.assertGreater(moved[0], begin)
        self.assertAlmostEqual(moved[1] - moved[0], end - begin, delta=1)
        page.keyboard.down("Shift")  # marks a stretch
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
        page.mouse.up()
        page.keyboard.up("Shift")
        self.assertLess(self.width(page), 0.2 * (end - begin))
        overlay.focus()
        page.keyboard.press("0")
        self.assertEqual(self.view(page), everything)
        page.keyboard.press("+")
        self.assertAlmostEqual(self.width(page), everything[1] / 1.5, delta=1)
        before = self.view(page)[0]
        page.keyboard.press("ArrowRight")
        self.assertGreater(self.view(page)[0], before)
        page.get_by_role("button", name="Peak").click()
        self.assertAlmostEqual(self.width(page), everything[1] / 20, delta=1)
        page.get_by_text("Events", exact=True).click()
        begin, end = self.view(page)
        self.assertLess(begin, 30153)  # the event of the peak
        self.assertGreater(end, 30153)

    def test_click_a_block(self):
        page = self.open(Shared.resnet)
        self.assertEqual(self.details(page), {})
        page.get_by_role("button", name="Peak").click()
        self.settle(page)
        overlay = page.locator("#overlay")
        box = overlay.bounding_box()
        overlay.click(position={"x": box["width"] * 0.53, "y": box["height"] * 0.7})
        facts = self.details(page)
        self.assertEqual(facts["Size"], "256 MiB (268,435,456 bytes)")
        self.assertRegex(facts["Address"], r"^0x7f[0-9a-f]{10}$")
        self.assertRegex(facts["Allocated"], r"^2\.\d+ s, event [\d,]+$")
        self.assertRegex(facts["Freed"], r"^2\.\d+ s, event [\d,]+$")
        self.assertEqual(facts["Stream"], "0")
        page.keyboard.press("ArrowUp")  # the block above, which lies in the same moment
        self.assertNotEqual(self.details(page)["Address"], facts["Address"])
        page.keyboard.press("ArrowDown")
        self.assertEqual(self.details(page), facts)
        page.keyboard.press("Escape")
        self.assertEqual(self.details(page), {})

    def test_one_origin(self):
        page = self.open(Shared.resnet)
        before = page.locator("#blocks").evaluate("(canvas) => canvas.toDataURL()")
        row = page.locator("#peak-table tbody tr").first
        row.click()
        self.settle(page)
        self.assertNotEqual(page.locator("#blocks").evaluate("(canvas) => canvas.toDataURL()"), before)
        self.assertEqual(row.get_attribute("aria-pressed"), "true")
        row.press("Enter")
        self.settle(page)
        self.assertEqual(page.locator("#blocks").evaluate("(canvas) => canvas.toDataURL()"), before)


class SegmentsTest(BrowserTest):
    def test_moments(self):
        page = self.open(Shared.resnet)
        text = page.locator("#segments-text")
        self.assertIn("9.84 GiB, of which 7.27 GiB were in use", text.inner_text())
        page.get_by_text("End", exact=True).click()
        self.assertIn("147 segments with 10.34 GiB", text.inner_text())
        page.locator("#overlay").click(position={"x": 200, "y": 200})
        page.get_by_text("Cursor", exact=True).click()
        self.assertNotIn("10.34 GiB", text.inner_text())
        self.assertRegex(text.inner_text(), r"^\d+ segments with ")

    def test_click_a_block(self):
        page = self.open(Shared.resnet)
        page.locator("#map").click(position={"x": 20, "y": 8})
        self.assertEqual(self.details(page)["Size"], "256 MiB (268,435,456 bytes)")


class LookTest(BrowserTest):
    def test_light_dark_and_narrow(self):
        seen = set()
        for scheme in ("light", "dark"):
            page = self.open(Shared.resnet, color_scheme=scheme, viewport={"width": 390, "height": 800})
            seen.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
            self.assertLessEqual(page.evaluate("() => document.documentElement.scrollWidth"), 390)
        self.assertEqual(len(seen), 2)

    def test_names_of_a_file_stay_text(self):
        frames = [{"name": HOSTILE, "filename": HOSTILE, "line": 3}]
        file = self.recording([event("alloc", 0x1000, MIB, 0, frames=frames, tag=HOSTILE),
                               event("alloc", 0x200000, MIB, 9)])
        path = os.path.join(Shared.folder.name, "hostile.html")
        self.assert_ok(keel("report", file, "-o", path, "--title", HOSTILE))
        page = self.open(path)
        self.assertEqual(page.locator("h1").inner_text(), HOSTILE)
        box = page.locator("#overlay").bounding_box()
        page.locator("#overlay").click(position={"x": box["width"] / 2, "y": box["height"] - 50})
        self.assertEqual(self.details(page)["Tag"], HOSTILE)
        self.assertIn(HOSTILE, page.locator("#details ol").inner_text())
        self.assertIsNone(page.evaluate("() => window.broken ?? null"))

    def test_a_picture_of_the_moment(self):
        segment = {"device": 0, "address": 0x1000, "total_size": 4 * MIB, "stream": 0, "blocks": [
            {"address": 0x1000, "size": MIB, "requested_size": MIB, "state": "active_allocated"},
            {"address": 0x1000 + MIB, "size": 3 * MIB, "state": "inactive"}]}
        path = os.path.join(Shared.folder.name, "moment.html")
        self.assert_ok(keel("report", self.recording([], segments=[segment]), "-o", path))
        page = self.open(path)
        self.assertFalse(page.locator("#timeline").is_visible())
        self.assertIn("3 MiB in 1 holes", page.locator("#segments-text").inner_text())


if __name__ == "__main__":
    unittest.main()
