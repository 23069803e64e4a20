//! The C examples, compiled and run as strategies of a pipeline, and the header alone.

use crate::compile::{WARNINGS, compiler, folder, library_folder, program, run};
use crate::master_thread::{MasterThread, join, reads, until};
use crate::orders::start_td_of_quotes;
use crate::threads::{QUOTES, RING_BYTES, STRATEGIES, start_md, start_td};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Event, Keys, Node, Wait,
    clock::now_ns,
    records::{Answer, Outcome, Price, Quote, SCHEMA, kind},
};
use lowlat_trade::{master::Happened, roles};
use std::process::Command;

#[test]
fn the_header_compiles_alone_in_c_and_in_cpp() {
    let sources = tempfile::tempdir().unwrap();
    let languages = [
        ("CC", "cc", "x.c", &["-std=c99", "-std=c11"]),
        ("CXX", "c++", "x.cc", &["-std=c++11", "-std=c++17"]),
    ];
    for (variable, usual, file, standards) in languages {
        let Some(compiler) = compiler("the_header_compiles_alone_in_c_and_in_cpp", variable, usual) else {
            continue;
        };
        let file = sources.path().join(file);
        // Included twice, as happens in programs of several files. A status can be compared with 0 in both
        // languages.
        let text = "#include \"lowlat.h\"\n#include \"lowlat.h\"\n\
                    int main(void) { lowlat_node_options o = lowlat_node_options_default();\n\
                    lowlat_strategy_options s = lowlat_strategy_options_default();\n\
                    return lowlat_leave(NULL) == LOWLAT_STATUS_OK ? 0 : (int)(o.size_bytes + s.size_bytes); }\n";
        std::fs::write(&file, text).unwrap();
        for standard in standards {
            let mut command = Command::new(&compiler);
            command.args(WARNINGS).arg(standard).arg("-I").arg(folder().join("include"));
            run(command.args(["-fsyntax-only"]).arg(&file));
        }
    }
}

/// A program that is linked with the library's file looks for the library's name, not for that path.
#[test]
fn the_library_has_a_name() {
    let test = "the_library_has_a_name";
    let folder_of_it = tempfile::tempdir().unwrap();
    let Some(compiler) = compiler(test, "CC", "cc") else { return };
    let path = folder_of_it.path().join("program");
    let mut command = Command::new(compiler);
    command.arg("-I").arg(folder().join("include")).arg(folder().join("examples/strategy.c"));
    run(command.arg(library_folder().join("liblowlat_capi.so")).arg("-o").arg(&path));
    let Ok(output) = Command::new("readelf").arg("-d").arg(&path).output() else {
        eprintln!("skipped: {test}: no readelf: install binutils");
        return;
    };
    let needed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(needed.contains("[liblowlat_capi.so]"), "{needed}");
}

#[test]
fn pkg_config_finds_the_header_and_the_library() {
    let ask = |word: &str| {
        Command::new("pkg-config").args([word, "lowlat"]).env("PKG_CONFIG_PATH", folder()).output()
    };
    let Ok(version) = ask("--modversion") else {
        eprintln!("skipped: pkg_config_finds_the_header_and_the_library: no pkg-config: install pkg-config");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), env!("CARGO_PKG_VERSION"));
    let flags = String::from_utf8(ask("--cflags").unwrap().stdout).unwrap();
    assert!(
        folder().join("include/lowlat.h").is_file() && flags.contains("pipeline/capi/include"),
        "{flags}"
    );
    let libs = String::from_utf8(ask("--libs").unwrap().stdout).unwrap();
    assert!(libs.contains("target/release") && libs.contains("-llowlat_capi"), "{libs}");
}

#[test]
fn the_example_in_c_answers_every_quote_once() {
    let test = "the_example_in_c_answers_every_quote_once";
    let programs = tempfile::tempdir().unwrap();
    let Some(mut program) = program(test, "examples/strategy.c", programs.path()) else { return };
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let (md, td) = (start_md(&master), start_td(&master));
    let instruments = (0..STRATEGIES).map(|number| number.to_string());
    let child = program.arg(master.socket()).args(instruments).spawn().unwrap();
    master.expect(
        "the example has joined",
        |it| matches!(it, Happened::Joined { name, .. } if name == "c-strategy"),
    );
    master.begin();
    // One quote, one accept and one fill each.
    until("all answers are read", || {
        master.with(|master, _| {
            master.counters("c-strategy").is_some_and(|counters| counters.figures().read == 3 * QUOTES)
        })
    });
    master.with(|master, _| master.stop());
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {words}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        words.trim_end(),
        format!(
            "quotes {QUOTES} orders {QUOTES} accepted {QUOTES} rejected 0 filled {QUOTES} out-of-order 0 lost 0"
        )
    );
    md.join().unwrap();
    let td = td.join().unwrap();
    let told = (td.orders, td.rejected, td.known, td.missing, td.lost, td.not_orders);
    assert_eq!(told, (QUOTES, 0, 0, 0, 0, 0));
}

