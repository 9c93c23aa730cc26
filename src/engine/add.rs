//! Entering downloads into the state file without running them: one write, however many there are, and no network.

use crate::core::failure::LocalFault;
use crate::core::name::boinc_name;
use crate::core::pers_xfer::record::{Evidence, Record, Status, XferId};
use crate::core::pers_xfer::sharing::{self, Wanted};
use crate::core::state::Document;
use crate::core::time::Now;
use crate::engine::admit::{self, Admission};
use crate::engine::claims::{Living, Twins};
use crate::engine::control::leave_wish;
use crate::engine::run::plain_name;
use crate::engine::{EngineError, Job};
use crate::io::clock::Clock;
use crate::io::entropy::system_rng;
use crate::io::state_file::StateFile;

/// What became of a download that was to be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is entered.
    New(XferId),
    /// It was there already; what was said of it now holds.
    Updated(XferId),
    /// It is complete. Whether the server has something newer was not asked.
    Complete(Evidence),
    /// It cannot be entered.
    Refused(LocalFault),
}

/// What is at hand while jobs are entered.
struct Entering<'a> {
    now: Now,
    rng: &'a mut dyn rand::Rng,
    living: Living<'a>,
    twins: Twins,
}

/// Enters these jobs; an answer a job, in their order.
///
/// # Errors
/// [`EngineError`] where the state cannot be read or written: then none was entered.
pub fn add(state_file: &std::path::Path, jobs: &[Job]) -> Result<Vec<Added>, EngineError> {
    let file = StateFile::at(state_file);
    let mut rng = system_rng()?;
    let now = Clock::system().now();
    let added = file.commit(|document| {
        let living = Living::new(state_file);
        let mut entering = Entering { now, rng: &mut rng, living, twins: Twins::default() };
        jobs.iter().map(|job| entering.enter(job, document)).collect()
    })?;
    Ok(added)
}

impl Entering<'_> {
    fn enter(&mut self, job: &Job, document: &mut Document) -> Added {
        let known = admit::known(document, job, &mut self.twins).and_then(|id| document.get(id));
        if let Some(record) = &known
            && let Some(fault) = self.living.in_use(record)
        {
            leave_wish(document, record, Wanted::Mirrors(job.urls.clone()), self.now, self.rng);
            return Added::Refused(fault);
        }
        let known = known.map(|record| admit::settle(record, document));
        let known = known.map(|record| sharing::obeyed(record, &[], self.now, self.rng));
        let (id, was_there) = (XferId(rand::RngExt::random(self.rng)), known.is_some());
        let fresh = || admit::new_record(job, id, document.unique_name(&boinc_name(&plain_name(job))));
        match admit::admit(job, known.clone(), fresh) {
            Admission::Run(entry) if entry.revalidate.is_some() => Added::Complete(evidence_of(known.as_ref())),
            Admission::Run(entry) => {
                let record = self.alive(entry.record);
                document.put(&record);
                self.twins.note(&record);
                if was_there { Added::Updated(record.id) } else { Added::New(record.id) }
            }
            Admission::Done { evidence, .. } => Added::Complete(evidence),
            Admission::Refused(fault) => Added::Refused(fault),
        }
    }

    /// One that had failed begins a new life.
    fn alive(&mut self, record: Record) -> Record {
        match record.status {
            Status::Failed { .. } => sharing::obeyed(record, &[Wanted::Retry], self.now, self.rng),
            _ => record,
        }
    }
}

fn evidence_of(record: Option<&Record>) -> Evidence {
    record.and_then(|r| r.finished.as_ref()).map_or(Evidence::None, |f| f.evidence)
}
