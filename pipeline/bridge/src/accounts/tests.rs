use super::*;
use crate::frame::FrameHead;
use proptest::{collection::vec, prelude::*};

fn head(run: u64, epoch: u64, sequence: u64, void: u64) -> FrameHead {
    FrameHead { stream: 0, run, epoch, sequence, void }
}

fn told(why: Why, lost: u64, void: u64) -> Verdict {
    Verdict::Accept(Some(Notice { why, lost, void }))
}

const GOOD: Verdict = Verdict::Accept(None);

/// A receiver that has accepted records 1 to 4 of run 7, sender 1.
fn under_way() -> Incoming {
    let mut incoming = Incoming::default();
    assert_eq!(incoming.take(&head(7, 1, 1, 0)), told(Why::Start, 0, 0));
    for sequence in 2..5 {
        assert_eq!(incoming.take(&head(7, 1, sequence, 0)), GOOD);
    }
    incoming
}

#[test]
fn a_late_start_is_a_gap_of_all_before() {
    let mut incoming = Incoming::default();
    assert_eq!(incoming.take(&head(7, 1, 100, 0)), told(Why::Start, 99, 0));
    assert_eq!((incoming.take(&head(7, 1, 101, 0)), incoming.lost(), incoming.expected()), (GOOD, 99, 102));
}

#[test]
fn a_jump_is_a_gap_of_its_numbers() {
    let mut incoming = under_way();
    assert_eq!(incoming.take(&head(7, 1, 8, 0)), told(Why::Gap, 3, 0));
    assert_eq!((incoming.take(&head(7, 1, 9, 0)), incoming.lost()), (GOOD, 3));
}

#[test]
fn a_void_number_is_not_lost() {
    let mut incoming = under_way();
    assert_eq!(incoming.take(&head(7, 1, 6, 1)), told(Why::NewWriter, 0, 1));
    assert_eq!(incoming.take(&head(7, 1, 10, 2)), told(Why::Gap, 2, 1));
    assert_eq!((incoming.lost(), incoming.void()), (2, 2));
    // Void numbers beyond the jump, or fewer than before, are not trusted.
    assert_eq!(incoming.take(&head(7, 1, 12, 9)), told(Why::NewWriter, 0, 1));
    assert_eq!(incoming.take(&head(7, 1, 14, 0)), told(Why::Gap, 1, 0));
}

#[test]
fn a_new_sender_continues_and_an_old_one_is_fenced() {
    let mut incoming = under_way();
    assert_eq!(incoming.take(&head(7, 2, 5, 0)), told(Why::NewSender, 0, 0));
    assert_eq!(incoming.take(&head(7, 1, 6, 0)), Verdict::Fenced);
    assert_eq!(incoming.stand(&head(7, 1, 9, 0)), Verdict::Fenced);
    assert_eq!(incoming.stand(&head(7, 1, 0, 0)), Verdict::Fenced);
    assert_eq!((incoming.take(&head(7, 2, 6, 0)), incoming.lost()), (GOOD, 0));
    // Also if the new one has only announced itself.
    assert_eq!(incoming.stand(&head(7, 3, 0, 0)), GOOD);
    assert_eq!(incoming.take(&head(7, 2, 7, 0)), Verdict::Fenced);
    assert_eq!(incoming.take(&head(7, 3, 8, 0)), told(Why::NewSender, 1, 0));
}

#[test]
fn duplicates_are_refused_within_and_across_senders() {
    let mut incoming = under_way();
    assert_eq!(incoming.take(&head(7, 1, 4, 0)), Verdict::Duplicate);
    assert_eq!(incoming.take(&head(7, 2, 3, 0)), Verdict::Duplicate);
    assert_eq!(incoming.take(&head(7, 2, 5, 0)), told(Why::NewSender, 0, 0));
    assert_eq!(incoming.lost(), 0);
}

