//! `add`: transfers enter the state file and nothing else happens; `run` does the rest.

use crate::cli::exit::{self, Exit};
use crate::cli::foreign::{self, Added, printable};
use crate::cli::jobs;
use crate::cli::settings::Plan;
use crate::cli::target;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::Direction;
use crate::engine::{Job, Target};

/// So many are told one by one.
const TOLD: usize = 20;

/// Enters all jobs in one write.
pub(crate) fn run(plan: &Plan, say: &dyn Fn(&str), news: &dyn Fn(&str)) -> Result<Exit, Trouble> {
    jobs::folders(&plan.jobs).iter().try_for_each(|folder| target::create_folder(folder))?;
    let added = foreign::add(&plan.settings.state_file, &plan.jobs)?;
    for (job, added) in plan.jobs.iter().zip(&added) {
        match added {
            Added::Refused(fault) => say(&format!("{}: {}", place(job), printable(&fault.to_string()))),
            told if plan.jobs.len() <= TOLD => news(&format!("{}: {}", place(job), line(told, job.target.direction()))),
            _ => {}
        }
    }
    if plan.jobs.len() > TOLD {
        let new = added.iter().filter(|a| matches!(a, Added::New(_))).count();
        news(&format!("{new} downloads added, {} known before", added.len() - new));
    }
    Ok(exit::worst(added.iter().map(status)))
}

fn line(added: &Added, direction: Direction) -> String {
    let (does, whole) = match direction {
        Direction::Download => ("downloads it", "here already"),
        Direction::Upload => ("uploads it", "sent already, and not changed since"),
    };
    match added {
        Added::New(id) => format!("added ({id}); `persxfer run` {does}"),
        Added::Updated(id) => format!("is there already ({id}), and now as said"),
        Added::Complete(evidence) => format!("{whole}, evidence: {}", evidence.word()),
        Added::Refused(fault) => fault.to_string(),
    }
}

const fn status(added: &Added) -> Exit {
    match added {
        Added::New(_) | Added::Updated(_) | Added::Complete(_) => Exit::Complete,
        Added::Refused(_) => Exit::Local,
    }
}

fn place(job: &Job) -> String {
    match &job.target {
        Target::File(path) | Target::Source(path) => printable(&path.display().to_string()),
        Target::ServerNamed(_) => job.urls.first().map(ToString::to_string).unwrap_or_default(),
    }
}
