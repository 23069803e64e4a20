//! A search for a waiting mode as text.

use super::compare::control_range;
use crate::{
    chart::{ChartColumn, chart},
    html::STYLE,
};
use lowlat_host::statistics::MedianInterval;
use lowlat_net::{
    choose::{ChoiceRecord, ChoiceStudy, ModeStudy, NetChoiceMeasurement},
    pingpong::CONTROL_RATIO_MAX,
};
use lowlat_text::{
    columns::{self, Column, NONE, Table},
    page::{Section, columns_table, micro, note, section, tile},
    text::{BOLD, DIM, YELLOW, add_detail, add_result, add_sentences, add_wrapped, paint, usable},
    units::{clean, count, duration_fine, plural, rate, span},
    view::{View, ViewPage, verdict},
};
use maud::html;

/// Formats a search: the choice, the table of modes, the commands, what was left out, the doubts.
pub fn net_choice_text(record: &ChoiceRecord, width: usize) -> String {
    let width = usable(width);
    let study = ChoiceStudy::of(record);
    let mut out = String::new();
    add_result(&mut out, &headline(record, &study), width);
    add_detail(&mut out, &set_up(record), width);
    out.push_str(&columns::table(table(record, &study), width));
    for (label, command) in commands(record, &study) {
        out.push_str(&format!("  {}\n", paint(DIM, label)));
        add_wrapped(&mut out, &clean(&command), 4, width);
    }
    add_sentences(&mut out, (BOLD, "Not available"), &left_out(record), width);
    add_sentences(&mut out, (YELLOW, "Caveats"), &doubts(record, &study), width);
    out
}

/// "block, no idle states is the cheapest mode that meets p99 20 us and CPU 50 %: ...".
pub(super) fn headline(record: &ChoiceRecord, study: &ChoiceStudy) -> String {
    let goal = goal(record);
    let chosen = study.choice.and_then(|choice| Some((choice, study.modes.get(choice.place)?)));
    let Some((choice, of)) = chosen else { return "No mode was measured".to_owned() };
    let figures = format!("p99 {}, CPU {}", time(of.p99_ns), percent(of.cpu_share.map(|of| of.median)));
    if choice.meets {
        let note = if study.is_unsafe { "; the choice is unreliable" } else { "" };
        return format!("{} is the cheapest mode that meets {goal}: {figures}{note}", choice.mode);
    }
    format!("No mode meets {goal}; {} comes closest: {figures}, {}", choice.mode, by_how_much(record, of))
}

/// Returns "p99 30 % above the goal".
fn by_how_much(record: &ChoiceRecord, of: &ModeStudy) -> String {
    let over = |value: Option<f64>, goal: f64| value.map_or(0.0, |value| value / goal - 1.0);
    let p99 = over(of.p99_ns.map(|of| of.median), record.goal.p99_ns as f64);
    let cpu = over(of.cpu_share.map(|of| of.median), record.goal.cpu_share);
    let missed: Vec<String> = [("p99", p99), ("CPU", cpu)]
        .into_iter()
        .filter(|(_, over)| *over > 0.0)
        .map(|(what, over)| match over {
            over if over >= 1.0 => format!("{what} {} times the goal", rate(over + 1.0)),
            over => format!("{what} {} above the goal", percent(Some(over))),
        })
        .collect();
    if missed.is_empty() {
        "within the goal by median, not by its whole interval".to_owned()
    } else {
        missed.join(", ")
    }
}

fn goal(record: &ChoiceRecord) -> String {
    format!("p99 {} and CPU {}", span(record.goal.p99_ns), percent(Some(record.goal.cpu_share)))
}

/// Describes the scenario that every mode measured.
pub(super) fn set_up(record: &ChoiceRecord) -> String {
    let scenario = &record.scenario;
    let size = scenario.sizes.first().copied().map(super::pingpong::bytes).unwrap_or_default();
    let cpu = |cpu: Option<u32>| cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let rounds = record.modes.iter().map(|mode| mode.rounds.len()).max().unwrap_or(0);
    let pace = scenario.rate_per_s.map_or_else(
        || "each message after the previous answer".to_owned(),
        |per_s| format!("{} messages/s", rate(per_s)),
    );
    let control = match (control_range(record.controls()), &record.control_missing) {
        (Some(range), _) => format!(" Control: {range}."),
        (None, why) => why.iter().map(|why| format!(" {why}")).collect(),
    };
    format!(
        "{} to {}, {size}, {pace}, busy polling for {} us; client on {}, server on {}; {} in turn, half round trips.{control}",
        scenario.transport,
        record.server_name,
        scenario.busy_poll_us,
        cpu(record.client.cpu),
        cpu(record.server.cpu),
        plural(rounds, "round"),
    )
}

