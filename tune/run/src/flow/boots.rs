//! Proves the parameters of the command line of the plan in force, by booting without each of them in turn.
//!
//! The next boot is prepared only after the present one is recorded, so the proof goes on after a reboot at any moment,
//! with at most one boot more. Everything is written through the undo log: a rollback of the plan ends the proof.

use super::apply::file_steps;
use super::prove::Switchboard;
use super::rollback::{is_of_boot, restore_boot};
use super::stage::{ApplyStage, plan_of};
use super::{FlowError, Site, at_boot, persist};
use crate::units::{self, Unit};
use lowlat_host::cmdline::CommandLine;
use lowlat_plan::{
    Plan,
    outcome::RebootStatus,
    proof::{BootProof, OffInBoot},
};
use lowlat_undo::OnFailure;

/// The stage of the undo log for the unit of a proof.
const STAGE: &str = "prove";

/// The boots of the plan in force.
#[derive(Debug)]
pub struct BootBoard<'a>(Switchboard<'a>);

impl<'a> BootBoard<'a> {
    /// # Errors
    /// No complete plan of this host is in force.
    pub fn open(site: &'a Site) -> Result<Self, FlowError> {
        Ok(Self(Switchboard::open(site)?))
    }

    pub fn plan(&self) -> &Plan {
        self.0.plan()
    }

