"""A server whose GRUB takes its entries from /boot/loader/entries, with a saved entry, fallback counting and a rescue entry."""

from harness import tune

MACHINE = "four-cpus"
SUITE = "sid"
IS_QUICK = False

# As Fedora's generator writes it, without graphics.
MENU = """set timeout=0
search --no-floppy --label lowlat-lab --set=root
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="${saved_entry}"
fi
if [ -n "${boot_counter}" -a "${boot_success}" = "0" ]; then
  if [ "${boot_counter}" = "0" -o "${boot_counter}" = "-1" ]; then
    set default=1
    set boot_counter=-1
  fi
  save_env boot_counter
fi
blscfg -p /boot/loader/entries
"""
INSTALL = """
set -e
v=$(uname -r)
line=$(sed -e 's/^BOOT_IMAGE=[^ ]* //' /proc/cmdline)
mkdir -p /boot/loader/entries
for entry in lab-3-usual lab-2-older lab-0-rescue; do
    cat >/boot/loader/entries/$entry.conf <<END
title Debian sid, ${entry##*-}
version $v
linux /boot/vmlinuz-$v
initrd /boot/initrd.img-$v
options $line lab.entry=${entry##*-}
END
done
cp /lab/menu /boot/grub/grub.cfg
grub-editenv /boot/grub/grubenv create
"""
RESCUE = "/boot/loader/entries/lab-0-rescue.conf"


def block(lab, *words):
    """Writes variables of GRUB's block; `-NAME` is removed."""
    for word in words:
        verb, word = ("unset", word[1:]) if word.startswith("-") else ("set", word)
        lab.guest.must(f"grub-editenv /boot/grub/grubenv {verb} {word}")


def prepare(lab):
    (lab.guest.share / "menu").write_text(MENU)
    lab.guest.must(INSTALL)
    block(lab, "saved_entry=lab-3-usual")
    lab.guest.reboot()
    lab.need("GRUB booted the saved entry", lab.guest.cmdline.endswith("lab.entry=usual"), lab.guest.cmdline)


def told(lab, name, what):
    """lowlat names the line of the next boot, and that boot has it."""
    line = tune.known(lab.lowlat("host show --json").json()["kernel"]["default_boot_line"])
    lab.check(f"{what}: the default entry is {name}", f"lab.entry={name}" in (line or ""), line)
    lab.guest.reboot()
    lab.check(f"{what}: the next boot has that line", lab.guest.cmdline == line, f"{lab.guest.cmdline} and {line}")


def midway(lab):
    rescue = lab.text(RESCUE)
    lab.check("the rescue entry stays as it was", "isolcpus" not in rescue and "nohz_full" not in rescue, rescue)
    block(lab, "boot_success=0", "boot_counter=0")
    told(lab, "older", "after failed boots")
    tune.verify(lab, "in the second entry")
    block(lab, "-boot_success", "-boot_counter", "saved_entry=lab-0-rescue")
    told(lab, "rescue", "with a saved rescue entry")
    done = lab.lowlat("tune verify --json --no-ticks")
    lab.check("verify finds that the rescue entry lacks the plan", done.status == 1, done.status)
    block(lab, "saved_entry=lab-3-usual")
    told(lab, "usual", "saved again")
    tune.verify(lab, "in the first entry again")


def judge(lab, plan):
    lab.check("the plan isolates CPUs", bool(plan["isolated"]), plan["isolated"])


def run(lab):
    tune.cycle(lab, judge, midway, prepare=prepare)
