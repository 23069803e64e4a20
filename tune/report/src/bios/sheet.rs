//! BIOS settings to set by hand, as text and as a page to print.

use lowlat_bios::{BiosSheet, SheetRow};
use lowlat_host::Profile;
use lowlat_text::page::{Section, data_table, page, section};
use lowlat_text::text::{BOLD, DIM, YELLOW, add_numbered, add_painted, add_wrapped, paint, usable, wrap};
use lowlat_text::units::{clean, plural};
use maud::{Markup, html};

const STYLE: &str = include_str!("sheet.css");

/// Mark of a setting with a note.
const MARK: &str = "(!)";

/// Returns the steps for using the sheet, in order.
fn steps(sheet: &BiosSheet) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    match &sheet.order {
        Some(order) => steps.extend(order.iter().cloned()),
        None => steps.extend([
            "Write down every present value first. A change of the workload profile rewrites other settings, and \
             going back to the old profile does not restore them."
                .to_owned(),
            "Choose workload profile Low Latency, then Custom. No restart is needed between the two.".to_owned(),
        ]),
    }
    if sheet.profile == Profile::Guide57037 {
        steps.push(
            "You may stop after Low Latency: restart, tune the operating system and measure with `lowlat jitter`. \
             Continue with Custom only if that is not quiet enough (guide 57037, section 3.2.1)."
                .to_owned(),
        );
    }
    steps.push(
        "Set each value below, from top to bottom. Decide on those marked (!) with the notes at the end."
            .to_owned(),
    );
    steps.push(format!("Save with {}.", sheet.saves_with));
    if sheet.order.is_none() {
        steps.push("Restart, and check that the start-up screen shows Workload Profile: Custom.".to_owned());
    }
    steps.push(
        "Run `lowlat audit`: its firmware rows show what the operating system sees of these settings."
            .to_owned(),
    );
    steps
}

/// Blanks for the person who sets the values.
const SIGNED: [&str; 5] = ["Host", "Serial number", "Date", "Name", "Signature"];

/// Formats the sheet as "setting = value", menu by menu; then the notes on marked settings.
pub fn bios_sheet_text(sheet: &BiosSheet, server: &str, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_painted(&mut out, BOLD, &clean(&title(sheet, server)), 0, width);
    if let Some(caution) = &sheet.caution {
        add_painted(&mut out, YELLOW, &clean(caution), 0, width);
    }
    out.push('\n');
    add_numbered(&mut out, &steps(sheet), width);
    for menu in &sheet.menus {
        out.push_str(&format!("\n{}\n", paint(BOLD, &clean(&menu.title))));
        for row in &menu.rows {
            add_row(&mut out, row, row.caution().is_some(), width);
        }
    }
    let marked = marked(sheet);
    if !marked.is_empty() {
        out.push_str(&format!("\n{}\n", paint(BOLD, "Notes on settings marked (!)")));
        for (row, caution) in &marked {
            add_row(&mut out, row, false, width);
            add_wrapped(&mut out, caution, 6, width);
        }
    }
    out.push('\n');
    add_painted(&mut out, DIM, &closing(sheet), 0, width);
    out.push('\n');
    for blank in SIGNED {
        out.push_str(&format!("{blank:14} ______________________________\n"));
    }
    out
}

/// Adds "setting = value", the further lines of a long one indented.
fn add_row(out: &mut String, row: &SheetRow, is_marked: bool, width: usize) {
    let mark = if is_marked { format!(" {MARK}") } else { String::new() };
    let present = row.present.as_ref().filter(|present| !row.values.contains(present));
    let present = present.map(|present| format!(", now {present}")).unwrap_or_default();
    let text = clean(&format!("{} = {}{present}{mark}", row.name, row.value()));
    for (at, line) in wrap(&text, width.saturating_sub(4)).iter().enumerate() {
        let indent = if at == 0 { "  " } else { "    " };
        let line = match line.strip_suffix(MARK).filter(|_| is_marked) {
            Some(start) => format!("{start}{}", paint(YELLOW, MARK)),
            None => line.clone(),
        };
        out.push_str(&format!("{indent}{line}\n"));
    }
}

