"""The TuneD profile exported for guide-57037 produces the guide's command line with the distribution's own TuneD."""

from harness.guide import LINE, tokens

MACHINE = "epyc-7f32-26g"
IS_QUICK = False

def run(lab):
    guest = lab.guest
    guest.boot()
    risks = [row["setting"] for row in (lab.lowlat("tune plan --json --profile guide-57037").json() or {})["left_out"] if row["setting"].startswith("boot.") and "not_accepted" in row["why"]]
    lab.note(risks)
    accepted = " ".join(f"--accept-risk {one}" for one in risks)
    lab.expect(f"tune export --profile guide-57037 --format tuned --out /lab/tuned/ {accepted}", 0)
    # As described in the export's README.
    guest.must("cp -r /lab/tuned/HPELowLatency /etc/tuned/ && tuned-adm profile HPELowLatency", 1800)
    active = guest.must("tuned-adm active").text
    lab.check("TuneD has the profile", "HPELowLatency" in active, active)
    before = guest.cmdline
    # With idle=poll all emulated CPUs are busy and the boot takes long; these values are fixed from its start.
    guest.reboot(settled=False)
    lab.note(guest.cmdline)
    have, wanted = tokens(guest.cmdline), tokens(LINE)
    missing = [token for token in wanted if token not in have]
    lab.check("every parameter of the guide is on the command line", not missing, missing)
    stock = tokens(before)
    more = [token for token in have if token not in wanted and token not in stock]
    lab.check("no other parameter is", not more, more)
    expected = (guest.share / "tuned/expected-cmdline").read_text()
    absent = [token for token in tokens(expected) if token not in have and not token.startswith("BOOT_IMAGE")]
    lab.check("it is the line that the export predicted", not absent, absent)
    nohz_full = lab.text("/sys/devices/system/cpu/nohz_full")
    lab.check("the kernel reports nohz_full = 1-7,9-15", nohz_full == "1-7,9-15", nohz_full)
    pages = lab.text("/proc/sys/vm/nr_hugepages")
    lab.check("6000 huge pages are reserved", pages == "6000", pages)
