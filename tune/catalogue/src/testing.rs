//! Artificial hosts for the tests of the catalogue.

#![expect(
    clippy::return_self_not_must_use,
    reason = "builders of tests, named after the facts that they set"
)]

use crate::CATALOGUE;
use lowlat_host::{
    Allocation, CpuSet, HostSnapshot, Profile, Reading, Role,
    cmdline::CommandLine,
    kernel_version::KernelVersion,
    snapshot::{Assignment, CpuFreq, Irq, KernelThread, SchedPolicy, Service, ServiceSource, Workqueue},
};
use lowlat_settings::{Context, Finding, Verdict, judge_one};

/// The line that the guide expects after the reboot (section 4.4.1).
pub const GUIDE_LINE: &str = "BOOT_IMAGE=(hd1,gpt2)/vmlinuz-4.18.0-147.5.1.el8_1.x86_64 \
    root=/dev/mapper/rhel-root ro crashkernel=auto resume=/dev/mapper/rhel-swap rd.lvm.lv=rhel/root \
    rd.lvm.lv=rhel/swap rhgb quiet selinux=0 mce=ignore_ce ipv6.disable=1 audit=0 nmi_watchdog=0 hugepagesz=2MB \
    hugepages=6000 default_hugepagesz=2MB transparent_hugepage=never tsc=reliable pcie_aspm=off cpuidle.off=1 \
    rcu_nocb_poll idle=poll processor.max_cstate=0 nohz=on nohz_full=1,2,3,4,5,6,7,9,10,11,12,13,14,15 \
    rcu_nocbs=1,2,3,4,5,6,7,9,10,11,12,13,14,15 tuned.non_isolcpus=00000101 intel_pstate=disable nosoftlockup";

/// A host with its role and allocation, which a test can modify.
pub struct Bench {
    pub host: HostSnapshot,
    pub role: Role,
    pub allocation: Allocation,
    pub profile: Profile,
}

impl Bench {
    /// A host with sixteen CPUs, 0 and 8 for housekeeping. Nothing else about it is known.
    pub fn of(profile: Profile) -> Self {
        let mut host = HostSnapshot::default();
        host.topology.online = CpuSet::first(16);
        host.topology.possible = Reading::Known(CpuSet::first(16));
        let housekeeping = list("0,8");
        let isolated = host.topology.online.difference(&housekeeping);
        Self {
            host,
            role: Role { profile, ..Role::default() },
            allocation: Allocation { housekeeping, isolated, ..Allocation::default() },
            profile,
        }
    }

    /// The same with a current x86-64 kernel, profile `trading`.
    pub fn trading() -> Self {
        let mut bench = Self::of(Profile::Trading).kernel(6, 12);
        bench.host.kernel.machine = Reading::Known("x86_64".into());
        bench
    }

    /// The guide's machine as its kernel was started, profile `guide-57037`.
    pub fn guide() -> Self {
        let mut bench = Self::of(Profile::Guide57037).kernel(4, 18).line(GUIDE_LINE);
        let host = &mut bench.host;
        host.kernel.machine = Reading::Known("x86_64".into());
        host.cpu.vendor = Reading::Known("AuthenticAMD".into());
        host.cpu.clocksource = Reading::Known("tsc".into());
        host.tasks.first_process_cpus = Reading::Known(list("0,8"));
        host.topology.nohz_full = Reading::Known(list("1-7,9-15"));
        host.topology.isolated = Reading::Known(CpuSet::new());
        host.memory.thp_enabled = Reading::Known("never".into());
        host.memory.huge_page_default_bytes = Reading::Known(2 << 20);
        host.memory.total_bytes = Reading::Known(256 << 30);
        bench
    }

    pub fn kernel(mut self, major: u16, minor: u16) -> Self {
        self.host.kernel.version = Reading::Known(KernelVersion::new(major, minor));
        self
    }

    pub fn line(mut self, line: &str) -> Self {
        self.host.kernel.command_line = Reading::Known(CommandLine::parse(line));
        self
    }

    pub fn knob(self, path: &str, value: &str) -> Self {
        self.reading(path, Reading::Known(value.to_owned()))
    }

