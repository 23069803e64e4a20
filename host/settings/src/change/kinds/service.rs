//! Run state and enablement of a systemd unit: "active, enabled".

use crate::change::{
    Kind, KindFacts, Mechanism,
    grammar::{UNIT, UNIT_STATE},
};
use lowlat_host::{HostSnapshot, Reading};

pub(super) struct Service<'a> {
    pub(super) unit: &'a str,
}

impl Kind for Service<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let unit = self.unit;
        KindFacts {
            how_to_find: format!(
                "to find the cause: `journalctl -u {unit}` and `systemctl list-dependencies --reverse {unit}`"
            ),
            ..KindFacts::of(unit, Mechanism::Unit { name: unit }, &[(&UNIT, unit)], &UNIT_STATE)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let unit = host.services.units.get(self.unit);
        unit.map_or(Reading::Absent, |unit| {
            unit.active.clone().map(|active| match unit.enablement.text() {
                "" => active,
                enablement => format!("{active}, {enablement}"),
            })
        })
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let Some(unit) = host.services.units.get_mut(self.unit) else { return };
        let (active, enablement) = value.split_once(", ").unwrap_or((value, ""));
        unit.active = Reading::Known(active.to_owned());
        if !enablement.is_empty() {
            unit.enablement = Reading::Known(enablement.to_owned());
        }
    }

    /// Compares the run state only: a stopped unit may be enabled again.
    fn revert(&self, host: &mut HostSnapshot, before: &str, after: &str) {
        let unit = host.services.units.get(self.unit);
        if unit.is_some_and(|unit| after.starts_with(unit.active.text())) {
            self.put(host, before);
        }
    }
}
