//! Records and notices that arrive.

use crate::{
    ends::hosts::{Far, Near, begin, receive, send},
    read::{Read, marks, read, reader, records},
    run::{publish, stamp},
};
use lowlat_bridge::{accounts::Why, frame::Frame, receiver::ReceiverEvent};
use lowlat_ipc::stream::Stamp;
use lowlat_node::Keys;

#[test]
fn records_arrive_unchanged() {
    let Near { here: _here, queue, mut md, mut sender } = Near::start();
    let Far { there, mut receiver } = Far::start(true);
    let mut all = reader(&there, "all", Keys::All);
    let mut one = reader(&there, "one", Keys::Only(vec![2]));
    begin(&there, &mut receiver);
    let written = publish(&mut md, 100);
    send(&mut sender);
    let said = receive(&mut receiver, &queue.drain());
    let seen = read(&mut all);
    assert_eq!(records(&seen), written, "payload, number and stamp");
    let of_two: Vec<_> = written.iter().copied().filter(|(_, stamp)| stamp.instrument == 2).collect();
    let seen_of_two = read(&mut one);
    assert_eq!(records(&seen_of_two), of_two);
    // Every reader gets the start mark, once per instrument; nothing was lost.
    let told: Vec<_> =
        marks(&seen).iter().map(|(at, mark)| (*at, mark.why, mark.sequence, mark.lost)).collect();
    assert_eq!(told, [1, 2, 3, 0].map(|at| (at, Why::Start, if at == 0 { 4 } else { u64::from(at) }, 0)));
    assert_eq!((marks(&seen_of_two).len(), said.len()), (1, 1));
    let (counts, sent) = (receiver.counts(), sender.counts());
    assert_eq!((sent.sent, sent.lost, counts.published, counts.lost, counts.marks), (100, 0, 100, 0, 4));
    assert_eq!((receiver.hop().count, sender.hop().count), (100, 100));
}

#[test]
fn a_late_start_and_a_loss_are_reported_exactly() {
    let Near { here: _here, queue, mut md, mut sender } = Near::start();
    publish(&mut md, 30);
    send(&mut sender);
    drop(queue.drain());
    // These do not reach the receiver.
    let Far { there, mut receiver } = Far::start(true);
    let mut reader = reader(&there, "s1", Keys::Only(vec![3]));
    begin(&there, &mut receiver);
    publish(&mut md, 10);
    std::thread::sleep(std::time::Duration::from_millis(260));
    send(&mut sender);
    sender.turn(0).unwrap();
    let mut frames = queue.drain();
    // A standing contains its name; before that the stream is unknown.
    let standing = frames.iter().position(|frame| frame.get(6) == Some(&2)).unwrap();
    frames.rotate_left(standing);
    publish(&mut md, 10);
    send(&mut sender);
    let mut later = queue.drain();
    later.retain(|frame| Frame::decode(frame).unwrap().head.sequence != 45);
    receive(&mut receiver, &frames[..1]);
    receive(&mut receiver, &later);
    let counts = receiver.counts();
    assert_eq!((counts.published, counts.lost), (9, 41));
    let seen = read(&mut reader);
    let told: Vec<_> = marks(&seen).iter().map(|(_, mark)| (mark.why, mark.lost, mark.lost_total)).collect();
    assert_eq!(told, [(Why::Start, 40, 40), (Why::Gap, 1, 41)]);
    assert_eq!(records(&seen).iter().map(|(at, _)| *at).collect::<Vec<_>>(), [43, 47]);
    // The notice precedes the first record after it.
    assert!(matches!(seen[..], [Read::Mark(..), Read::Record(43, _), Read::Mark(..), Read::Record(47, _)]));
}

#[test]
fn records_dropped_for_lack_of_room_are_counted_and_reported() {
    let Near { here: _here, queue, mut md, mut sender } = Near::start();
    let Far { there: _there, mut receiver } = Far::start(true);
    publish(&mut md, 1);
    send(&mut sender);
    let first = queue.drain();
    queue.set_room(5);
    publish(&mut md, 12);
    send(&mut sender);
    let middle = queue.drain();
    queue.set_room(usize::MAX);
    publish(&mut md, 1);
    send(&mut sender);
    let counts = sender.counts();
    assert!(counts.back_pressure > 0 && counts.sent + counts.back_pressure == 14, "{counts:?}");
    for frames in [first, middle, queue.drain()] {
        receive(&mut receiver, &frames);
    }
    let arrived = receiver.counts();
    assert_eq!((arrived.published, arrived.lost), (counts.sent, counts.back_pressure));
}

