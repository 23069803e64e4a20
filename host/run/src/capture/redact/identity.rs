//! Files whose whole content identifies one machine, disk, port or boot.

/// Files with the host's names.
pub(super) const HOST_NAMES: &[&str] =
    &["/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/etc/hostname"];

/// Names of attributes in /sys and /proc/device-tree.
const ATTRIBUTES: &[&str] = &[
    // The machine (DMI, device tree, processors).
    "product_serial",
    "product_uuid",
    "board_serial",
    "board_asset_tag",
    "chassis_serial",
    "chassis_asset_tag",
    "serial-number",
    "system-id",
    "ppin",
    // Disks.
    "serial",
    "wwid",
    "wwn",
    "uuid",
    "nguid",
    "eui",
    "unique_id",
    "vpd",
    "vpd_pg80",
    "vpd_pg83",
    "vpd_pg89",
    "subsysnqn",
    "hostnqn",
    "hostid",
    // Cards and ports.
    "serial_number",
    "phys_port_id",
    "phys_switch_id",
    "node_guid",
    "sys_image_guid",
    "ifalias",
    // Sessions of network disks.
    "targetname",
    "initiatorname",
    "username",
    "username_in",
    "password",
    "password_in",
    "persistent_address",
];

/// True if the whole file must be blanked.
pub(super) fn is_identity(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_attribute = path.starts_with("/sys/") || path.starts_with("/proc/device-tree/");
    HOST_NAMES.contains(&path)
        || matches!(name, "machine-id" | "boot_id" | "machine-info" | "core_pattern" | "poweroff_cmd")
        || (is_attribute && ATTRIBUTES.contains(&name))
}