fn table(record: &ChoiceRecord, study: &ChoiceStudy) -> Vec<Column> {
    let measured: Vec<(usize, &ModeStudy)> = measured(study).collect();
    let place = study.choice.map(|choice| choice.place);
    let round_trips = |of: &ModeStudy| {
        let rounds = record.modes.iter().find(|mode| mode.mode == of.mode).map(|mode| &mode.rounds);
        count(rounds.into_iter().flatten().map(|round| round.count).sum())
    };
    Table::of(&measured)
        .words("  mode", 0, |(at, of)| {
            let mark = if Some(*at) == place { "> " } else { "  " };
            format!("{mark}{}", of.mode)
        })
        .figures("p50", 0, |(_, of)| time(of.p50_ns))
        .figures("p99", 0, |(_, of)| time(of.p99_ns))
        .strong()
        .words("95 % interval", 1, |(_, of)| interval(of.p99_ns))
        .figures("client", 0, |(_, of)| percent(of.client_share))
        .figures("server", 0, |(_, of)| percent(of.server_share))
        .words("meets the goal", 0, |(_, of)| meets(of))
        .figures("round trips", 3, |(_, of)| round_trips(of))
        .into_columns()
}

/// "yes", "no: p99", "no: p99, CPU".
pub(super) fn meets(of: &ModeStudy) -> String {
    let missed: Vec<&str> = [("p99", of.meets_p99), ("CPU", of.meets_cpu)]
        .into_iter()
        .filter(|(_, meets)| *meets != Some(true))
        .map(|(what, _)| what)
        .collect();
    if missed.is_empty() { "yes".to_owned() } else { format!("no: {}", missed.join(", ")) }
}

pub(super) fn time(of: Option<MedianInterval>) -> String {
    of.map_or_else(|| NONE.to_owned(), |of| duration_fine(of.median))
}

pub(super) fn interval(of: Option<MedianInterval>) -> String {
    let Some(of) = of else { return NONE.to_owned() };
    format!("{} to {}", duration_fine(of.low), duration_fine(of.high))
}

pub(super) fn percent(share: Option<f64>) -> String {
    let Some(share) = share else { return NONE.to_owned() };
    format!("{:.*} %", usize::from(share < 0.0995), share * 100.0)
}

/// The commands that use the chosen mode.
pub(super) fn commands(record: &ChoiceRecord, study: &ChoiceStudy) -> Vec<(&'static str, String)> {
    let Some(choice) = study.choice else { return Vec::new() };
    let scenario = &record.scenario;
    let size = scenario.sizes.first().copied().unwrap_or_default();
    let pace = scenario.rate_per_s.map(|rate| format!(" --rate {rate}")).unwrap_or_default();
    let polls = if choice.mode.waiting.polls_queue() {
        format!(" --busy-poll {}us", scenario.busy_poll_us)
    } else {
        String::new()
    };
    vec![
        (
            "Measure it alone",
            format!(
                "lowlat net pingpong client {} {} --sizes {size}{pace} {}{polls}",
                scenario.transport,
                record.server_name,
                choice.mode.client_arguments()
            ),
        ),
        ("Run an application in this mode", format!("lowlat run {} -- CMD", choice.mode.run_arguments())),
    ]
}

/// The modes that were not measured, with the reason.
pub(super) fn left_out(record: &ChoiceRecord) -> Vec<String> {
    let reason = |mode: &lowlat_net::choose::ModeRecord| {
        mode.unavailable.as_ref().map(|why| format!("{}: {why}", mode.mode))
    };
    record.modes.iter().filter_map(reason).collect()
}