    fn site(&self) -> &'a Site {
        self.0.site
    }

    /// The proof under way, if any. A record without the unit was left by a start or an end that was cut.
    ///
    /// # Errors
    /// Its record cannot be read.
    pub fn proof(&self) -> Result<Option<BootProof>, FlowError> {
        let link = units::link_path(units::PROVE, units::AT_BOOT);
        if self.site().real(&link).symlink_metadata().is_err() {
            return Ok(None);
        }
        Ok(self.site().state.boot_proof()?.filter(|boots| boots.proof.plan_id == self.0.plan_id))
    }

    /// # Errors
    /// Boots without parameters of the plan would not run by themselves, or would not differ from it in these parameters
    /// alone.
    pub fn check(&self) -> Result<(), FlowError> {
        let Some((now, _)) = self.site().state.in_force()? else {
            return Err(FlowError::obstacle("no plan is in force"));
        };
        if now.confirm_within_s.is_some() {
            return Err(FlowError::obstacle(
                "the plan waits for `lowlat tune confirm`, and would be rolled back meanwhile",
            ));
        }
        if self.site().manager.is_none()
            || self.site().real(&units::path(units::APPLY)).symlink_metadata().is_err()
        {
            return Err(FlowError::obstacle(format!(
                "{} does not keep the plan in force after a reboot",
                units::APPLY
            )));
        }
        match at_boot::reboot(self.site(), self.plan(), true, &now.refused) {
            RebootStatus::Done => Ok(()),
            RebootStatus::NotNeeded => {
                Err(FlowError::obstacle("the plan has no parameters of the command line"))
            }
            RebootStatus::Pending => {
                Err(FlowError::obstacle("the command line of the plan takes effect at a reboot first"))
            }
            _ => Err(FlowError::obstacle(
                "the command line of the plan is not in effect; see `lowlat tune verify`",
            )),
        }
    }

    /// Writes the record, and the unit that continues the proof by running `command` in `directory`, and prepares the
    /// first boot.
    ///
    /// # Errors
    /// One of them cannot be written; what was is taken back.
    pub fn start(&self, boots: &mut BootProof, command: &[String], directory: &str) -> Result<(), FlowError> {
        let lowlat = persist::lowlat(self.site()).map_err(FlowError::obstacle)?;
        let words: Vec<String> = [lowlat].into_iter().chain(command.iter().cloned()).collect();
        self.prepare(boots)?;
        let started =
            self.add_unit(&units::prove(&words, directory)).and_then(|()| self.write_line(boots.next()));
        if let Err(error) = started {
            self.close()?;
            return Err(error);
        }
        Ok(())
    }

    /// Measures this boot if it is the one that was prepared, and prepares the next one or ends the proof. True if the
    /// proof is over; none if the measurement was interrupted and nothing was recorded.
    ///
    /// # Errors
    /// The record or the next boot cannot be written.
    pub fn go_on(
        &self,
        boots: &mut BootProof,
        measure: &mut dyn FnMut() -> Result<Option<Vec<f64>>, String>,
    ) -> Result<Option<bool>, FlowError> {
        if boots.ended_by.is_none() && boots.prepared_in != *self.site().boot_id().text() {
            if self.is_booted_with(boots, boots.next()) {
                match measure() {
                    Ok(Some(figures)) => boots.record(figures),
                    Ok(None) => return Ok(None),
                    Err(why) => boots.fail(&why),
                }
                // A rollback meanwhile has ended the proof.
                if self.proof()?.is_none() {
                    return Ok(None);
                }
            } else {
                boots.fail("the command line is not the one that was written");
            }
            boots.watch_time(Site::now_unix_ms());
        }
        self.prepare(boots)?;
        if boots.ended_by.is_none() {
            self.write_line(boots.next())?;
        }
        Ok(Some(boots.ended_by.is_some()))
    }

    /// Records a change of the proof.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn keep(&self, boots: &BootProof) -> Result<(), FlowError> {
        Ok(self.site().state.put_boot_proof(Some(boots))?)
    }

    /// Writes the whole command line again. True if this boot has it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn restore(&self, boots: &BootProof) -> Result<bool, FlowError> {
        self.write_line(None)?;
        Ok(self.is_booted_with(boots, None))
    }

    /// Removes the unit and the record.
    ///
    /// # Errors
    /// One of them cannot be removed.
    pub fn close(&self) -> Result<(), FlowError> {
        let mut log = self.0.log()?;
        let stage = self.stage();
        let report = log.rollback_where(|entry| entry.plan == stage);
        self.site().seal(&log)?;
        drop(log);
        let notes = self.tell_manager();
        self.site().state.put_boot_proof(None)?;
        if report.left.is_empty() && notes.is_empty() {
            return Ok(());
        }
        Err(FlowError::Refused(format!("cannot remove {}: {report}{}", units::PROVE, notes.concat())))
    }

    fn stage(&self) -> String {
        format!("{}/{STAGE}", self.0.plan_id)
    }

    /// Notifies the service manager of the unit. Returns its errors.
    fn tell_manager(&self) -> Vec<String> {
        let path = units::path(units::PROVE);
        persist::tell_manager(self.site(), [path.as_str()].into_iter())
    }

    /// Records which boot comes next.
    fn prepare(&self, boots: &mut BootProof) -> Result<(), FlowError> {
        self.site().boot_id().text().clone_into(&mut boots.prepared_in);
        self.keep(boots)
    }

    fn is_booted_with(&self, boots: &BootProof, off: OffInBoot) -> bool {
        let line = self.site().root.read("/proc/cmdline");
        line.is_known() && boots.is_line_of(self.plan(), &CommandLine::parse(line.text()), off)
    }

    fn add_unit(&self, unit: &Unit) -> Result<(), FlowError> {
        let mut log = self.0.log()?;
        let steps = persist::steps(&log, std::slice::from_ref(unit), None)?;
        log.apply(&self.stage(), &steps, OnFailure::RollBack)?;
        self.site().seal(&log)?;
        drop(log);
        let notes = self.tell_manager();
        if notes.is_empty() { Ok(()) } else { Err(FlowError::Refused(notes.join("\n"))) }
    }

    /// Writes the command line of a boot into the boot loader's configuration.
    fn write_line(&self, off: OffInBoot) -> Result<(), FlowError> {
        let site = self.site();
        let mut log = self.0.log()?;
        // Read under the log's lock: a rollback may have held it.
        let Some(boots) = self.proof()? else {
            return Err(FlowError::obstacle("no proof over reboots is under way"));
        };
        let tokens = boots.tokens_on(self.plan(), off);
        log.close_where(|id, _| plan_of(id) == self.0.plan_id && is_of_boot(id))?;
        let written = restore_boot(site, &mut log, &self.0.plan_id).and_then(|()| {
            let loader = (site.detect)(&site.root)?;
            let sources = file_steps(&log, &loader.sources(&site.root, &tokens)?)?;
            log.apply(&ApplyStage::Boot.id(&self.0.plan_id, 0), &sources, OnFailure::RollBack)?;
            let Some(programs) = &site.programs else { return Ok(()) };
            let generated = file_steps(&log, &loader.generated(&site.root, programs.as_ref())?)?;
            log.apply(&ApplyStage::Loader.id(&self.0.plan_id, 0), &generated, OnFailure::RollBack)?;
            Ok(())
        });
        let sealed = site.seal(&log);
        written?;
        Ok(sealed?)
    }
}
