//! Topology picture: nested boxes in wrapped rows, smaller on hosts with more CPUs.

use crate::cpu_parts::{CpuPart, CpuParts};
use crate::shape;
use crate::shape::{CpuBlock, Kind};
use crate::terminal::tree::{node_number, speed};
use lowlat_host::{Allocation, CpuId, CpuSet, HostSnapshot};
use lowlat_text::page::svg::{cut, px, text_width};
use lowlat_text::units::{capital, clean, size};
use maud::{Markup, PreEscaped, html};

const WIDTH: f64 = 1_128.0;
/// Highest number of characters shown of a device's name.
const DEVICE_CHARS: usize = 36;
const DEVICE_HEIGHT: f64 = 22.0;
const GAP: f64 = 8.0;

/// Drawing with its size; it starts at 0, 0.
struct Drawn {
    width: f64,
    height: f64,
    frame: Option<Frame>,
    markup: String,
}

struct Frame {
    class: &'static str,
    radius: u8,
    title: String,
    /// True if it grows to the height of its row.
    grows: bool,
}

impl Frame {
    fn draw(&self, width: f64, height: f64) -> String {
        format!(
            "<rect class=\"box box-{}\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"{}\">{}</rect>",
            self.class,
            px(width - 1.0),
            px(height - 1.0),
            self.radius,
            if self.title.is_empty() { String::new() } else { title_of(&self.title) }
        )
    }
}

/// Size at which CPUs are drawn.
#[derive(Clone, Copy)]
struct PictureScale {
    cell: f64,
    has_numbers: bool,
}

impl PictureScale {
    fn for_count(cpus: usize) -> Self {
        let cell = match cpus {
            0..=16 => 48.0,
            17..=32 => 38.0,
            33..=64 => 28.0,
            65..=128 => 22.0,
            129..=256 => 20.0,
            257..=512 => 14.0,
            _ => 10.0,
        };
        Self { cell, has_numbers: cell >= 20.0 }
    }
}

struct Picture<'a> {
    host: &'a HostSnapshot,
    parts: CpuParts<'a>,
    scale: PictureScale,
}

pub fn draw(host: &HostSnapshot, allocation: &Allocation) -> Markup {
    let topology = &host.topology;
    let blocks = shape::tree(topology);
    let cpus = topology.online.len() + topology.offline.len();
    let picture =
        Picture { host, parts: CpuParts::of(host, allocation), scale: PictureScale::for_count(cpus) };
    let mut parts = picture.blocks(&blocks, WIDTH);
    parts.extend(picture.strips(WIDTH));
    let all = flow(parts, WIDTH, GAP * 1.5);
    let height = all.height.max(1.0);
    html! {
        svg class="topology" viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="img" aria-labelledby="picture-title" {
            title id="picture-title" {
                "Topology: packages, NUMA nodes, caches, cores and CPUs with their purpose. The text below the picture shows the same."
            }
            (PreEscaped(all.markup))
        }
    }
}

/// Arranges drawings in rows no wider than `width`.
fn flow(parts: Vec<Drawn>, width: f64, gap: f64) -> Drawn {
    let mut rows: Vec<Vec<Drawn>> = Vec::new();
    let mut x = 0.0_f64;
    for part in parts {
        if rows.is_empty() || x + part.width > width + 0.01 {
            rows.push(Vec::new());
            x = 0.0;
        }
        x += part.width + gap;
        if let Some(row) = rows.last_mut() {
            row.push(part);
        }
    }
    let (mut y, mut widest) = (0.0_f64, 0.0_f64);
    let mut markup = String::new();
    for (at, row) in rows.iter().enumerate() {
        y += if at > 0 { gap } else { 0.0 };
        let height = row.iter().map(|part| part.height).fold(0.0, f64::max);
        let mut x = 0.0;
        for part in row {
            let frame = part.frame.as_ref().map_or_else(String::new, |frame| {
                frame.draw(part.width, if frame.grows { height } else { part.height })
            });
            markup.push_str(&moved(&(frame + &part.markup), x, y));
            widest = widest.max(x + part.width);
            x += part.width + gap;
        }
        y += height;
    }
    Drawn { width: widest, height: y, frame: None, markup }
}

fn moved(markup: &str, x: f64, y: f64) -> String {
    format!("<g transform=\"translate({} {})\">{markup}</g>", px(x), px(y))
}