/// Everything that makes the choice doubtful, one sentence each.
pub(super) fn doubts(record: &ChoiceRecord, study: &ChoiceStudy) -> Vec<String> {
    let mut doubts: Vec<String> = record.unsound.iter().map(ToString::to_string).collect();
    let rounds =
        |places: &[u32]| places.iter().map(|place| (place + 1).to_string()).collect::<Vec<_>>().join(", ");
    if !record.unsteady.is_empty() {
        doubts.push(format!(
            "The choice is unreliable: the control changed, even when repeated, in rounds: {}.",
            rounds(&record.unsteady)
        ));
    } else if let Some(ratio) = study.control_ratio.filter(|_| study.is_unsafe) {
        doubts.push(format!(
            "The choice is unreliable: the control changed by a factor of {ratio:.1} (at most {CONTROL_RATIO_MAX}) between rounds."
        ));
    }
    if !record.repeated.is_empty() {
        doubts.push(format!("Rounds repeated because the control changed: {}.", rounds(&record.repeated)));
    }
    for mode in &record.modes {
        let lost: u64 = mode.rounds.iter().map(|round| round.lost_count).sum();
        if lost > 0 {
            let (mode, lost) = (mode.mode, count(lost));
            doubts.push(format!("In mode {mode}, {lost} messages were lost; they are in no figure."));
        }
    }
    let strays: u64 = record.modes.iter().flat_map(|mode| &mode.rounds).map(|round| round.stray_count).sum();
    if strays > 0 {
        doubts.push(format!("{} messages came late or again; they are in no figure.", count(strays)));
    }
    let has_no_server = |of: &ModeStudy| of.p99_ns.is_some() && of.server_share.is_none();
    if study.modes.iter().any(has_no_server) {
        doubts.push("The server does not report its CPU time; run this version of lowlat there.".to_owned());
    }
    doubts.extend(record.warnings.iter().cloned());
    doubts
}

/// Returns the view of the choice of a waiting mode.
pub fn view(record: &ChoiceRecord) -> View<'_> {
    let study = ChoiceStudy::of(record);
    View {
        kind: NetChoiceMeasurement::KIND,
        sentence: Some(format!("{}.", headline(record, &study))),
        doubts: doubts(record, &study),
        add_summary: Box::new(|out, width| out.push_str(&net_choice_text(record, width))),
        page: Box::new(move || {
            let chosen = study.choice.and_then(|choice| study.modes.get(choice.place));
            let tiles = html! {
                @if let Some(of) = chosen {
                    (tile("Mode", &of.mode.to_string(), &meets(of)))
                    (tile("p99", &micro(&time(of.p99_ns)), &micro(&interval(of.p99_ns))))
                    (tile("CPU of the server", &percent(of.server_share), &format!("client {}", percent(of.client_share))))
                }
            };
            ViewPage {
                title: "Choice of a waiting mode",
                verdict: verdict(&headline(record, &study), false, &[set_up(record)], &tiles),
                tiles,
                sections: vec![body(record)],
                parameters: None,
            }
        }),
    }
}

fn body(record: &ChoiceRecord) -> Section {
    let study = ChoiceStudy::of(record);
    let lead = html! {
        "Every mode in turn. A mode meets the goal if the whole 95 % intervals of its p99 and of its share of a CPU do."
    };
    let body = html! {
        (note("Caveats", &doubts(record, &study)))
        figure tabindex="0" class="card" {
            figcaption { h3 { "By mode" } p { "Dot: median. Bar: interval of p99. Line: the goal of " (micro(&span(record.goal.p99_ns))) "." } }
            (chart(&marks(&study), Some(record.goal.p99_ns as f64), "p50 and p99 by mode; the figures are in the table below"))
        }
        (columns_table("Waiting modes", &table(record, &study)))
        div class="card" {
            @for (label, command) in commands(record, &study) { p { (label) ": " code { (clean(&command)) } } }
        }
        @let left_out = left_out(record);
        @if !left_out.is_empty() {
            div class="note" {
                p { b { "Not available" } }
                ul class="sentences" { @for line in &left_out { li { (clean(line)) } } }
            }
        }
    };
    Section::new("choose", "Waiting modes", section("choose", "Waiting modes", &lead, &body))
        .with_style(STYLE)
}

fn measured(study: &ChoiceStudy) -> impl Iterator<Item = (usize, &ModeStudy)> {
    study.modes.iter().enumerate().filter(|(_, of)| of.p50_ns.is_some() || of.p99_ns.is_some())
}

