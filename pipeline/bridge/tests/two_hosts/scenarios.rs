//! Guarantees between two hosts.

use crate::{
    run::publish,
    two_hosts::hosts::{Hosts, Reader, Spaces, connected, until},
};
use lowlat_bridge::accounts::Why;
use lowlat_ipc::stream::Stamp;
use lowlat_node::Node;
use std::process::Command;

/// Records of a run: several Aeron terms.
const RECORDS: u64 = 20_000;
/// Records in flight, far fewer than any ring holds.
const UNDER_WAY_MAX: u64 = 2_000;
const BATCH: u64 = 250;

/// Publishes records while the reader reads them.
fn play(md: &mut Node, reader: &mut Reader, count: u64) -> Vec<(u64, Stamp)> {
    let mut written = Vec::new();
    for _ in 0..count / BATCH {
        md.poll(&mut |_, _| ());
        written.extend(publish(md, BATCH));
        let last = written.last().map_or(0, |(sequence, _): &(u64, Stamp)| *sequence);
        reader.until(last.saturating_sub(UNDER_WAY_MAX));
    }
    written
}

fn number(result: &serde_json::Value, field: &str) -> u64 {
    result[field].as_u64().unwrap_or_else(|| panic!("{field} of {result}"))
}

/// All records arrive, each once, in order, with payload, number and stamp.
fn all_arrive(mut hosts: Hosts) -> Hosts {
    let mut md = hosts.here.writer("md", 4);
    let mut reader = hosts.reader();
    let receiver = hosts.receive();
    let mut sender = hosts.send();
    connected(&mut sender);
    let written = play(&mut md, &mut reader, RECORDS);
    reader.until(RECORDS);
    assert!(reader.records() == written, "payload, number and stamp of each");
    assert!(reader.marks().iter().all(|(_, mark)| mark.lost_total == 0 && mark.epoch == 1));
    let (sent, arrived) = (sender.end(), receiver.end());
    assert_eq!((number(&sent, "sent"), number(&arrived, "published")), (RECORDS, RECORDS));
    for field in ["lost", "duplicates", "fenced", "refused", "unfit", "unrouted", "not_ours"] {
        assert_eq!(number(&arrived, field), 0, "{field} of {arrived}");
    }
    eprintln!("sender's hop {}, receiver's hop {}", sent["hop"], arrived["hop"]);
    hosts
}

#[test]
fn records_arrive_on_the_other_host() {
    let Some(spaces) = Spaces::given() else { return };
    all_arrive(Hosts::start(spaces, &[]));
}

/// Aeron retransmits what the link lost. If the kernel has no netem, the driver drops packets itself.
#[test]
fn records_arrive_over_a_lossy_link() {
    let Some(spaces) = Spaces::given() else { return };
    let cable = |what: &[&str]| {
        let done = Command::new("tc")
            .args(["-n", &spaces.here, "qdisc"])
            .args(what)
            .output()
            .map_err(|error| error.to_string())?;
        if done.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
        }
    };
    let device = spaces.cable_there.replace("-b", "-a");
    let hosts = match cable(&["add", "dev", &device, "root", "netem", "loss", "2%"]) {
        Ok(()) => Hosts::start(spaces.clone(), &[]),
        Err(words) => {
            eprintln!("skipped: loss by tc netem: {words:?}; Aeron's driver loses packets in its place");
            // Data packets only.
            let loss = [
                ("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "loss"),
                ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS", "rate=0.02|recv-msg-mask=0x2|seed=7"),
            ];
            Hosts::start(spaces.clone(), &loss)
        }
    };
    let hosts = all_arrive(hosts);
    assert!(hosts.counter_there("NAKs sent") > 0, "packets were lost");
    drop(hosts);
    cable(&["del", "dev", &device, "root"]).ok();
}

