//! Ends that die, run twice, or receive nonsense.

use crate::{
    ends::{
        carrier::Queue,
        hosts::{Far, Near, begin, drop_node, receive, send, sender},
    },
    read::{marks, read, reader, records},
    run::{Run, publish},
};
use lowlat_bridge::{accounts::Why, frame::Frame, receiver::ReceiverEvent};
use lowlat_node::{Keys, clock::now_ns};

#[test]
fn a_restarted_sender_continues_with_the_next_number() {
    let Near { here, queue, mut md, sender: mut first } = Near::start();
    let Far { there, mut receiver } = Far::start(true);
    let mut reader = reader(&there, "all", Keys::All);
    begin(&there, &mut receiver);
    let mut written = publish(&mut md, 10);
    send(&mut first);
    receive(&mut receiver, &queue.drain());
    // It dies; records published meanwhile wait in its ring.
    drop_node(&here, "bridge");
    written.extend(publish(&mut md, 20));
    let mut second = sender(&here, &queue);
    assert_eq!((first.epoch(), second.epoch()), (1, 2));
    md.poll(&mut |_, _| ());
    written.extend(publish(&mut md, 10));
    // Its own ring is announced once md has connected it.
    let until_ns = now_ns() + 30_000_000_000;
    while second.counts().sent < 30 && now_ns() < until_ns {
        send(&mut second);
    }
    receive(&mut receiver, &queue.drain());
    let seen = read(&mut reader);
    assert_eq!(records(&seen), written, "each once, in order");
    let whys: Vec<_> = marks(&seen).iter().map(|(_, mark)| (mark.why, mark.epoch, mark.lost_total)).collect();
    assert_eq!(whys, [[(Why::Start, 1, 0); 4], [(Why::NewSender, 2, 0); 4]].concat());
    // The first one was only stopped, and continues: its frames are ignored from now on.
    publish(&mut md, 1);
    let error = first.turn(now_ns()).unwrap_err().to_string();
    assert!(error.starts_with("the master dropped this process"), "{error}");
}

#[test]
fn the_older_of_two_senders_is_refused() {
    let Near { here, queue, mut md, sender: mut first } = Near::start();
    let other = Queue::connected();
    publish(&mut md, 5);
    send(&mut first);
    let old = queue.drain();
    drop_node(&here, "bridge");
    publish(&mut md, 5);
    let mut second = sender(&here, &other);
    send(&mut second);
    let new = other.drain();
    let Far { there, mut receiver } = Far::start(true);
    let mut reader = reader(&there, "all", Keys::All);
    begin(&there, &mut receiver);
    receive(&mut receiver, &old[..3]);
    receive(&mut receiver, &new);
    // Frames of the first one arrive late, and those of the second one twice.
    receive(&mut receiver, &old[3..]);
    receive(&mut receiver, &new);
    let counts = receiver.counts();
    assert_eq!(counts.fenced, u64::try_from(old.len() - 3).unwrap());
    assert!(counts.duplicates >= 5, "{counts:?}");
    let sequences: Vec<_> = records(&read(&mut reader)).iter().map(|(at, _)| *at).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    assert_eq!(u64::try_from(sequences.len()).unwrap() + counts.lost + counts.void, 10);
}

#[test]
fn a_restarted_writer_loses_nothing() {
    let Near { here, queue, mut md, mut sender } = Near::start();
    let Far { there: _there, mut receiver } = Far::start(true);
    publish(&mut md, 3);
    drop_node(&here, "md");
    let mut again = here.writer("md", 4);
    assert_eq!(again.publisher().next_sequence(), Some(5), "number 4 is the abandoned marker");
    publish(&mut again, 3);
    send(&mut sender);
    receive(&mut receiver, &queue.drain());
    let counts = receiver.counts();
    assert_eq!((counts.published, counts.lost, counts.void), (6, 0, 1));
}

#[test]
fn a_new_run_starts_with_its_first_number() {
    let Far { there, mut receiver } = Far::start(true);
    let mut reader = reader(&there, "all", Keys::All);
    begin(&there, &mut receiver);
    let mut frames = Vec::new();
    for _ in 0..2 {
        let Near { here: _here, queue, mut md, mut sender } = Near::start();
        publish(&mut md, 2);
        send(&mut sender);
        frames.push(queue.drain());
    }
    receive(&mut receiver, &frames[0]);
    let said = receive(&mut receiver, &frames[1]);
    assert!(
        matches!(&said[0], ReceiverEvent::Notice { told, .. } if told.why == Why::NewRun && told.lost == 0),
        "{said:?}"
    );
    receive(&mut receiver, &frames[0]);
    let counts = receiver.counts();
    assert_eq!((counts.published, counts.lost), (4, 0));
    assert_eq!(counts.fenced, u64::try_from(frames[0].len()).unwrap());
    assert_eq!(records(&read(&mut reader)).len(), 4);
}

/// Streams have different numbers in each run: frames of the old one, or before the stream's name, are ignored.
#[test]
fn a_number_of_a_new_run_is_another_stream() {
    let Far { there, mut receiver } = Far::start(true);
    let mut reader = reader(&there, "all", Keys::All);
    begin(&there, &mut receiver);
    let mut runs = Vec::new();
    for names in [["md", "other"], ["other", "md"]] {
        let here = Run::start();
        let queue = Queue::connected();
        let mut writers = names.map(|name| here.writer(name, 4));
        let mut sender = sender(&here, &queue);
        for writer in &mut writers {
            writer.poll(&mut |_, _| ());
            publish(writer, 3);
        }
        send(&mut sender);
        runs.push(queue.drain());
    }
    let new = runs.remove(1);
    let old = runs.remove(0);
    // First frame of a stream: its name, and no number yet.
    let is_name = |frame: &&Vec<u8>| Frame::decode(frame).is_ok_and(|frame| frame.head.sequence == 0);
    let names: Vec<_> = new.iter().filter(is_name).cloned().collect();
    let new_records: Vec<_> = new.iter().filter(|frame| frame[6] == 1).cloned().collect();
    assert_eq!((names.len(), new_records.len()), (2, 6));
    receive(&mut receiver, &old);
    assert_eq!((receiver.counts().published, receiver.counts().lost), (3, 0));
    receive(&mut receiver, &new_records);
    assert_eq!(receiver.counts().published, 3, "their stream is unknown");
    receive(&mut receiver, &names);
    // Repeated names of the old run restore no number.
    receive(&mut receiver, &old);
    receive(&mut receiver, &new_records);
    let counts = receiver.counts();
    assert_eq!((counts.published, counts.lost), (6, 0), "{counts:?}");
    assert_eq!(records(&read(&mut reader)).len(), 6);
}

#[test]
fn invalid_frames_are_counted_and_reported_once() {
    let Far { there: _there, mut receiver } = Far::start(true);
    let nonsense = [vec![], b"GET / HTTP/1.1".to_vec(), vec![0xff; 200]];
    let said = receive(&mut receiver, &nonsense);
    assert_eq!((said.len(), receiver.counts().refused), (1, 3));
    assert!(said[0].to_string().contains("message refused: invalid frame of 0 bytes"), "{}", said[0]);
}

#[test]
fn the_end_of_the_carrier_ends_the_sender() {
    let Near { here: _here, queue, mut md, mut sender } = Near::start();
    queue.close("the driver is gone");
    publish(&mut md, 1);
    let error = (0..100).find_map(|_| sender.turn(now_ns() + 10_000_000).err()).expect("an error");
    assert!(error.to_string().contains("the driver is gone"), "{error}");
}
