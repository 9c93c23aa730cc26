//! Uploads that nobody knows the name of: an upload was asked for, and the answer was lost. At the end the store is asked which
//! uploads of this key are open, and what can only be ours is dropped: begun when it was asked for, and without a part.

use std::collections::VecDeque;

use super::S3;
use super::place::{Place, PlaceSettings};
use super::request::{Authority, Op};
use super::sign::{encoded, moment};
use super::xml::Element;
use crate::core::time::{Delay, Epoch};
use crate::core::upload::PATIENCE;
use crate::core::upload::ask::Answer;
use crate::core::upload::found::{Call, Found, Job, Turn};
use crate::core::upload::session::Handle;
use crate::core::url::MirrorUrl;
use crate::core::validator::read_http_date;

/// Clocks tell whole seconds, and the answer that told one was some time under way.
const SLACK: Delay = Delay::from_secs(5);

/// So long after it was asked for, and still waited for.
const WITHIN: Delay = Delay::from_secs(PATIENCE.as_secs() + 5);

/// What is looked for once the call has ended otherwise.
#[derive(Debug)]
pub(super) struct Sweep {
    /// How the call ended.
    then: Found,
    /// Uploads that may be ours.
    ids: VecDeque<String>,
}

impl S3 {
    /// An upload is asked for: until the answer is heard, there may be one.
    pub(super) fn create(&mut self, job: &mut Job) -> Turn {
        self.first_asked = job.session.creating.is_none();
        job.session.creating.get_or_insert(job.now);
        self.issue(job, Op::Create)
    }

    /// The answer was heard. One that was lost before is still missing.
    pub(super) fn heard_of_creation(&self, job: &mut Job) {
        if self.first_asked {
            job.session.creating = None;
        }
    }

    /// A call that ends well, or cleaned up, ends with a look for what nobody knows of.
    pub(super) fn and_swept(&mut self, job: &Job, call: Call, turn: Turn) -> Turn {
        let due = job.session.creating.is_some() && self.sweep.is_none();
        let keys = matches!(self.authority, Authority::Signed(_));
        match turn {
            Turn::Found(then) if due && keys && ends(&then, call) => {
                self.sweep = Some(Sweep { then, ids: VecDeque::new() });
                self.issue(job, Op::Uploads)
            }
            other => other,
        }
    }

    /// A look that broke off is not taken again: the file is there.
    pub(super) fn cut_short(&mut self) -> Option<Turn> {
        self.sweep.take().map(|sweep| Turn::Found(sweep.then))
    }

    pub(super) fn swept(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        match self.op {
            Op::Uploads => {
                let ids = ours(job, answer);
                if let Some(sweep) = &mut self.sweep {
                    sweep.ids = ids.into();
                }
            }
            // Somebody sends parts to it: it is not ours.
            Op::Peek if !is_empty(answer) => self.leftover = None,
            Op::Peek => return self.issue(job, Op::Clear),
            _ => self.leftover = None,
        }
        match self.sweep.as_mut().and_then(|sweep| sweep.ids.pop_front()) {
            Some(id) => {
                self.leftover = Some(id);
                self.issue(job, Op::Peek)
            }
            None => {
                job.session.creating = None;
                self.cut_short().unwrap_or(Turn::Found(Found::Lost))
            }
        }
    }

    /// Where the store lists the uploads of this key.
    pub(super) fn uploads_url(job: &Job, object: &MirrorUrl) -> Option<MirrorUrl> {
        let place = Place::of_url(object, &PlaceSettings { name: &job.name, ..PlaceSettings::default() }).ok()?;
        let mut url = object.secret_url().clone();
        let parts = place.key().split('/').count();
        let held: Vec<String> = url.path_segments()?.map(str::to_owned).collect();
        url.set_path(&held.get(..held.len().checked_sub(parts)?)?.join("/"));
        url.set_query(Some(&format!("prefix={}&uploads=", encoded(place.key()))));
        MirrorUrl::parse(url.as_str()).ok()
    }
}

fn ends(found: &Found, call: Call) -> bool {
    match found {
        Found::Complete(_) => true,
        Found::Lost => call == Call::Abandon,
        _ => false,
    }
}

/// Of the uploads that are open, those of this key that were begun when one was asked for in vain, but the one that is known.
/// The store's clock is told by its answer.
fn ours(job: &Job, answer: &Answer) -> Vec<String> {
    let Some(since) = job.session.creating.filter(|_| answer.is_success()) else { return Vec::new() };
    let place = Place::of_url(job.server(), &PlaceSettings { name: &job.name, ..PlaceSettings::default() });
    let (Ok(place), Some(root)) = (place, Element::read(&answer.body)) else { return Vec::new() };
    let there = answer.field("date").and_then(read_http_date).unwrap_or(job.now);
    let known = |id: &str| matches!(&job.session.handle, Some(Handle::Id(ours)) if ours == id);
    let mut found = Vec::new();
    for open in root.uploads() {
        let Some(begun) = begun(&open.initiated) else { continue };
        // How long ago, by either clock.
        let (ago, asked) = (there.since(begun), job.now.since(since));
        let in_time = ago <= asked.saturating_add(SLACK) && ago.saturating_add(WITHIN) >= asked;
        if open.key == place.key() && in_time && !known(&open.id) {
            found.push(open.id);
        }
    }
    found
}

/// `2026-12-01T01:02:03.000Z`, to the second.
fn begun(text: &str) -> Option<Epoch> {
    let second: String = text.chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
    moment(&format!("{second}Z"))
}

fn is_empty(answer: &Answer) -> bool {
    let page = Element::read(&answer.body).and_then(|root| root.page());
    answer.is_success() && page.is_some_and(|page| page.parts.is_empty())
}
