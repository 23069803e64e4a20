//! Transports that are compared.

/// Waiting mode of the receiving side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It polls, and never sleeps.
    Spin,
    /// It sleeps until it is woken.
    Park,
}

/// One transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// One word that goes from core to core and back: nothing is faster
    Line,
    /// The same over two lines: a head beside the payload, as records and other rings have it
    LinePair,
    /// lowlat-ipc: a stream that its reader looks at, with records of one line: what stands in a head, and no payload
    LowlatHead,
    /// lowlat-ipc: a stream that its reader looks at, with the payload behind the head
    LowlatStream,
    /// lowlat-ipc: as its runtime uses it, with router, ring and inbox
    LowlatInbox,
    /// ringfire, spinning
    Ringfire,
    /// iceoryx2, publish and subscribe
    Iceoryx2,
    /// Aeron over IPC, a publication and a subscription
    Aeron,
    /// A futex and a line, nothing else: the floor of sleeping
    Futex,
    /// lowlat-ipc: router, ring, inbox and bell
    LowlatBell,
    /// A pipe
    Pipe,
    /// An eventfd, and a line for the payload
    Eventfd,
    /// A unix socket that keeps messages apart
    Seqpacket,
    /// ringfire, which spins 32 times and then sleeps
    RingfireAdaptive,
    /// ringfire, which sleeps at once
    RingfireSleep,
    /// iceoryx2, publish and subscribe with an event for each message
    Iceoryx2Event,
}

impl Subject {
    /// All subjects, with the floors first.
    pub const ALL: [Self; 16] = [
        Self::Line,
        Self::LinePair,
        Self::LowlatHead,
        Self::LowlatStream,
        Self::LowlatInbox,
        Self::Ringfire,
        Self::Iceoryx2,
        Self::Aeron,
        Self::Futex,
        Self::LowlatBell,
        Self::Pipe,
        Self::Eventfd,
        Self::Seqpacket,
        Self::RingfireAdaptive,
        Self::RingfireSleep,
        Self::Iceoryx2Event,
    ];

    /// As the command line and figures name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::LinePair => "line-pair",
            Self::LowlatHead => "lowlat-head",
            Self::LowlatStream => "lowlat-stream",
            Self::LowlatInbox => "lowlat-inbox",
            Self::Ringfire => "ringfire",
            Self::Iceoryx2 => "iceoryx2",
            Self::Aeron => "aeron",
            Self::Futex => "futex",
            Self::LowlatBell => "lowlat-bell",
            Self::Pipe => "pipe",
            Self::Eventfd => "eventfd",
            Self::Seqpacket => "seqpacket",
            Self::RingfireAdaptive => "ringfire-adaptive",
            Self::RingfireSleep => "ringfire-sleep",
            Self::Iceoryx2Event => "iceoryx2-event",
        }
    }

    /// Returns the waiting mode of its receiver.
    pub fn wait(self) -> Wait {
        match self {
            Self::Line
            | Self::LinePair
            | Self::LowlatHead
            | Self::LowlatStream
            | Self::LowlatInbox
            | Self::Ringfire
            | Self::Iceoryx2
            | Self::Aeron => Wait::Spin,
            _ => Wait::Park,
        }
    }

    /// Returns true if it belongs to lowlat.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::LowlatHead | Self::LowlatStream | Self::LowlatInbox | Self::LowlatBell)
    }

    /// Returns the reason why it takes no part here; `None` if it does.
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Self::Iceoryx2 | Self::Iceoryx2Event if cfg!(not(feature = "iceoryx2")) => {
                Some("build with --features iceoryx2")
            }
            Self::Aeron if cfg!(not(feature = "aeron")) => Some("build with --features aeron"),
            _ => None,
        }
    }
}

impl Wait {
    /// Returns the subject that the others are compared with.
    pub fn floor(self) -> Subject {
        match self {
            Self::Spin => Subject::Line,
            Self::Park => Subject::Futex,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn names_are_those_of_the_command_line() {
        for subject in Subject::ALL {
            assert_eq!(subject.to_possible_value().unwrap().get_name(), subject.name());
        }
        assert_eq!(Subject::value_variants(), Subject::ALL);
        for wait in [Wait::Spin, Wait::Park] {
            assert_eq!(wait.floor().wait(), wait);
        }
    }
}