/// A market of instrument 3, with a node that reads all answers.
struct Market {
    md: Node,
    reader: Node,
    answers: Vec<(Outcome, Price, u32)>,
}

impl Market {
    /// Publishes best prices, with the price of the last trade, and sizes.
    fn quote(&mut self, (bid, ask): (Price, Price), last: Price, (bid_size, ask_size): (u32, u32)) {
        let now_ns = now_ns();
        let quote = Quote { scheduled_ns: now_ns, bid, ask, last, bid_size, ask_size, ..Quote::default() };
        let stamp = Stamp {
            kind: kind::QUOTE,
            schema: SCHEMA,
            instrument: 3,
            source: self.md.number(),
            generated: now_ns,
            trigger: now_ns,
            cause: 0,
        };
        self.md.poll(&mut |_, _| ());
        self.md.publisher().publish(&stamp, &quote.encode()).unwrap();
    }

    /// Waits for these answers, and does something before each look.
    fn expect(&mut self, expected: &[(Outcome, Price, u32)], mut before: impl FnMut(&mut Self)) {
        until("the answers", || {
            before(self);
            let answers = &mut self.answers;
            self.reader.poll(&mut |_, event| {
                if let Event::Record { payload, .. } = event {
                    let answer = Answer::decode(payload).unwrap();
                    answers.push((answer.outcome, answer.price, answer.quantity));
                }
            });
            self.answers.len() >= expected.len()
        });
        assert_eq!(std::mem::take(&mut self.answers), expected);
    }
}

#[test]
fn the_market_maker_in_c_quotes_replaces_cancels_and_continues() {
    use Outcome::{Accepted, Cancelled, Filled, Replaced};
    let test = "the_market_maker_in_c_quotes_replaces_cancels_and_continues";
    let programs = tempfile::tempdir().unwrap();
    let Some(mut program) = program(test, "examples/market_maker.c", programs.path()) else { return };
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let td = start_td_of_quotes(&master);
    let md = master.join(&roles::md::join(STRATEGIES, RING_BYTES, Wait::Parked));
    let reader = master.join(&join("reader", None, vec![reads("td", Keys::All)]));
    let mut market = Market { md, reader, answers: Vec::new() };
    program.arg(master.socket()).args(["3", "5"]);
    let mut child = program.spawn().unwrap();
    let has_joined = |it: &Happened| matches!(it, Happened::Joined { name, .. } if name == "market-maker");
    master.expect("it has joined", has_joined);
    master.begin();

    // Repeated until it reads quotes.
    market.expect(&[(Accepted, 100, 10), (Accepted, 102, 10)], |it| it.quote((100, 102), 0, (10, 10)));
    market.quote((101, 103), 0, (10, 10));
    market.expect(&[(Replaced, 101, 10), (Replaced, 103, 10)], |_| ());
    // Others sell 8 at its price, which is above its limit of 5.
    market.quote((101, 103), 101, (2, 10));
    market.expect(&[(Filled, 101, 8), (Cancelled, 101, 2)], |_| ());
    market.quote((102, 104), 0, (10, 10));
    market.expect(&[(Replaced, 104, 10)], |_| ());
    // Others buy 6 at its price.
    market.quote((102, 104), 104, (10, 4));
    market.expect(&[(Filled, 104, 6), (Accepted, 102, 10)], |_| ());

    child.kill().unwrap();
    child.wait().unwrap();
    master.expect("it has died", |it| matches!(it, Happened::Died { name, .. } if name == "market-maker"));
    let child = program.spawn().unwrap();
    // What was left of its orders.
    market.expect(&[(Cancelled, 104, 4), (Cancelled, 102, 10)], |_| ());
    market.expect(&[(Accepted, 102, 10), (Accepted, 104, 10)], |it| it.quote((102, 104), 0, (10, 10)));
    master.with(|master, _| master.stop());
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {words}{}", output.status, String::from_utf8_lossy(&output.stderr));
    assert_eq!(words.trim_end(), "position 2", "8 - 6");
    td.join().unwrap();
}