#[test]
fn a_killed_sender_continues_where_it_ended() {
    let Some(spaces) = Spaces::given() else { return };
    let mut hosts = Hosts::start(spaces, &[]);
    let mut md = hosts.here.writer("md", 4);
    let mut reader = hosts.reader();
    let receiver = hosts.receive();
    let mut first = hosts.send();
    connected(&mut first);
    let mut written = play(&mut md, &mut reader, 4 * BATCH);
    reader.until(4 * BATCH);
    // In the middle of its work.
    written.extend(publish(&mut md, BATCH));
    first.kill();
    written.extend(publish(&mut md, BATCH));
    let mut second = hosts.send();
    // Its ring is connected by the publisher.
    until("the second sender joins", || {
        md.poll(&mut |_, _| ());
        second.assert_runs();
        second.said().contains("sender 2 of the run")
    });
    connected(&mut second);
    written.extend(play(&mut md, &mut reader, 2 * BATCH));
    let last = written.last().unwrap().0;
    reader.until(last);
    let records = reader.records();
    assert!(records.is_sorted_by(|a, b| a.0 < b.0), "each at most once, in order");
    assert!(
        records.iter().all(|record| written
            .binary_search_by_key(&record.0, |record| record.0)
            .is_ok_and(|at| written[at] == *record)),
        "unchanged"
    );
    let epochs: Vec<_> = reader.marks().iter().map(|(_, mark)| (mark.why, mark.epoch)).collect();
    assert!(epochs.contains(&(Why::Start, 1)) && epochs.contains(&(Why::NewSender, 2)), "{epochs:?}");
    assert!(epochs.is_sorted_by_key(|(_, epoch)| *epoch), "{epochs:?}");
    let arrived = receiver.end();
    let accounted = number(&arrived, "published") + number(&arrived, "lost") + number(&arrived, "void");
    assert_eq!((accounted, number(&arrived, "published")), (last, records.len() as u64), "{arrived}");
    eprintln!("of {last} records {} were lost with the sender that was killed", number(&arrived, "lost"));
    second.end();
}

#[test]
fn a_late_receiver_reports_how_much_it_missed() {
    let Some(spaces) = Spaces::given() else { return };
    let mut hosts = Hosts::start(spaces, &[]);
    let mut md = hosts.here.writer("md", 4);
    let mut reader = hosts.reader();
    let mut sender = hosts.send();
    until("the sender joins", || sender.said().contains("sender 1 of the run"));
    md.poll(&mut |_, _| ());
    publish(&mut md, BATCH);
    // After a standing they are dropped: no receiver is connected.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let receiver = hosts.receive();
    connected(&mut sender);
    let written = play(&mut md, &mut reader, 2 * BATCH);
    reader.until(written.last().unwrap().0);
    let (sent, arrived) = (sender.end(), receiver.end());
    let records = reader.records();
    let first = records[0].0;
    assert!(first > BATCH, "{first}");
    assert!(records == written[usize::try_from(first - BATCH - 1).unwrap()..], "all from the first on");
    let (_, mark) = reader.marks()[0];
    assert_eq!((mark.why, mark.lost, mark.sequence), (Why::Start, first - 1, first));
    assert_eq!((number(&arrived, "lost"), number(&sent, "not_connected")), (first - 1, first - 1));
}

#[test]
fn a_restarted_receiver_starts_with_a_mark() {
    let Some(spaces) = Spaces::given() else { return };
    let mut hosts = Hosts::start(spaces, &[]);
    let mut md = hosts.here.writer("md", 4);
    let mut reader = hosts.reader();
    let first = hosts.receive();
    let mut sender = hosts.send();
    connected(&mut sender);
    let mut written = play(&mut md, &mut reader, 2 * BATCH);
    reader.until(2 * BATCH);
    first.kill();
    let second = hosts.receive();
    // After a standing it knows the stream's name.
    std::thread::sleep(std::time::Duration::from_millis(500));
    written.extend(play(&mut md, &mut reader, 2 * BATCH));
    let last = written.last().unwrap().0;
    reader.until(last);
    sender.end();
    let arrived = second.end();
    assert_eq!(number(&arrived, "published") + number(&arrived, "lost"), last, "{arrived}");
    let starts: Vec<_> = reader.marks().into_iter().filter(|(_, mark)| mark.why == Why::Start).collect();
    let anew =
        starts.iter().map(|(_, mark)| mark).find(|mark| mark.sequence > 2 * BATCH).expect("a second start");
    assert_eq!(anew.lost, 2 * BATCH, "everything that its predecessor had published");
    assert!(reader.records() == written, "nothing was in flight, so nothing is lost");
}

#[test]
fn both_ends_report_the_end_of_their_driver() {
    let Some(spaces) = Spaces::given() else { return };
    let mut hosts = Hosts::start(spaces, &[]);
    hosts.environment = vec![("AERON_DRIVER_TIMEOUT", "3000")];
    let mut md = hosts.here.writer("md", 4);
    let mut receiver = hosts.receive();
    let mut sender = hosts.send();
    connected(&mut sender);
    md.poll(&mut |_, _| ());
    hosts.kill_drivers();
    for (what, process) in [("sender", &mut sender), ("receiver", &mut receiver)] {
        until(&format!("the {what}'s end"), || {
            publish(&mut md, 1);
            process.has_failed()
        });
        assert!(process.said().contains("check its driver, then restart"), "{}", process.said());
    }
}
