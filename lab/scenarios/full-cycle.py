"""The guide's server from stock to verified and back: plan, apply, reboot, verify, measure, rollback, reboot."""

from harness import tune

MACHINE = "epyc-7f32-stock"
IS_QUICK = True


def midway(lab):
    done = lab.expect("jitter --duration 3s --cpus 1,9 --force --json", 0)
    measurements = (done.json() or {}).get("measurements", [])
    measured = [cpu["cpu"] for of in measurements if of["kind"] == "jitter" for cpu in of["record"]["cpus"]]
    lab.check("jitter measures isolated CPUs of both nodes", measured == [1, 9], measured)
    done = lab.lowlat("assess --duration 3s --cpus 1 --report /lab/report.html --result /lab/result.json")
    lab.check("assess ends with 0 or 1", done.status in (0, 1), f"{done.status}: {done.said[-400:]}")
    page = lab.guest.share / "report.html"
    lab.check("assess writes its page", page.exists() and page.stat().st_size > 10_000)
    _, fixed = tune.interrupts(lab)
    lab.check("the disk has interrupts that the kernel manages", any("nvme" in name for name in fixed), fixed)
    lab.ride()
    tune.verify(lab, "after those that shared this boot")


def judge(lab, plan):
    lab.check("the plan isolates 1-7,9-15", plan["isolated"] == "1-7,9-15", plan["isolated"])
    lab.check("the plan keeps 0,8 for housekeeping", plan["housekeeping"] == "0,8", plan["housekeeping"])


def run(lab):
    tune.cycle(lab, judge, midway)
