//! Entering many jobs at once: each is admitted as the state stands, and all are claimed in one write. What is new waits in
//! line with nothing but its identity; its record stands in the state until it gets its slot.

use crate::core::name::boinc_name;
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::pers_xfer::sharing::{self, OwnerId, Wanted};
use crate::core::state::Document;
use crate::core::time::Now;
use crate::engine::admit::{self, Admission, Entry};
use crate::engine::claims::{Claims, Living, Twins};
use crate::engine::control::leave_wish;
use crate::engine::run::plain_name;
use crate::engine::start::accepted;
use crate::engine::watch::is_new;
use crate::engine::{Ending, Job, Notice};

/// What became of a job.
#[derive(Debug)]
pub(super) enum Entered {
    /// It is new, and waits in line.
    InLine(XferId, Box<Notice>),
    /// It is known, and is taken up now.
    Runs(Box<Entry>),
    /// It was over before it began.
    Ended(Box<Job>, Option<Box<Record>>, Ending),
}

/// What is at hand while jobs are entered.
pub(super) struct Entering<'a> {
    pub(super) me: OwnerId,
    pub(super) claims: &'a mut Claims,
    pub(super) now: Now,
    pub(super) rng: &'a mut dyn rand::Rng,
    pub(super) living: Living<'a>,
    pub(super) twins: Twins,
}

impl Entering<'_> {
    /// Enters one.
    pub(super) fn enter(&mut self, job: Job, document: &mut Document) -> Entered {
        let known = admit::known(document, &job, &mut self.twins).and_then(|id| document.get(id));
        if let Some(record) = &known
            && let Some(fault) = self.living.in_use(record)
        {
            leave_wish(document, record, Wanted::Mirrors(job.urls.clone()), self.now, self.rng);
            return Entered::Ended(Box::new(job), None, Ending::Local(fault));
        }
        let known = known.map(|record| admit::settle(record, document));
        let known = known.map(|record| match record.status {
            Status::Done => record,
            _ => sharing::obeyed(record, &[], self.now, self.rng),
        });
        let id = XferId(rand::RngExt::random(self.rng));
        let fresh = || admit::new_record(&job, id, document.unique_name(&boinc_name(&plain_name(&job))));
        match admit::admit(&job, known.clone(), fresh) {
            Admission::Run(entry) => self.claim(*entry, document),
            Admission::Done { evidence, record } => {
                Entered::Ended(Box::new(job), record.or(known.map(Box::new)), Ending::Unchanged { evidence })
            }
            Admission::Refused(fault) => Entered::Ended(Box::new(job), known.map(Box::new), Ending::Local(fault)),
        }
    }

    /// It is ours with this write, unless the server is only asked about a finished file.
    fn claim(&mut self, mut entry: Entry, document: &mut Document) -> Entered {
        if entry.revalidate.is_some() {
            return Entered::Runs(Box::new(entry));
        }
        entry.record.owner = Some(self.me);
        document.put(&entry.record);
        self.claims.hold(entry.record.id);
        self.twins.note(&entry.record);
        if is_new(&entry.record) && !entry.failed_before {
            Entered::InLine(entry.record.id, Box::new(accepted(&entry.record)))
        } else {
            Entered::Runs(Box::new(entry))
        }
    }
}