#[test]
fn without_a_receiver_nothing_is_kept_and_all_is_reported() {
    let Near { here: _here, queue, mut md, mut sender } = Near::start();
    queue.connect(false);
    let Far { there, mut receiver } = Far::start(false);
    let mut reader = reader(&there, "all", Keys::All);
    begin(&there, &mut receiver);
    publish(&mut md, 7);
    send(&mut sender);
    queue.connect(true);
    let written = publish(&mut md, 3);
    send(&mut sender);
    let said = receive(&mut receiver, &queue.drain());
    assert_eq!((sender.counts().not_connected, receiver.counts().lost), (7, 7));
    let [ReceiverEvent::Notice { stream, told, .. }] = &said[..] else { panic!("{said:?}") };
    assert_eq!((stream.as_str(), told.why, told.lost), ("md", Why::Start, 7));
    assert!(said[0].to_string().contains("7 lost, 0 void before 8"), "{}", said[0]);
    assert_eq!(
        read(&mut reader),
        written.iter().map(|(at, stamp)| Read::Record(*at, *stamp)).collect::<Vec<_>>()
    );
}

#[test]
fn a_new_receiver_gets_names_first() {
    let Near { here: _here, queue, mut md, mut sender } = Near::start();
    publish(&mut md, 1);
    send(&mut sender);
    let is_standing = |frame: &Vec<u8>| frame[6] == 2;
    assert!(queue.drain().first().is_some_and(is_standing));
    for _ in 0..2 {
        queue.connect(false);
        publish(&mut md, 1);
        send(&mut sender);
        queue.connect(true);
        publish(&mut md, 1);
        send(&mut sender);
        assert!(queue.drain().first().is_some_and(is_standing), "before the first record");
    }
    queue.connect(false);
    publish(&mut md, 1);
    send(&mut sender);
    queue.connect(true);
    sender.turn(0).unwrap();
    assert!(queue.drain().first().is_some_and(is_standing), "without a record");
}

#[test]
fn a_slow_sender_reports_how_much_it_missed() {
    let Near { here: _here, queue, mut md, mut sender } = Near::start();
    let Far { there: _there, mut receiver } = Far::start(true);
    publish(&mut md, 1);
    send(&mut sender);
    // More than its ring holds.
    let count = 40_000;
    publish(&mut md, count);
    send(&mut sender);
    publish(&mut md, 1);
    send(&mut sender);
    receive(&mut receiver, &queue.drain());
    let (sent, arrived) = (sender.counts(), receiver.counts());
    assert!(sent.lost > 0 && sent.sent + sent.lost == count + 2, "{sent:?}");
    assert_eq!((arrived.published, arrived.lost, arrived.void), (sent.sent, sent.lost, 0));
}

#[test]
fn a_stream_that_is_not_received_is_ignored() {
    let Near { here: _here, queue, md: mut orders, mut sender } = Near::writing("orders.s1", 1);
    let Far { there: _there, mut receiver } = Far::start(true);
    orders.publisher().publish(&Stamp { instrument: 0, ..stamp(0) }, b"order").unwrap();
    send(&mut sender);
    let frames = queue.drain();
    receive(&mut receiver, &frames);
    let counts = receiver.counts();
    assert_eq!(counts.not_ours, u64::try_from(frames.len()).unwrap());
    assert_eq!((counts.published, counts.lost), (0, 0));
}

#[test]
fn an_instrument_that_is_unknown_here_is_counted() {
    let Near { here: _here, queue, mut md, mut sender } = Near::writing("md", 9);
    let Far { there: _there, mut receiver } = Far::start(true);
    md.publisher().publish(&stamp(8), b"12345678").unwrap();
    // Longer than the ring on the other side allows.
    md.publisher().publish(&stamp(1), &[1; 8000]).unwrap();
    md.publisher().publish(&stamp(1), b"12345678").unwrap();
    send(&mut sender);
    let mut short = queue.drain();
    let long = short.iter().position(|frame| frame.len() > 8000).unwrap();
    // A valid frame, but a payload too large for a ring of that size.
    let Ok(Frame { head, body: lowlat_bridge::frame::Body::Record { stamp, .. } }) =
        Frame::decode(&short[long])
    else {
        panic!("a record")
    };
    let payload = vec![1; 10_000];
    let mut bytes = Vec::new();
    Frame { head, body: lowlat_bridge::frame::Body::Record { stamp, payload: &payload } }.encode(&mut bytes);
    short[long] = bytes;
    receive(&mut receiver, &short);
    let counts = receiver.counts();
    assert_eq!((counts.unrouted, counts.unfit, counts.published, counts.lost), (1, 1, 2, 1));
}