impl Picture<'_> {
    /// Draws blocks side by side. Packages and nodes are stretched to columns of equal width.
    fn blocks(&self, blocks: &[CpuBlock], width: f64) -> Vec<Drawn> {
        let is_wide = |block: &CpuBlock| block.is(Kind::Package) || block.is(Kind::Node);
        if !blocks.iter().all(is_wide) || blocks.is_empty() {
            return blocks.iter().map(|block| self.block(block, width, None)).collect();
        }
        let half = if blocks.len() > 1 { (width - GAP * 1.5) / 2.0 } else { width };
        let natural = blocks.iter().map(|b| self.block(b, half, None).width).fold(1.0_f64, f64::max);
        let fit = ((width + GAP) / (natural + GAP)).floor().max(1.0);
        let columns = fit.min(blocks.len() as f64);
        // Balance the number of blocks per row.
        let columns = (blocks.len() as f64 / (blocks.len() as f64 / columns).ceil()).ceil();
        let gap = if blocks.iter().any(|block| block.is(Kind::Package)) { GAP * 1.5 } else { GAP };
        let column = (width - gap * (columns - 1.0)) / columns;
        blocks.iter().map(|block| self.block(block, column.max(natural), Some(column.max(natural)))).collect()
    }

    fn block(&self, block: &CpuBlock, width: f64, stretch: Option<f64>) -> Drawn {
        let is_fine = !block.is(Kind::Package) && !block.is(Kind::Node);
        if is_fine && block.children.is_empty() && (block.is(Kind::Core) || block.cpus.len() == 1) {
            return self.core(block);
        }
        let pad = if is_fine { 6.0 } else { GAP * 1.5 };
        let inner = width - pad * 2.0;
        let parts = if block.children.is_empty() && block.is(Kind::Core) {
            vec![self.core(block)]
        } else if block.children.is_empty() {
            block.cpus.iter().map(|cpu| self.cell(cpu)).collect()
        } else {
            self.blocks(&block.children, inner)
        };
        let body = flow(parts, inner, if is_fine { 4.0 } else { GAP });
        let devices = flow(block.nodes().flat_map(|node| self.devices(Some(node))).collect(), inner, 6.0);
        let label = label_of(block);
        let label_height = if label.is_empty() { 0.0 } else { 18.0 };
        let label_width = text_width(&label);
        let content =
            body.width.max(devices.width).max(if is_fine { label_width.min(inner) } else { label_width });
        let outer = stretch.unwrap_or(content + pad * 2.0);
        let mut height = pad + label_height + body.height + pad;
        let mut markup = String::new();
        if !label.is_empty() {
            let fits = ((outer - pad) / 6.0).max(4.0);
            let shown = cut(&label, whole(fits));
            markup.push_str(&text(&shown, pad, pad + 9.0, class_of(block)));
        }
        markup.push_str(&moved(&body.markup, pad, pad + label_height));
        if devices.height > 0.0 {
            markup.push_str(&moved(&devices.markup, pad, height));
            height += devices.height + pad;
        }
        let title = format!("{}: {:#}", block.label(), block.cpus);
        let frame = Frame { class: class_of(block), radius: if is_fine { 4 } else { 8 }, title, grows: true };
        Drawn { width: outer, height, frame: Some(frame), markup }
    }

    /// Draws a core: one CPU, or several side by side in a frame.
    fn core(&self, block: &CpuBlock) -> Drawn {
        let cells: Vec<Drawn> = block.cpus.iter().map(|cpu| self.cell(cpu)).collect();
        if cells.len() <= 1 {
            return flow(cells, f64::INFINITY, 0.0);
        }
        let inside = flow(cells, f64::INFINITY, 1.0);
        let (width, height) = (inside.width + 4.0, inside.height + 4.0);
        let frame = Frame { class: "core", radius: 4, title: String::new(), grows: false };
        Drawn { width, height, frame: Some(frame), markup: moved(&inside.markup, 2.0, 2.0) }
    }

    fn cell(&self, cpu: CpuId) -> Drawn {
        let side = self.scale.cell;
        let part = self.parts.get(cpu);
        let number = if self.scale.has_numbers {
            let class = match side {
                40.0.. => "cpu-n large",
                28.0.. => "cpu-n",
                _ => "cpu-n small",
            };
            format!(
                "<text class=\"{class}\" x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{cpu}</text>",
                px(side / 2.0),
                px(side / 2.0 + if side >= 28.0 { 4.4 } else { 3.2 })
            )
        } else {
            String::new()
        };
        let markup = format!(
            "<g class=\"cpu p-{}\"><rect width=\"{side}\" height=\"{side}\" rx=\"{}\"/>{number}{}</g>",
            part.class(),
            if side >= 20.0 { 4 } else { 2 },
            title_of(&self.place(cpu, part))
        );
        Drawn { width: side, height: side, frame: None, markup }
    }

    /// Returns the place of a CPU: "CPU 9, isolated; node 1, package 1".
    fn place(&self, cpu: CpuId, part: CpuPart) -> String {
        let topology = &self.host.topology;
        let mut text = format!("CPU {cpu}, {}", part.phrase());
        if let Some(node) = topology.node_of(cpu) {
            text.push_str(&format!("; node {}", node.id));
        }
        if let Some(package) = topology.package_of(cpu).filter(|package| package.id >= 0) {
            text.push_str(&format!(", package {}", package.id));
        }
        let siblings = topology.siblings(cpu).difference(&CpuSet::of(cpu));
        if !siblings.is_empty() {
            text.push_str(&format!("; shares its core with {siblings}"));
        }
        text
    }

    /// Draws the NICs and disks of a node, or those of an unknown node.
    fn devices(&self, node: Option<u32>) -> Vec<Drawn> {
        let snapshot = self.host;
        let mut devices = Vec::new();
        for nic in snapshot.nics.iter().filter(|nic| nic.is_physical && node_number(&nic.node) == node) {
            let speed = speed(nic).map_or_else(String::new, |speed| format!(" {speed}"));
            let title = format!("Network interface {}, driver {}, bus {}", nic.name, nic.driver, nic.bus);
            devices.push(device("nic", &format!("{}{speed}", nic.name), &title));
        }
        for disk in snapshot.disks.iter().filter(|disk| node_number(&disk.node) == node) {
            let bytes =
                disk.size_bytes.known().map_or_else(String::new, |bytes| format!(" {}", size(*bytes)));
            let title = format!("Disk {}, model {}, bus {}", disk.name, disk.model, disk.bus);
            devices.push(device("disk", &format!("{}{bytes}", disk.name), &title));
        }
        devices
    }

    /// Draws everything outside packages: memory without CPUs, offline CPUs, devices without a node.
    fn strips(&self, width: f64) -> Vec<Drawn> {
        let topology = &self.host.topology;
        let mut strips = Vec::new();
        for node in shape::memory_only(topology) {
            let memory =
                node.memory_bytes.known().map_or_else(String::new, |bytes| format!(", {}", size(*bytes)));
            let label = format!("Node {}: memory without CPUs{memory}", node.id);
            let third = (width - GAP * 3.0) / 3.0;
            strips.push(strip(&label, self.devices(Some(node.id)), third));
        }
        if !topology.offline.is_empty() {
            let cells = topology.offline.iter().map(|cpu| self.cell(cpu)).collect();
            strips.push(strip("Offline CPUs", cells, width));
        }
        let homeless = self.devices(None);
        if !homeless.is_empty() {
            strips.push(strip("Devices of unknown node", homeless, width));
        }
        strips
    }
}

