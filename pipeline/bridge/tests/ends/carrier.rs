//! A queue in place of a network.

use lowlat_bridge::{Carrier, Offered};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

#[derive(Debug, Default)]
struct State {
    frames: RefCell<VecDeque<Vec<u8>>>,
    is_connected: Cell<bool>,
    /// Capacity of the queue, in frames.
    room: Cell<usize>,
    closed: RefCell<Option<String>>,
}

/// Handle of the queue, for both ends.
#[derive(Debug, Clone)]
pub struct Queue(Rc<State>);

impl Queue {
    pub fn connected() -> Self {
        let state = State::default();
        state.is_connected.set(true);
        state.room.set(usize::MAX);
        Self(Rc::new(state))
    }

    pub fn connect(&self, is_connected: bool) {
        self.0.is_connected.set(is_connected);
    }

    pub fn set_room(&self, frames: usize) {
        self.0.room.set(frames);
    }

    pub fn close(&self, words: &str) {
        *self.0.closed.borrow_mut() = Some(words.to_owned());
    }

    pub fn drain(&self) -> Vec<Vec<u8>> {
        self.0.frames.borrow_mut().drain(..).collect()
    }
}

impl Carrier for Queue {
    fn offer(&mut self, frame: &[u8]) -> Offered {
        if let Some(words) = &*self.0.closed.borrow() {
            return Offered::Closed(words.clone());
        }
        if !self.is_connected() {
            return Offered::NotConnected;
        }
        let mut frames = self.0.frames.borrow_mut();
        if frames.len() >= self.0.room.get() {
            return Offered::BackPressure;
        }
        frames.push_back(frame.to_vec());
        Offered::Taken
    }

    fn is_connected(&self) -> bool {
        self.0.is_connected.get()
    }
}