    pub fn reading(mut self, path: &str, reading: Reading<String>) -> Self {
        self.host.files.insert(path.to_owned(), reading);
        self
    }

    pub fn sysctl(self, key: &str, value: &str) -> Self {
        self.knob(&lowlat_host::snapshot::sysctl_path(key), value)
    }

    /// Adds a line of a sysctl.d file, applied after those before it.
    pub fn sysctl_file(mut self, path: &str, key: &str, value: &str) -> Self {
        self.host.kernel.sysctl_files.push(Assignment {
            path: path.into(),
            line: 3,
            key: key.into(),
            value: value.into(),
        });
        self
    }

    /// Sets a kernel configuration with these options and no others.
    pub fn config(mut self, options: &[&str]) -> Self {
        let options = options.iter().map(|option| ((*option).to_owned(), "y".to_owned()));
        self.host.kernel.config = Reading::Known(options.collect());
        self
    }

    pub fn unit(self, name: &str, active: &str) -> Self {
        self.unit_reading(name, Reading::Known(active.to_owned()), "disabled")
    }

    pub fn unit_reading(mut self, name: &str, active: Reading<String>, enablement: &str) -> Self {
        self.host.services.source = ServiceSource::SystemdBus;
        let enablement = Reading::Known(enablement.to_owned());
        let unit = Service { active, enablement, ..Service::default() };
        self.host.services.units.insert(name.to_owned(), unit);
        self
    }

    pub fn thread(mut self, comm: &str, cpus: &str, policy: (SchedPolicy, u32), is_bound: bool) -> Self {
        let pid = u32::try_from(self.host.tasks.kernel_threads.len()).unwrap() + 2;
        self.host.tasks.kernel_threads.push(KernelThread {
            pid,
            comm: comm.into(),
            cpus_allowed: Reading::Known(list(cpus)),
            policy: policy.0,
            rt_priority: policy.1,
            is_bound,
        });
        self
    }

    pub fn workqueue(mut self, name: &str, cpus: Reading<CpuSet>) -> Self {
        self.host.tasks.workqueues.push(Workqueue { name: name.into(), cpus });
        self
    }

    pub fn irq(mut self, number: u32, action: &str, cpus: &str, is_managed: Reading<bool>) -> Self {
        self.host.interrupts.irqs.push(Irq {
            number,
            actions: vec![action.into()],
            affinity: Reading::Known(list(cpus)),
            effective_affinity: Reading::Known(list(cpus)),
            is_managed,
            ..Irq::default()
        });
        self
    }

    pub fn policy(mut self, cpus: &str, driver: &str, governor: Reading<String>) -> Self {
        let driver = Reading::Known(driver.to_owned());
        self.host.cpu.frequency.push(CpuFreq { cpus: list(cpus), driver, governor, ..CpuFreq::default() });
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The context that judges receive.
    pub fn context(&self) -> Context<'_> {
        let Self { host, role, allocation, profile } = self;
        Context { host, role, allocation, profile: *profile, catalogue: CATALOGUE }
    }

    /// Judges the setting with this id, which must exist.
    pub fn judge(&self, id: &str) -> Finding {
        let setting = CATALOGUE.find(id).unwrap_or_else(|| panic!("no setting {id}"));
        judge_one(&self.context(), setting)
    }

    pub fn verdict(&self, id: &str) -> Verdict {
        self.judge(id).verdict
    }

    /// Asserts the verdict, and that the observation or the reason contains each piece of text.
    #[track_caller]
    pub fn says(&self, id: &str, verdict: Verdict, pieces: &[&str]) {
        let finding = self.judge(id);
        let text = format!("{} | {}", finding.observed, finding.because);
        assert_eq!(finding.verdict, verdict, "{id}: {text}");
        for piece in pieces {
            assert!(text.contains(piece), "{id}: \"{piece}\" is not in \"{text}\"");
        }
    }
}

/// Parses a well-formed CPU list.
pub fn list(text: &str) -> CpuSet {
    CpuSet::parse_list(text).unwrap()
}

/// Returns text that no judge expects.
pub fn junk(path: &str) -> Reading<String> {
    Reading::unparsable(path, "\u{1}\u{2}junk", "something else")
}