/// Draws a labelled row as wide as the picture.
fn strip(label: &str, parts: Vec<Drawn>, width: f64) -> Drawn {
    let pad = GAP * 1.5;
    let body = flow(parts, width - pad * 2.0, 6.0);
    let height = pad * 2.0 + 18.0 + body.height;
    let markup = text(label, pad, pad + 9.0, "strip") + &moved(&body.markup, pad, pad + 18.0);
    let frame = Frame { class: "strip", radius: 8, title: String::new(), grows: true };
    Drawn { width, height, frame: Some(frame), markup }
}

fn device(class: &str, label: &str, title: &str) -> Drawn {
    let shown = cut(&clean(label), DEVICE_CHARS);
    let width = text_width(&shown) + 26.0;
    let markup = format!(
        "<g class=\"device {class}\"><rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"4\"/>\
         <rect class=\"mark\" x=\"7\" y=\"7.5\" width=\"7\" height=\"7\" rx=\"{}\"/>{}{}</g>",
        px(width - 1.0),
        px(DEVICE_HEIGHT - 1.0),
        if class == "nic" { "1" } else { "3.5" },
        text(&shown, 19.0, 15.0, "device"),
        title_of(title)
    );
    Drawn { width, height: DEVICE_HEIGHT, frame: None, markup }
}

/// Returns the label of a box, with an initial capital.
fn label_of(block: &CpuBlock) -> String {
    capital(&block.label())
}

fn class_of(block: &CpuBlock) -> &'static str {
    match block.names.first().map(|name| name.kind) {
        Some(Kind::Package) => "package",
        Some(Kind::Node) => "node",
        Some(Kind::Llc) => "llc",
        Some(Kind::Cluster) => "cluster",
        _ => "core",
    }
}

fn text(shown: &str, x: f64, y: f64, class: &str) -> String {
    let escaped = html! { (clean(shown)) }.into_string();
    format!("<text class=\"t-{class}\" x=\"{}\" y=\"{}\">{escaped}</text>", px(x), px(y))
}

fn title_of(title: &str) -> String {
    html! { title { (clean(title)) } }.into_string()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a width in characters, at least 4"
)]
fn whole(value: f64) -> usize {
    value as usize
}