/// Builds the page, with room for the present values and a box to tick.
pub fn bios_sheet_html(sheet: &BiosSheet, server: &str) -> String {
    let lead = match &sheet.order {
        None => {
            html! { "Menu names are those of HPE's BIOS/Platform Configuration (RBSU) for EPYC servers." }
        }
        Some(_) => {
            html! { "Names and values are those of the server, as far as its attribute registry has them." }
        }
    };
    let body = html! {
        @if let Some(caution) = &sheet.caution { ul class="warnings" { li { (clean(caution)) } } }
        table class="sheet signed" { tbody { @for blank in SIGNED { tr { th scope="row" { (blank) } td class="blank" {} } } } }
        ol class="steps" { @for step in steps(sheet) { li { (code_in(&clean(&step))) } } }
        @for menu in &sheet.menus {
            div class="card flush menu" {
                div class="table-head" { h3 translate="no" { (clean(&menu.title)) } }
                (data_table("", "sheet", &["Setting", "Set to", "Was", "Done"], &html! { @for row in &menu.rows { (table_row(row)) } }))
            }
        }
        @let marked = marked(sheet);
        @if !marked.is_empty() {
            div class="card" {
                h3 { "Notes on settings marked " (MARK) }
                dl class="cautions" {
                    @for (row, caution) in &marked {
                        dt translate=[as_printed(row)] { (clean(&row.name)) " = " (clean(&row.value())) }
                        dd { (caution) }
                    }
                }
            }
        }
        p class="note" { (closing(sheet)) }
    };
    // Apart from the title, so that no full stop of a maker's name ends a sentence of it.
    let lead = html! { @if !server.is_empty() { bdi translate="no" { (clean(server)) } br; } (lead) };
    let title = title(sheet, "");
    let sections =
        [Section::new("sheet", "Settings", section("sheet", &title, &lead, &body)).with_style(STYLE)];
    page("BIOS settings", &sections, &html! { footer { p { "Written by lowlat bios sheet." } } })
}

fn table_row(row: &SheetRow) -> Markup {
    html! {
        tr {
            th scope="row" translate=[as_printed(row)] { (clean(&row.name)) @if row.caution().is_some() { " " b class="mark" { (MARK) } } }
            td { (values(row)) }
            td class="blank" translate=[as_printed(row)] { @if let Some(present) = &row.present { (clean(present)) } }
            td class="tick" { span {} }
        }
    }
}

/// Names and values of a server's own setup are those of its firmware in every language.
fn as_printed(row: &SheetRow) -> Option<&'static str> {
    row.present.is_some().then_some("no")
}

fn values(row: &SheetRow) -> Markup {
    if as_printed(row).is_none() {
        return html! { (clean(&row.value())) };
    }
    html! { @for (at, value) in row.values.iter().enumerate() { @if at > 0 { " or " } bdi translate="no" { (clean(value)) } } }
}

fn title(sheet: &BiosSheet, server: &str) -> String {
    let of = if server.is_empty() { String::new() } else { format!(" for {server}") };
    format!("BIOS settings of profile {}{of}", sheet.profile)
}

fn marked(sheet: &BiosSheet) -> Vec<(&SheetRow, String)> {
    sheet.rows().filter_map(|row| Some((row, row.caution()?))).collect()
}

fn closing(sheet: &BiosSheet) -> String {
    let rows = plural(sheet.rows().count(), "setting");
    if sheet.left_open.is_empty() {
        return format!("{rows}.");
    }
    format!("{rows}. The profile leaves as they are: {}.", sheet.left_open.join(", "))
}

/// Sets words in backticks as code.
fn code_in(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guides_sheet_reads_from_top_to_bottom() {
        let sheet = BiosSheet::of(Profile::Guide57037, None);
        insta::assert_snapshot!(
            anstream::adapter::strip_str(&bios_sheet_text(&sheet, "HPE ProLiant", 80)).to_string()
        );
    }

    #[test]
    fn a_caution_leads_the_sheet_and_long_values_are_wrapped() {
        let sheet = BiosSheet::of_host(Profile::Trading, &lowlat_host::HostSnapshot::default());
        let text = anstream::adapter::strip_str(&bios_sheet_text(&sheet, "", 80)).to_string();
        assert!(
            text.lines().nth(1).is_some_and(|line| line.starts_with("The hardware of this host")),
            "{text}"
        );
        assert!(text.contains("Thermal Configuration = Increased Cooling or"), "{text}");
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        let page = bios_sheet_html(&sheet, "");
        assert!(page.contains("<ul class=\"warnings\"><li>The hardware of this host"));
    }

    #[test]
    fn the_page_has_a_row_for_every_setting_and_room_to_write() {
        let sheet = BiosSheet::of(Profile::Trading, None);
        let page = bios_sheet_html(&sheet, "a <server>");
        assert_eq!(page.matches("<td class=\"blank\">").count(), sheet.rows().count() + SIGNED.len());
        assert!(page.contains("a &lt;server&gt;"));
        assert!(!page.contains("section 3.2.1"), "the guide's own advice");
    }
}