/// Each sender counts void numbers from its own start.
#[test]
fn void_numbers_of_a_new_sender_count_once() {
    let mut incoming = under_way();
    assert_eq!(incoming.take(&head(7, 1, 6, 1)), told(Why::NewWriter, 0, 1));
    assert_eq!(incoming.take(&head(7, 2, 8, 1)), told(Why::NewSender, 0, 1));
    // A sender that has read less than its predecessors: its void number is below the expected one.
    assert_eq!(incoming.take(&head(7, 3, 7, 1)), Verdict::Duplicate);
    assert_eq!(incoming.take(&head(7, 3, 10, 1)), told(Why::NewSender, 1, 0));
}

#[test]
fn a_new_run_restarts_numbers_and_the_old_one_is_fenced() {
    let mut incoming = under_way();
    assert_eq!(incoming.take(&head(8, 1, 1, 0)), told(Why::NewRun, 0, 0));
    assert_eq!(incoming.take(&head(7, 9, 5, 0)), Verdict::Fenced);
    assert_eq!(incoming.take(&head(9, 1, 4, 1)), told(Why::NewRun, 2, 1));
}

#[test]
fn a_standing_without_a_number_keeps_the_news() {
    let mut incoming = Incoming::default();
    assert_eq!((incoming.stand(&head(7, 1, 0, 0)), incoming.expected()), (GOOD, 1));
    assert_eq!(incoming.stand(&head(7, 2, 0, 0)), GOOD);
    assert_eq!(incoming.take(&head(7, 2, 3, 0)), told(Why::Start, 2, 0));
    assert_eq!(incoming.stand(&head(8, 1, 0, 0)), GOOD);
    assert_eq!(incoming.take(&head(7, 2, 4, 0)), Verdict::Fenced);
    assert_eq!(incoming.take(&head(8, 1, 1, 0)), told(Why::NewRun, 0, 0));
}

#[test]
fn a_standing_reports_a_trailing_gap() {
    let mut incoming = under_way();
    assert_eq!(incoming.stand(&head(7, 1, 5, 0)), GOOD);
    assert_eq!(incoming.stand(&head(7, 1, 8, 0)), told(Why::Gap, 3, 0));
    assert_eq!(incoming.stand(&head(7, 1, 8, 0)), GOOD);
    // From a sender that has read less than its predecessors.
    assert_eq!(incoming.stand(&head(7, 1, 2, 0)), GOOD);
    assert_eq!((incoming.take(&head(7, 1, 8, 0)), incoming.lost()), (GOOD, 3));
}

#[test]
fn a_sender_distinguishes_lost_numbers_from_void_ones() {
    let mut outgoing = Outgoing::default();
    assert_eq!(outgoing.standing(), (0, 0));
    assert_eq!(outgoing.see(10), SendDecision::Send { void: 0 });
    outgoing.lose(2);
    assert_eq!(outgoing.standing(), (13, 0));
    assert_eq!(outgoing.see(14), SendDecision::Send { void: 1 });
    assert_eq!(outgoing.see(12), SendDecision::Old);
    assert_eq!(outgoing.see(15), SendDecision::Send { void: 1 });
    outgoing.lose(1);
    assert_eq!(outgoing.see(15), SendDecision::Old);
    assert_eq!(outgoing.see(17), SendDecision::Send { void: 1 }, "an old record does not hide the loss");
    assert_eq!((outgoing.standing(), outgoing.lost()), ((18, 1), 3));
}

/// Event that affects a stream, or its frames in transit.
#[derive(Debug, Clone)]
enum NetworkStep {
    Record,
    /// A record that the sender loses and knows about.
    Missed,
    NewWriter,
    /// The sender restarts; its node keeps what it had not read.
    NewSender,
    /// The next frame does not arrive.
    Drop,
    /// The last frame is duplicated.
    Again,
    /// A frame of an earlier sender arrives late.
    Late(prop::sample::Index),
    Standing,
}

