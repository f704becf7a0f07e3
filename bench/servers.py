"""What the comparisons do with the servers they measure."""

import os
import socket
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")


def processor_time(pid):
    """Seconds that a process has spent, in itself and in the kernel."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def start(command):
    # taskset becomes the server, so the process that is started is the one to measure.
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
