"""The binary that the comparisons measure."""

import argparse
import os

BUILT = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "release", "flowgate")


def add_option(parser):
    """Adds --flowgate, and says how to build one where there is none."""
    parser.add_argument("--flowgate", type=present, default=BUILT, help=f"the binary to measure, {BUILT}")


def add_bare(parser):
    """Adds --bare, the server that only reads and sends."""
    parser.add_argument("--bare", help="the program `bare` of this folder: a server that only reads and sends joins in")


def present(path):
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"{path} is not there: cargo build --release -p flowgate-cli, or --flowgate")
    return path
