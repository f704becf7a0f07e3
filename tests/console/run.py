"""Runs the journeys in two processes, each with one browser, and tells how long each journey took.

    python tests/console/run.py [PATTERN]

PATTERN chooses files: 'test_editor.py'. CONSOLE_TEST_PROCESSES sets the number of processes. What a journey prints is
shown below its line, with the traceback where it fails; the exit code is 1 if one fails or if none is found.
"""

import concurrent.futures
import contextlib
import io
import multiprocessing
import os
import pathlib
import sys
import time
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
PROCESSES = int(os.environ.get("CONSOLE_TEST_PROCESSES", "2"))


def tests_of(suite):
    """The names of all tests. A file that cannot be imported stands for itself, and fails when it is run."""
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from tests_of(each)
        else:
            yield each.id().removeprefix("unittest.loader._FailedTest.")


def run(name):
    """Runs one test: its name, seconds, whether it passed, and all that it said."""
    begin = time.monotonic()
    said = io.StringIO()
    sys.path.insert(0, str(FOLDER))
    try:
        with contextlib.redirect_stdout(said):
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromName(name).run(result)
    finally:
        sys.path.remove(str(FOLDER))
    said.write("".join(text for _, text in result.errors + result.failures))
    return name, time.monotonic() - begin, result.wasSuccessful(), said.getvalue()


def main(pattern):
    begin = time.monotonic()
    names = list(tests_of(unittest.defaultTestLoader.discover(str(FOLDER), pattern)))
    failed = []
    # Each process is started anew: a browser cannot be shared with a copy of this one.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, context) as processes:
        for done in concurrent.futures.as_completed([processes.submit(run, name) for name in names]):
            name, seconds, passed, said = done.result()
            print(f"{seconds:6.1f} s  {'ok    ' if passed else 'FAILED'}  {name}", flush=True)
            print("".join(f"            {line}\n" for line in said.splitlines()), end="", flush=True)
            if not passed:
                failed.append(name)
    print(f"{len(names)} tests in {time.monotonic() - begin:.0f} s, {len(failed)} failed")
    print("".join(f"FAILED {name}\n" for name in failed), end="")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "test_*.py"))
