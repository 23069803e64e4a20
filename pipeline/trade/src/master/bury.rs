//! Handles nodes that have ended.

use super::{Happened, Master, Standing, member::Stream};
use lowlat_node::{Counters, control::ToNode};

impl Master {
    /// A node has ended or is dropped: its stream is fenced, delivery of its last record is completed, and its
    /// place is kept for its successor.
    pub(super) fn bury(&mut self, number: u32, reason: &str, standing: Standing) {
        let Some(member) = self.member_mut(number).filter(|member| member.is_there()) else { return };
        member.standing = standing;
        member.waits.clear();
        member.pidfd = None;
        // A node that continues finds itself fenced.
        member.counters.iter().for_each(Counters::fence);
        let (name, epoch, connection) = (member.name.clone(), member.epoch, member.connection.take());
        if let Some(segment) = member.stream.as_ref().and_then(Stream::opened) {
            segment.fence(epoch + 1);
        }
        if let Some(connection) = connection {
            self.connections.remove(&connection);
        }
        self.finish_last_record(number);
        // Records are kept for the successor of one that died.
        if standing == Standing::Left {
            self.forget_reader(number);
            self.retire(number);
        }
        // No node waits for it any more.
        let waiting: Vec<u32> = self
            .members
            .iter_mut()
            .filter_map(|member| member.waits.remove(&number).map(|_| member.number))
            .collect();
        for reader in waiting {
            self.finish_join(reader);
        }
        self.happened.push(if standing == Standing::Left {
            Happened::Left { name }
        } else {
            Happened::Died { name, reason: reason.to_owned() }
        });
    }

    /// Gives back the memory of a node that has left, unless a reader of its stream has not read to the end.
    fn retire(&mut self, number: u32) {
        if self.links.forget_read(number)
            && let Some(member) = self.member_mut(number)
        {
            member.retire();
        }
    }

    /// Gives back the memory of all nodes that have left.
    pub(super) fn retire_left(&mut self) {
        for number in self.numbers(|member| member.standing == Standing::Left && !member.is_retired()) {
            self.retire(number);
        }
    }

    /// A writer died between its record and its deliveries: interested readers get the record now.
    fn finish_last_record(&self, number: u32) {
        let Some(stream) = self.stream(number) else { return };
        let (Some(last), Some(interest)) = (stream.last(), stream.interest()) else { return };
        interest.each(last.stamp.instrument, |reader| {
            let Some(way) = self.links.get(number, reader).and_then(|link| link.active()) else { return };
            let is_owed = way.from.is_some_and(|from| from <= last.position)
                && std::sync::Arc::ptr_eq(&way.segment, &stream.segment);
            if !is_owed {
                return;
            }
            way.give(last.stamp.instrument, last.position);
            let Some(member) = self.member(reader) else { return };
            if let Some(place) = member.places.get(&number) {
                member.notify(*place);
            }
        });
    }

    /// Removes a reader from the tables and its publishers.
    fn forget_reader(&mut self, number: u32) {
        for publisher in self.links.publishers(number) {
            if let Some(interest) = self.stream(publisher).and_then(Stream::interest) {
                interest.forget(number);
            }
            self.links.remove(publisher, number);
            self.tell(publisher, &ToNode::Gone { subscriber: number }, Vec::new());
        }
    }
}