fn steps() -> impl Strategy<Value = Vec<NetworkStep>> {
    let step = prop_oneof![
        6 => Just(NetworkStep::Record),
        1 => Just(NetworkStep::Missed),
        1 => Just(NetworkStep::NewWriter),
        1 => Just(NetworkStep::NewSender),
        1 => Just(NetworkStep::Drop),
        1 => Just(NetworkStep::Again),
        1 => any::<prop::sample::Index>().prop_map(NetworkStep::Late),
        2 => Just(NetworkStep::Standing),
    ];
    vec(step, 1..80)
}

proptest! {
    /// Compared with a list of all numbers: each record arrives at most once and in order, and every number
    /// below the expected one is counted as published, lost or void. Void numbers while a sender was away, or
    /// before its first record, count as lost: they cannot be distinguished.
    #[test]
    fn every_number_is_accounted_for(steps in steps()) {
        let (mut outgoing, mut incoming) = (Outgoing::default(), Incoming::default());
        let (mut sequence, mut epoch) = (0_u64, 1_u64);
        let (mut published, mut void_numbers) = (Vec::new(), 0_u64);
        let (mut sent, mut drops): (Vec<FrameHead>, bool) = (Vec::new(), false);
        for step in steps {
            let is_standing = matches!(step, NetworkStep::Standing);
            let arrives = match step {
                NetworkStep::Record => {
                    sequence += 1;
                    let SendDecision::Send { void } = outgoing.see(sequence) else { unreachable!("numbers go up") };
                    let frame = head(7, epoch, sequence, void);
                    sent.push(frame);
                    (!std::mem::take(&mut drops)).then_some(frame)
                }
                NetworkStep::Missed => {
                    sequence += 1;
                    outgoing.lose(1);
                    None
                }
                NetworkStep::NewWriter => {
                    sequence += 1;
                    void_numbers += 1;
                    None
                }
                NetworkStep::NewSender => {
                    epoch += 1;
                    outgoing = Outgoing::default();
                    None
                }
                NetworkStep::Drop => {
                    drops = true;
                    None
                }
                NetworkStep::Again => sent.last().copied(),
                NetworkStep::Late(index) if !sent.is_empty() => Some(sent[index.index(sent.len())]),
                NetworkStep::Late(_) => None,
                NetworkStep::Standing => {
                    let (next, void) = outgoing.standing();
                    Some(head(7, epoch, next, void))
                }
            };
            let Some(frame) = arrives else { continue };
            let before = incoming;
            let verdict = if is_standing { incoming.stand(&frame) } else { incoming.take(&frame) };
            match verdict {
                Verdict::Accept(_) if !is_standing => published.push(frame.sequence),
                Verdict::Accept(_) => {}
                Verdict::Duplicate => prop_assert!(frame.sequence < before.expected()),
                Verdict::Fenced => prop_assert!(frame.epoch < epoch || sent.iter().any(|sent| sent.epoch > frame.epoch)),
            }
            prop_assert!(published.is_sorted_by(|a, b| a < b), "{published:?}");
            let numbers = incoming.expected().max(1) - 1;
            prop_assert!(numbers <= sequence);
            prop_assert_eq!(incoming.lost() + incoming.void() + published.len() as u64, numbers);
            prop_assert!(incoming.void() <= void_numbers);
        }
    }

    /// For arbitrary heads, nothing overflows and the sum is right.
    #[test]
    fn hostile_heads_do_no_harm(heads in vec((1..4_u64, 1..4_u64, 0..=crate::frame::SEQUENCE_MAX, any::<u64>(), any::<bool>()), 0..50)) {
        let (mut incoming, mut newest) = (Incoming::default(), (0, 0));
        for (run, epoch, sequence, void, is_standing) in heads {
            let frame = head(run, epoch, sequence.max(u64::from(!is_standing)), void);
            let verdict = if is_standing { incoming.stand(&frame) } else { incoming.take(&frame) };
            prop_assert_eq!(verdict == Verdict::Fenced, (run, epoch) < newest);
            newest = newest.max((run, epoch));
            if let Verdict::Accept(Some(told)) = verdict {
                prop_assert!(told.lost + told.void <= crate::frame::SEQUENCE_MAX);
            }
        }
    }
}
