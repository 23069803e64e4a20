//! `lowlat bios audit --hosts`: many servers, several at a time.

use super::{
    BiosAuditArgs,
    connection::{Connection, ServiceTarget, in_words},
    source::bounded,
};
use crate::{
    commands::outputs::RunFiles,
    exit::{Exit, Interrupted},
    labels::WithLabels,
    output, signals,
};
use anyhow::{Context, bail};
use lowlat_bios::{BiosAudit, BiosFleet, FleetServer};
use lowlat_host::Profile;
use lowlat_redfish::{Credentials, Trust};
use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// One line of the file.
struct NamedService {
    address: String,
    /// Its certificate's fingerprint; `None` if it is verified as the options say.
    pin: Option<Trust>,
}

/// What all audits share.
struct Round<'a> {
    connection: &'a Connection,
    profile: Profile,
    credentials: Option<Credentials>,
    stop: Arc<AtomicBool>,
}

pub fn audit(arguments: &BiosAuditArgs, path: &Path) -> anyhow::Result<Exit> {
    let bytes = bounded(path, "name a file with an address on each line")?;
    let text =
        String::from_utf8(bytes).with_context(|| format!("cannot read {}: not UTF-8", path.display()))?;
    let services = parse(&text).with_context(|| format!("cannot use --hosts {}", path.display()))?;
    let page = RunFiles::prepare_page(arguments.report.as_deref(), &arguments.language)?;
    let stop = signals::stop_flag()?;
    let connection = &arguments.connection;
    // Before the prompt, because of their warnings.
    let targets: Vec<Named> = services.into_iter().map(|service| service.target(connection)).collect();
    let credentials = connection.credentials("these services").map_err(in_words)?;
    let round = Round { connection, profile: arguments.source.profile, credentials, stop };
    let mut servers = round.all(targets, arguments.parallel);
    // Relaxed: a lone flag.
    if round.stop.load(Ordering::Relaxed) {
        return Err(Interrupted("reading the services; nothing was changed".into()).into());
    }
    if arguments.language.labels.anonymous {
        servers.iter_mut().enumerate().for_each(|(at, server)| leave_out_address(server, at + 1));
    }
    let fleet = BiosFleet::of(round.profile, servers);
    let labels = arguments.language.labels.of_all(std::iter::empty());
    output::print_as(arguments.json, &WithLabels { labels: &labels, result: &fleet }, |width| {
        lowlat_tune_report::bios_fleet_text(&fleet, width)
    })?;
    page.write_page(&labels, || lowlat_tune_report::bios_fleet_html(&fleet))?;
    Ok(exit(&fleet))
}

/// Replaces the address of a server by its number in the file.
fn leave_out_address(server: &mut FleetServer, number: usize) {
    let name = format!("server {number}");
    let host = server.address.rsplit("//").next().unwrap_or_default().to_owned();
    let bare = host.rsplit_once(':').map_or(host.as_str(), |(bare, _)| bare).to_owned();
    for error in server.error.iter_mut().filter(|_| !bare.is_empty()) {
        *error = error.replace(&host, &name).replace(&bare, &name);
    }
    server.address = name;
}

/// The worst answer of all servers; a server that was not read was not judged.
fn exit(fleet: &BiosFleet) -> Exit {
    let audits: Vec<&BiosAudit> = fleet.servers.iter().filter_map(|server| server.audit.as_ref()).collect();
    let of =
        |audit: &&BiosAudit| -> Exit { audit.counts.checked().claim(audit.counts.differences > 0).into() };
    let has = |exit: Exit| audits.iter().any(|audit| of(audit) == exit);
    match () {
        () if audits.is_empty() => Exit::Error,
        () if has(Exit::Findings) => Exit::Findings,
        () if has(Exit::NotJudged) || audits.len() < fleet.servers.len() => Exit::NotJudged,
        () => Exit::Clean,
    }
}

impl NamedService {
    /// Checks everything about the service that can fail on this machine.
    fn target(self, connection: &Connection) -> Named {
        let trust = self.pin.unwrap_or_else(|| connection.trust());
        (connection.target(&self.address, trust, true), self.address)
    }
}

/// A service to connect to, or the reason why it cannot be, and its address.
type Named = (anyhow::Result<ServiceTarget>, String);

impl Round<'_> {
    /// Audits every service, this many at a time. The answers are in the order of the services.
    fn all(&self, targets: Vec<Named>, parallel: u16) -> Vec<FleetServer> {
        let threads = usize::from(parallel).min(targets.len());
        let waiting = Mutex::new(targets.into_iter().enumerate());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let answers = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((at, (target, address))) = next() {
                        let audit = target.and_then(|target| self.read(target));
                        let error = audit.as_ref().err().map(ToString::to_string);
                        let answer = FleetServer { address, audit: audit.ok(), error };
                        answers.lock().unwrap_or_else(PoisonError::into_inner).push((at, answer));
                    }
                });
            }
        });
        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.sort_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn read(&self, target: ServiceTarget) -> anyhow::Result<BiosAudit> {
        let (credentials, stop) = (self.credentials.clone(), Arc::clone(&self.stop));
        let mut open = self.connection.connect(target, credentials, stop)?;
        let saved = open.read()?;
        open.close();
        Ok(BiosAudit::of(&saved.facts()?, self.profile))
    }
}

/// Parses lines of an address and, if its certificate is pinned, `sha256:...`; # starts a comment.
fn parse(text: &str) -> anyhow::Result<Vec<NamedService>> {
    let mut services = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(address) = words.next() else { continue };
        let pin = words.next().map(Trust::fingerprint).transpose();
        let pin = pin.map_err(|why| anyhow::anyhow!("cannot parse line {number}: {why}"))?;
        if let Some(more) = words.next() {
            bail!(
                "cannot parse line {number}: unexpected {more:?}\nhint: write an address, then the fingerprint"
            );
        }
        services.push(NamedService { address: address.to_owned(), pin });
    }
    if services.is_empty() {
        bail!("it names no service\nhint: write one address on each line");
    }
    Ok(services)
}
