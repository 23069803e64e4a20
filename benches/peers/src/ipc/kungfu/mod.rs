//! A model of Kungfu's notification, written from a description of how version 2.4.77 works. It is a model and no part
//! of Kungfu: journals without pages, no registry, no timers, no state, no Python. What it leaves out would cost time, so
//! the real one is slower.

mod journal;
mod nanomsg;
mod notice;
mod roles;

use super::trial::{
    Role, Scene, SubjectLayout,
    load::Load,
    memory::{Cutter, Part},
    post::Post,
};
use nanomsg::Nanomsg;
use notice::{Master, Notice};
use std::{ops::Range, path::Path};

/// Returns the reason why the model cannot run here; `None` if it can.
pub fn missing() -> Option<String> {
    Nanomsg::load().err().map(|error| format!("{error:#}"))
}

/// Places of the journals in the memory.
#[derive(Debug)]
pub struct Layout {
    /// Journal from md to all processes.
    quotes: Range<u64>,
    /// Journals from each strategy to td.
    orders: Vec<Range<u64>>,
    /// Journals from td to each strategy.
    answers: Vec<Range<u64>>,
}

impl Layout {
    /// Cuts memory for all journals of a run.
    pub fn cut(cutter: &mut Cutter, load: &Load) -> Self {
        let quotes = cutter.cut(journal::bytes(load.ticks));
        let mut each =
            || (0..load.strategies).map(|_| cutter.cut(journal::bytes(load.ticks_of_one()))).collect();
        Self { quotes, orders: each(), answers: each() }
    }
}

/// Gives access to the journals of a run.
#[derive(Debug)]
struct Journals<'a> {
    scene: &'a Scene,
    layout: &'a Layout,
}

impl Journals<'_> {
    fn quotes(&self) -> Part {
        self.scene.part(&self.layout.quotes)
    }

    fn of_one(&self, journals: &[Range<u64>], strategy: u32) -> anyhow::Result<Part> {
        let bytes = usize::try_from(strategy).ok().and_then(|at| journals.get(at));
        Ok(self.scene.part(bytes.ok_or_else(|| anyhow::anyhow!("no strategy {strategy}"))?))
    }

    fn orders(&self, strategy: u32) -> anyhow::Result<Part> {
        self.of_one(&self.layout.orders, strategy)
    }

    fn answers(&self, strategy: u32) -> anyhow::Result<Part> {
        self.of_one(&self.layout.answers, strategy)
    }
}

/// Runs one process of the model.
pub fn play(scene: &Scene, post: &mut Post, folder: &Path) -> anyhow::Result<()> {
    let SubjectLayout::KungfuModel(layout) = &scene.layout.subject else {
        anyhow::bail!("the trial is of another subject");
    };
    let library = Nanomsg::load()?;
    let journals = Journals { scene, layout };
    if post.role == Role::Master {
        return roles::master(post, &Master::bind(&library, folder, post.is_spinning)?);
    }
    let notice = Notice::connect(&library, folder, post.is_spinning)?;
    match post.role {
        Role::Cached => roles::cached(post, &notice, journals.quotes()),
        Role::Md => roles::md(post, &notice, scene, journals.quotes()),
        Role::Td => roles::td(post, &notice, scene, &journals),
        Role::Strategy(number) => roles::strategy(post, &notice, number, &journals),
        Role::Master | Role::Host => anyhow::bail!("{} has no part in the model", post.role.name()),
    }
}
