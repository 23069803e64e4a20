"""What a guest reads and writes of its kernel: files, counters, and the effects that can be seen from a process."""

import ctypes
import errno
import glob
import os
import re
import socket
import time

LIBC = ctypes.CDLL(None, use_errno=True)


def text(path, default=None):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return default


def cpus(listed):
    found = set()
    for part in (listed or "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found


def mask(said):
    return [bit for bit in range(64) if int(said.replace(",", ""), 16) >> bit & 1] if said else None


def threads(prefix):
    """Kernel threads whose name starts so."""
    return [int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/comm") if (text(path) or "").startswith(prefix)]


def cpus_of(pid):
    said = re.search(r"Cpus_allowed_list:\s*(\S+)", text(f"/proc/{pid}/status") or "")
    return cpus(said[1]) if said else set()


def meminfo(key):
    return int(re.search(rf"^{key}:\s*(\d+)", text("/proc/meminfo"), re.M)[1])


def interrupts(row):
    said = re.search(rf"^ *{row}:((?: +\d+)+)", text("/proc/interrupts"), re.M)
    return [int(word) for word in said[1].split()] if said else [0] * 4


def timers():
    """The kernel's high-resolution timers: CPU, function, expiry."""
    cpu, function = None, None
    for line in text("/proc/timer_list", "").splitlines():
        if line.startswith("cpu: "):
            cpu = int(line[5:])
        elif found := re.match(r" #\d+: <[^>]*>, ([^,]+)", line):
            function = found[1]
        elif function and (found := re.match(r" # expires at (\d+)", line)):
            yield cpu, function, int(found[1])
            function = None


def watchdog_cpus():
    time.sleep(0.3)
    return sorted({cpu for cpu, function, _ in timers() if function.startswith("watchdog_timer")})


def tick_offsets():
    """How many phases the ticks of the CPUs have, in units of a tenth of a millisecond."""
    found = {expires % 1_000_000 // 100_000 for _, function, expires in timers() if function.startswith(("tick_sched_timer", "tick_nohz_handler"))}
    return len(found)


def trace(event, word, seconds):
    """Number of events of the kernel's trace that name the word, while memory is allocated and freed."""
    base = "/sys/kernel/tracing"
    group = f"{base}/events/{event.replace(':', '/')}/enable"
    put(f"{base}/trace", "")
    put(group, "1")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        bytearray(4 << 20)
        time.sleep(0.05)
    put(group, "0")
    return text(f"{base}/trace", "").count(word)


def vmstat_updates():
    """How often the memory counters are brought up to date, once the interval before has passed."""
    time.sleep(3)
    return trace("workqueue:workqueue_execute_start", "vmstat_update", 4)


def spin(cpu, seconds):
    """Local timer interrupts of a CPU while one thread spins there."""
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {cpu})
        while True:
            pass
    time.sleep(0.5)
    before = interrupts("LOC")[cpu]
    time.sleep(seconds)
    ticks = interrupts("LOC")[cpu] - before
    os.kill(child, 9)
    os.waitpid(child, 0)
    return ticks


def idle_ticks(seconds):
    before = interrupts("LOC")
    time.sleep(seconds)
    return min(now - then for now, then in zip(interrupts("LOC"), before))


def huge_page_faults():
    """Transparent huge pages that a process gets for 16 MiB; None if the kernel has none."""
    def count():
        said = re.search(r"thp_fault_alloc (\d+)", text("/proc/vmstat"))
        return said and int(said[1])
    if (before := count()) is None:
        return None
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    memory = LIBC.mmap(None, 16 << 20, 3, 0x22, -1, 0)
    ctypes.memset(memory, 1, 16 << 20)
    LIBC.munmap(ctypes.c_void_p(memory), ctypes.c_size_t(16 << 20))
    return count() - before


def memberships():
    """Multicast groups that a socket may join, up to 60."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    joined = 0
    for number in range(60):
        try:
            one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(f"239.1.1.{number + 1}") + socket.inet_aton("127.0.0.1"))
            joined += 1
        except OSError:
            break
    one.close()
    return joined


def receive_buffer(size_bytes):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size_bytes)
        return one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def has_ipv6():
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
        return True
    except OSError:
        return False


def dmesg():
    size = LIBC.klogctl(10, None, 0)
    buffer = ctypes.create_string_buffer(size)
    return buffer.raw[: LIBC.klogctl(3, buffer, size)].decode(errors="replace")


def is_aspm_managed():
    path = "/sys/module/pcie_aspm/parameters/policy"
    return None if text(path) is None else put(path, "performance") == "" and put(path, "default") == ""


def wakeups(prefix):
    def total():
        return sum(int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", text(f"/proc/{pid}/status") or "\nvoluntary_ctxt_switches: 0")[1]) for pid in threads(prefix))
    before = total()
    time.sleep(2)
    return total() - before


def put(path, value):
    """Writes a file; returns the name of the kernel's error."""
    try:
        with open(path, "w") as file:
            file.write(value)
        return ""
    except OSError as error:
        return {524: "ENOTSUPP"}.get(error.errno) or errno.errorcode[error.errno]


def shown(path):
    """The value of a file: the selected one in brackets, masks without leading zeros, CPU lists and words as they are."""
    said = text(path) or ""
    if chosen := re.search(r"\[([^]]+)\]", said):
        return chosen[1]
    if path.endswith(("cpumask", "affinity", "rps_cpus")) and re.fullmatch(r"[0-9a-f,]+", said) and "watchdog" not in path:
        return f"{int(said.replace(',', ''), 16):x}"
    return " ".join(said.split())


def warnings():
    """Places in the kernel that logged a warning."""
    return re.findall(r"WARNING: .*?at ([a-z]\S+?):", dmesg())
