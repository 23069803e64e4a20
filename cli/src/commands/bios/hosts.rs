//! `lowlat bios audit --hosts`: many servers, several at a time.

use super::{
    BiosAuditArgs,
    connection::{Connection, in_words},
    source::bounded,
};
use crate::{
    exit::{Exit, Interrupted},
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
        atomic::{AtomicBool, AtomicUsize, Ordering},
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
    let stop = signals::stop_flag()?;
    let connection = &arguments.connection;
    let credentials = connection.credentials("these services").map_err(in_words)?;
    let round = Round { connection, profile: arguments.source.profile, credentials, stop };
    let servers = round.all(&services, arguments.parallel);
    // Relaxed: a lone flag.
    if round.stop.load(Ordering::Relaxed) {
        return Err(Interrupted("reading the services; nothing was changed".into()).into());
    }
    let fleet = BiosFleet::of(round.profile, servers);
    output::print_as(arguments.json, &fleet, |width| lowlat_tune_report::bios_fleet_text(&fleet, width))?;
    Ok(exit(&fleet))
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

impl Round<'_> {
    /// Audits every service, this many at a time. The answers are in the order of the services.
    fn all(&self, services: &[NamedService], parallel: u16) -> Vec<FleetServer> {
        let next = AtomicUsize::new(0);
        let answers = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..usize::from(parallel).min(services.len()) {
                scope.spawn(|| {
                    loop {
                        // Relaxed: each number is taken once, and the answers arrive through their lock.
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(service) = services.get(at) else { break };
                        let answer = self.one(service);
                        answers.lock().unwrap_or_else(PoisonError::into_inner).push((at, answer));
                    }
                });
            }
        });
        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.sort_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn one(&self, service: &NamedService) -> FleetServer {
        let address = service.address.clone();
        match self.read(service) {
            Ok(audit) => FleetServer { address, audit: Some(audit), error: None },
            Err(error) => FleetServer { address, audit: None, error: Some(error.to_string()) },
        }
    }

    fn read(&self, service: &NamedService) -> anyhow::Result<BiosAudit> {
        let trust = service.pin.clone().unwrap_or_else(|| self.connection.trust());
        let (credentials, stop) = (self.credentials.clone(), Arc::clone(&self.stop));
        let target = self.connection.target(&service.address, trust, true)?;
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
