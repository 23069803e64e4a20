"""An initial RAM disk with Python, a script and lowlat, made of this host's own files: a kernel boots it in seconds."""

import pathlib
import re
import subprocess

# Everything a guest needs: its network interface, disk and shared folder.
MODULES = ("virtio_pci", "virtio_net", "nvme", "9pnet_virtio", "9p")
IMPORTS = "ctypes,errno,fcntl,glob,json,os,re,socket,struct,subprocess,sys,time,traceback,encodings.latin_1,encodings.ascii"
LIST = f"import {IMPORTS}, linecache, tokenize; print('\\n'.join(m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)))"
PYTHON = pathlib.Path("/usr/bin/python3")


def entry(name, mode, content=b"", inode=[0]):
    """One entry of a cpio archive in the format "newc"."""
    inode[0] += 1
    path = name.encode() + b"\0"
    fields = (inode[0], mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)


def libraries(paths):
    """The shared libraries that programs load."""
    said = subprocess.run(["ldd", *paths], capture_output=True, text=True).stdout
    return set(re.findall(r"(?:=> |\t)(/\S+) \(0x", said))


def modules(tree):
    """The modules' contents in the order in which they can be loaded."""
    found = {path.name.split(".ko")[0].replace("-", "_"): path for path in tree.rglob("*.ko*")}
    order = {}

    def add(name):
        if name in order or name not in found:
            return
        path = found[name]
        content = subprocess.run(["xz", "-dc", path], check=True, capture_output=True).stdout if path.suffix == ".xz" else path.read_bytes()
        needs = re.search(rb"[\n\0]depends=([^\0]*)\0", content)
        for needed in needs[1].decode().split(",") if needs and needs[1] else ():
            add(needed.replace("-", "_"))
        order[name] = content

    for name in MODULES:
        add(name)
    return order


def build(out, modules_tree, config, release, scripts, lowlat):
    """Writes the archive; the first script becomes the first process, the others are modules that it imports."""
    said = subprocess.run([PYTHON, "-I", "-S", "-c", f"import sys; {LIST}"], check=True, capture_output=True, text=True).stdout
    sources = [pathlib.Path(line) for line in said.split()]
    programs = [str(PYTHON.resolve()), str(lowlat), *(str(path) for path in sources if path.suffix == ".so")]
    files = {str(path): path.read_bytes() for path in sources}
    for path in libraries(programs):
        files[path] = pathlib.Path(path).read_bytes()
    files[str(PYTHON)] = PYTHON.resolve().read_bytes()
    files["/lowlat"] = lowlat.read_bytes()
    files[f"/boot/config-{release}"] = config.read_bytes()
    # Python finds modules beside the script, so not -I; -E and -s are the rest of it.
    files["/init"] = b"#!/usr/bin/python3 -EsSB\n" + scripts[0].read_bytes()
    files.update({f"/{path.name}": path.read_bytes() for path in scripts[1:]})
    loaded = modules(modules_tree)
    for name, content in loaded.items():
        files[f"/modules/{name}.ko"] = content
    files["/modules.list"] = "\n".join(f"/modules/{name}.ko" for name in loaded).encode()
    folders = sorted({str(parent) for path in files for parent in pathlib.Path(path).parents if str(parent) != "/"})
    with open(out, "wb") as archive:
        for folder in folders:
            archive.write(entry(folder[1:], 0o40755))
        for path, content in files.items():
            archive.write(entry(path[1:], 0o100755, content))
        archive.write(entry("TRAILER!!!", 0))
