//! The files in which boot loaders keep the kernel's command line, as text: what they say, and how they read with
//! other parameters. Nothing here opens a file.
//!
//! | file | module |
//! |---|---|
//! | `/etc/default/grub.d/99-zz-lowlat.cfg`, lowlat's own | [`drop_in`] |
//! | `/etc/default/grub` | [`defaults`] |
//! | `/boot/grub/grub.cfg`, which GRUB's generator writes | [`grub_menu`] |
//! | the script of that menu, as GRUB runs it | [`grub`] |
//! | `/boot/grub2/grubenv`, 1,024 bytes of variables | [`grubenv`] |
//! | `/boot/loader/entries/*.conf`, an entry a file | [`entry`] |

pub mod defaults;
pub mod drop_in;
pub mod entry;
pub mod entry_order;
pub mod grub;
pub mod grub_menu;
pub mod grubenv;
mod line;

pub use defaults::DefaultsFault;
pub use grubenv::GrubEnvFault;
pub use line::{TokenFault, check, edited, edited_file, missing, taken_off};

#[cfg(test)]
mod testing {
    use lowlat_settings::change::BootToken;

    pub(super) fn token(name: &str, value: Option<&str>) -> BootToken {
        let value = value.map(str::to_owned);
        BootToken { setting: format!("boot.{name}"), name: name.into(), value, before: None }
    }

    /// A shortened command line of the guide's host.
    pub(super) fn plan() -> Vec<BootToken> {
        vec![
            token("isolcpus", Some("managed_irq,domain,1-7,9-15")),
            token("nohz_full", Some("1-7,9-15")),
            token("nohz", None),
            token("rcu_nocb_poll", Some("")),
        ]
    }
}
