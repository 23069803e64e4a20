"""A node that publishes while its process is forked in all usual ways. Arguments: SOCKET WAIT

No child may act as its parent in the pipeline, or harm it. Prints the number of published records.
"""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import lowlat

socket, wait = sys.argv[1:]
LONG_S = 60.0


def uses(node):
    """Every use of the parent's node in a child raises an error that names the owner."""
    owner = f"process {os.getppid()}"
    for use in (
        lambda: node.publish(b"stolen", kind=77),
        lambda: node.order(None, "buy", 1, 1, instrument=0),
        lambda: node.cancel(0, 1),
        lambda: node.open_orders(),
        lambda: node.poll(None),
        lambda: node.run(object()),
        lambda: list(node),
        lambda: node.is_over,
    ):
        try:
            use()
        except lowlat.Forked as error:
            assert owner in str(error), error
        else:
            raise AssertionError("a child used its parent's node")


def exit_from_with(node):
    with node:
        sys.exit(0)


def leave(node):
    uses(node)
    node.leave()
    node.leave()


def forget(node):
    global parent
    del parent


def join_too(node):
    node.leave()
    with lowlat.join_node(socket, f"child-{os.getpid()}", wait=wait) as own:
        assert own.poll(0.01) is not None and not own.is_over


def grandchild(node):
    child = os.fork()
    if child == 0:
        uses(node)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0


def os_fork(work):
    """A child that exits like Python programs do: with interpreter shutdown and destructors."""
    child = os.fork()
    if child == 0:
        work(parent)
        gc.collect()
        sys.exit(0)
    return lambda: os.waitpid(child, os.WNOHANG) == (0, 0), lambda: None


def worker(work):
    """A child of multiprocessing, which gets the node."""
    child = multiprocessing.get_context("fork").Process(target=work, args=(parent,))
    child.start()
    return child.is_alive, lambda: check(child.exitcode == 0, child.exitcode)


def program(_):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    return lambda: child.poll() is None, lambda: check(child.returncode == 0, child.returncode)


def check(is_so, found):
    assert is_so, found


def publish():
    global published
    published += 1
    parent.publish(published.to_bytes(8, "little"), kind=77)


published = 0
parent = lowlat.join_node(socket, "parent", writes="numbers", wait=wait)
while not any(isinstance(event, lowlat.Begin) for event in parent.poll(None)):
    pass
statuses = []
for start, work in [
    (os_fork, leave),
    (os_fork, exit_from_with),
    (os_fork, forget),
    (os_fork, join_too),
    (os_fork, grandchild),
    (worker, leave),
    (worker, uses),
    (worker, exit_from_with),
    (program, None),
]:
    is_running, verify = start(work)
    while is_running():
        publish()
        events = parent.poll(0.001)
        assert not events and not parent.is_over, (wait, work, events, parent.is_over)
    verify()

# While one thread waits in the node, and so occupies it, another forks.
waiter = threading.Thread(target=lambda: [event for event in parent])
waiter.start()
deadline = time.monotonic() + LONG_S
while time.monotonic() < deadline:
    try:
        parent.poll()
    except lowlat.BusyError:
        break
child = os.fork()
if child == 0:
    leave(parent)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert waiter.is_alive()
print(published)
parent.leave()
waiter.join(LONG_S)
assert not waiter.is_alive()