fn marks(study: &ChoiceStudy) -> Vec<ChartColumn> {
    let mark = |(_, of): (usize, &ModeStudy)| ChartColumn {
        label: of.mode.to_string(),
        title: format!("{}: p50 {}, p99 {}", of.mode, micro(&time(of.p50_ns)), micro(&interval(of.p99_ns))),
        dots: of.p50_ns.map(|of| of.median).into_iter().collect(),
        bar: of.p99_ns.map(|of| (of.low, of.high)),
        whole: None,
    };
    measured(study).map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_net::{
        choose::{Goal, Mode, ModeRecord, ModeRound},
        pingpong::{ControlRow, CpuUse, EndFacts, Scenario, Transport},
    };

    fn record(goal: Goal) -> ChoiceRecord {
        let figures = [(40_000, 10), (9_000, 10), (5_000, 99), (5_100, 99), (0, 0), (4_000, 100)];
        let mode = |(mode, (p99, percent)): (Mode, (u64, u64))| {
            let cpu = |percent: u64| Some(CpuUse { cpu_ns: percent, elapsed_ns: 100 });
            let round = |round| ModeRound {
                round,
                count: 5_000,
                p50_ns: Some(p99 / 2),
                p99_ns: Some(p99 + u64::from(round)),
                client_cpu: cpu(4),
                server_cpu: cpu(percent),
                controls: vec![ControlRow::default()],
                ..ModeRound::default()
            };
            let is_there = p99 > 0;
            ModeRecord {
                mode,
                unavailable: (!is_there).then(|| "The irq-suspend-timeout is not set.".to_owned()),
                rounds: (0..7).filter(|_| is_there).map(round).collect(),
            }
        };
        ChoiceRecord {
            goal,
            scenario: Scenario {
                transport: Transport::Udp,
                sizes: vec![32],
                rate_per_s: Some(10_000.0),
                busy_poll_us: 100,
                ..Scenario::default()
            },
            server_name: "10.0.0.2:12048\u{1b}[2J".into(),
            client: EndFacts { cpu: Some(1), ..EndFacts::default() },
            modes: Mode::ALL.into_iter().zip(figures).map(mode).collect(),
            ..ChoiceRecord::default()
        }
    }

    fn shown(record: &ChoiceRecord) -> String {
        let text = anstream::adapter::strip_str(&net_choice_text(record, 80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_choice_the_table_and_the_commands_are_shown() {
        let words = shown(&record(Goal { p99_ns: 20_000, cpu_share: 0.5 }));
        for part in [
            "block, no idle states is the cheapest mode that meets p99 20 us and CPU 50 %: p99 9.00 us, CPU 10 %",
            "udp to 10.0.0.2:12048\\u{1b}[2J, 32 bytes, 10,000 messages/s, busy polling for 100 us; client on CPU 1",
            "mode p50 p99",
            "block 20.0 us 40.0 us",
            "4.0 % 10 % no: p99",
            "> block, no idle states 4.50 us 9.00 us",
            "no: CPU",
            "lowlat net pingpong client udp 10.0.0.2:12048\\u{1b}[2J --sizes 32 --rate 10000 --wait block --hold-idle",
            "lowlat run --mode interrupt --c-states off -- CMD",
            "Not available suspended-irq: The irq-suspend-timeout is not set.",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn a_goal_that_no_mode_meets_is_missed_by_a_share() {
        let words = shown(&record(Goal { p99_ns: 8_000, cpu_share: 0.5 }));
        assert!(
            words.starts_with(
                "No mode meets p99 8 us and CPU 50 %; block, no idle states comes closest: p99 9.00 us, CPU 10 %, p99 13 % above"
            ),
            "{words}"
        );
        assert!(shown(&ChoiceRecord::default()).contains("No mode was measured"));
    }

    #[test]
    fn polling_modes_name_their_time_and_unsafe_choices_say_so() {
        let mut unsafe_one = record(Goal { p99_ns: 4_000_000, cpu_share: 1.0 });
        unsafe_one.modes.retain(|mode| mode.mode.waiting.polls_queue());
        unsafe_one.unsteady = vec![2];
        unsafe_one.repeated = vec![2];
        let words = shown(&unsafe_one);
        for part in [
            "--wait busy-poll --busy-poll 100us",
            "--mode spin -- CMD",
            "The choice is unreliable: the control changed, even when repeated, in rounds: 3",
            "; the choice is unreliable",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
}
