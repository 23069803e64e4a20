"""The full cycle on a server whose unified kernel image kernel-install builds from /etc/kernel/cmdline."""

from harness import tune

MACHINE = "four-cpus-uefi"
SUITE = "trixie"
LOADER = "systemd-boot"
PACKAGES = ("systemd-ukify",)
IS_QUICK = False

INSTALL = """
set -e
v=$(uname -r)
kernel-install remove "$v"
printf 'layout=uki\\n' >/etc/kernel/install.conf
kernel-install add "$v" "/boot/vmlinuz-$v"
sync
"""
IMAGE = "/boot/efi/EFI/Linux/*.efi"
# The text of the image's section.
LINE = f"""python3 -B -c 'import glob, pefile
image, = glob.glob("{IMAGE}")
print(*(s.get_data(length=s.Misc_VirtualSize).decode() for s in pefile.PE(image, fast_load=True).sections if s.Name.startswith(b".cmdline")))'"""


def prepare(lab):
    lab.guest.must(INSTALL, 3000)
    lab.guest.reboot()
    stub = lab.guest.run("tr -d '\\0' </sys/firmware/efi/efivars/StubInfo-*").text
    lab.need("systemd's stub started the kernel", "systemd-stub" in stub, stub)


def judge(lab, plan):
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def midway(lab):
    isolated = lab.text("/sys/devices/system/cpu/isolated")
    for what, line in {"the image": lab.guest.must(LINE).text, "its source": lab.text("/etc/kernel/cmdline")}.items():
        lab.check(f"{what} has the isolated CPUs", f"nohz_full={isolated}" in line, line)


def run(lab):
    tune.cycle(lab, judge, midway, prepare=prepare)
