//! Keys, and what a session learns about signing with them: the server's clock, and where the bucket is.

use super::credentials::Credentials;
use super::place::{Place, PlaceSettings, both_aws, checked_region, is_aws};
use super::sign::Signing;
use crate::core::failure::{Failure, RedirectFault};
use crate::core::time::{Delay, Epoch};
use crate::core::upload::ask::Ask;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::Job;
use crate::core::url::MirrorUrl;

/// The authority of one who has keys.
#[derive(Debug)]
pub(super) struct Signed {
    credentials: Credentials,
    region: String,
    /// Where the object is, when it has been found to be elsewhere.
    moved: Option<MirrorUrl>,
    clock: Option<Clock>,
}

/// How far the server's clock is from ours.
#[derive(Clone, Copy, Debug)]
enum Clock {
    Ahead(Delay),
    Behind(Delay),
}

impl Signed {
    pub(super) fn new(credentials: Credentials, region: &str) -> Self {
        Self { credentials, region: region.to_owned(), moved: None, clock: None }
    }

    /// Where the object is.
    pub(super) fn url<'a>(&'a self, job: &'a Job) -> &'a MirrorUrl {
        self.moved.as_ref().unwrap_or_else(|| job.server())
    }

    pub(super) fn sign(&self, ask: Ask, payload: &str, now: Epoch) -> Option<Ask> {
        let at = match self.clock {
            None => now,
            Some(Clock::Ahead(by)) => now + by,
            Some(Clock::Behind(by)) => Epoch::from_micros(now.as_micros().saturating_sub_unsigned(by.as_micros())),
        };
        Signing { credentials: &self.credentials, region: &self.region, service: "s3", at }.sign(ask, payload)
    }

    /// The server's clock is another: signs by that from now on. `false` where this was learned before.
    pub(super) fn learn_clock(&mut self, server: Epoch, ours: Epoch) -> bool {
        let fresh = self.clock.is_none();
        if fresh {
            self.clock =
                Some(if server > ours { Clock::Ahead(server.since(ours)) } else { Clock::Behind(ours.since(server)) });
        }
        fresh
    }

    /// The bucket is in another region: asks there from now on. `false` where nothing new is said, or it moves again.
    pub(super) fn learn_region(&mut self, job: &Job, region: &str) -> bool {
        if self.moved.is_some() || region == self.region {
            return false;
        }
        // Elsewhere a region has no host of its own, and where the bucket stands in a URL is not known here.
        let there = match is_aws(job.server()) {
            true => {
                let settings = PlaceSettings { name: &job.name, ..PlaceSettings::default() };
                Place::of_url(job.server(), &settings)
                    .and_then(|place| place.in_region(region))
                    .map(|p| p.url().clone())
            }
            false => checked_region(region).map(|_| job.server().clone()),
        };
        let Ok(there) = there else { return false };
        (self.region, self.moved) = (region.to_owned(), Some(there));
        true
    }

    /// A redirect leads to another host: followed once, where requests signed with these keys may go. `None` where it
    /// is no redirect to follow.
    pub(super) fn learn_location(&mut self, job: &Job, location: &str, code: u16) -> Option<Result<(), UpFailure>> {
        if self.moved.is_some() {
            return None;
        }
        let base = self.url(job);
        let fault = |fault| Some(Err(UpFailure::Transfer(Failure::Redirect(fault))));
        let there = match base.join(location, code) {
            Ok(there) if base.is_https() && !there.is_https() => return fault(RedirectFault::Downgrade),
            Ok(there) => there,
            Err(bad) => return fault(bad),
        };
        if there.host() != base.host() && !both_aws(&there, base) {
            return Some(Err(UpFailure::ElsewhereNamed { to: there.origin().to_string() }));
        }
        let mut object = there.secret_url().clone();
        object.set_query(None);
        self.moved = MirrorUrl::parse(object.as_str()).ok();
        self.moved.is_some().then_some(Ok(()))
    }
}
