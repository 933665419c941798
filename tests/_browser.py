"""A headless Chromium for the tests of pages.

Tests are skipped where there is none; with the environment variable
``SKCALIB_REQUIRE_BROWSER=1`` that is a failure.
"""

import os
import shutil

import pytest

SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def absent():
    """Return what a browser test lacks here, or None."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import selenium  # noqa: F401
    except ImportError as error:
        return f"no {error.name} (extras report and test)"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no {program} (Debian packages chromium and chromium-driver)"
    return None


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    lacking = absent()
    if lacking is not None:
        if os.environ.get("SKCALIB_REQUIRE_BROWSER") == "1":
            pytest.fail(f"SKCALIB_REQUIRE_BROWSER=1, but there is {lacking}.")
        pytest.skip(f"There is {lacking}.")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=Service(shutil.which("chromedriver"))
    )
    yield driver
    driver.quit()


def set_width(browser, width):
    """Give the page this many pixels of width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
