//! The keys: which there are, and what each means. `docs/config.md` and `examples/config.toml` hold the same list, and a
//! test compares them.

use crate::cli::config::ledger;
use crate::cli::config::value::{Page, Table, Value, Why};
use crate::cli::foreign;
use crate::core::civil::Weekday;
use crate::core::prefs::{
    ByHost, Hooks, HostPattern, HostPrefs, Hours, LoginFrom, Mode, NetHours, PerDirection, Preferences, Quotas,
    Sessions, Timetable, Travel,
};
use crate::core::url::MirrorUrl;

/// Everything.
pub(super) fn preferences(page: &Page<'_>) -> Result<Preferences, Why> {
    let parsed = page.table()?;
    let top = Table::top(*page, parsed.get_ref());
    let mut prefs = Preferences::default();
    if let Some(network) = top.read("network", Value::table)? {
        the_network(&network, &mut prefs)?;
        network.done()?;
    }
    if let Some(table) = top.read("transfers", Value::table)? {
        prefs.sessions = sessions(&table)?;
        table.done()?;
    }
    if let Some(table) = top.read("hooks", Value::table)? {
        prefs.hooks = hooks(&table)?;
        prefs.report_url = table.read("report_url", url)?;
        table.done()?;
    }
    if let Some(table) = top.read("ledger", Value::table)? {
        prefs.ledger = ledger::rules(&table)?;
        table.done()?;
    }
    if let Some(table) = top.read("host", Value::table)? {
        prefs.hosts = hosts(&table)?;
    }
    top.done()?;
    Ok(prefs)
}

fn the_network(table: &Table<'_>, prefs: &mut Preferences) -> Result<(), Why> {
    prefs.mode = table.read("mode", mode)?.unwrap_or_default();
    prefs.hours = NetHours { every: hours(table)?.unwrap_or_default(), days: days(table)? };
    prefs.rates = PerDirection {
        up: table.read("max_bytes_sec_up", Value::rate)?.flatten(),
        down: table.read("max_bytes_sec_down", Value::rate)?.flatten(),
    };
    prefs.timetable = table.read("windows", timetable)?.unwrap_or_default();
    prefs.quotas = quotas(table)?;
    prefs.travel = Travel {
        proxy: table.read("proxy", proxy)?,
        no_proxy: table.read("no_proxy", |value| value.text().map(str::to_owned))?,
        connect_timeout: table.read("connect_timeout", Value::duration)?,
        first_byte_timeout: table.read("first_byte_timeout", Value::duration)?,
        stall_timeout: table.read("stall_timeout", Value::duration)?,
    };
    Ok(())
}

fn mode(value: &Value<'_>) -> Result<Mode, Why> {
    match value.text()? {
        "always" => Ok(Mode::Always),
        "auto" => Ok(Mode::Auto),
        "never" => Ok(Mode::Never),
        _ => Err(value.fault("it should be \"always\", \"auto\" or \"never\"")),
    }
}

/// A span of the day: both of its ends, or neither.
fn hours(table: &Table<'_>) -> Result<Option<Hours>, Why> {
    let (start, end) = (table.get("net_start_hour"), table.get("net_end_hour"));
    match (&start, &end) {
        (Some(start), Some(end)) => Ok(Some(Hours { from: start.hour()?, to: end.hour()? })),
        (None, None) => Ok(None),
        (Some(one), None) => Err(one.fault("net_end_hour is missing; a span has both ends")),
        (None, Some(one)) => Err(one.fault("net_start_hour is missing; a span has both ends")),
    }
}

fn days(network: &Table<'_>) -> Result<[Option<Hours>; 7], Why> {
    let mut days = [None; 7];
    let Some(table) = network.read("day", Value::table)? else { return Ok(days) };
    for (key, value) in table.entries() {
        let day = Weekday::ALL.into_iter().find(|day| day.name().eq_ignore_ascii_case(&key));
        let day = day.ok_or_else(|| value.fault("it is no day of the week; write monday, tuesday and so on"))?;
        let span = value.table()?;
        days[day as usize] =
            Some(hours(&span)?.ok_or_else(|| value.fault("net_start_hour and net_end_hour are missing"))?);
        span.done()?;
    }
    Ok(days)
}

fn timetable(value: &Value<'_>) -> Result<Timetable, Why> {
    Timetable::parse(value.text()?).map_err(|error| value.fault(&error.to_string()))
}

fn quotas(table: &Table<'_>) -> Result<Quotas, Why> {
    let limit = |key| table.read(key, Value::mebibytes).map(Option::flatten);
    let (together, up, down) =
        (limit("daily_xfer_limit_mb")?, limit("daily_xfer_limit_mb_up")?, limit("daily_xfer_limit_mb_down")?);
    let period = table.get("daily_xfer_period_days");
    let days = period.as_ref().map_or(Ok(0), |value| value.number(0..=366))?;
    let quotas = Quotas { days, each: PerDirection { up, down }, together };
    let first = ["daily_xfer_limit_mb", "daily_xfer_limit_mb_up", "daily_xfer_limit_mb_down"].map(|key| table.get(key));
    match first.into_iter().flatten().next() {
        // With BOINC it would be no limit at all, which is hardly meant.
        Some(limit) if period.is_none() && (together.or(up).or(down)).is_some() => {
            Err(limit.fault("daily_xfer_period_days is missing; say in how many days so much may pass"))
        }
        _ => Ok(quotas),
    }
}

/// Its text may hold a password, so it is not repeated.
fn proxy(value: &Value<'_>) -> Result<String, Why> {
    let text = value.text()?;
    foreign::try_proxy(text).map_err(|why| value.fault(&why))?;
    Ok(text.to_owned())
}

fn sessions(table: &Table<'_>) -> Result<Sessions, Why> {
    let count = |key| table.read(key, |value| value.number(1..=i64::from(u16::MAX)));
    Ok(Sessions {
        all: count("max_transfers")?,
        per_host: count("max_transfers_per_host")?,
        per_direction: PerDirection { up: count("max_uploads")?, down: count("max_downloads")? },
    })
}

fn hooks(table: &Table<'_>) -> Result<Hooks, Why> {
    Ok(Hooks {
        complete: table.read("on_complete", command)?.unwrap_or_default(),
        failure: table.read("on_failure", command)?.unwrap_or_default(),
    })
}

fn command(value: &Value<'_>) -> Result<Vec<String>, Why> {
    let words = value.texts()?;
    match words.first() {
        Some(program) if !program.is_empty() => Ok(words),
        _ => Err(value.fault("the first word is missing: the program to run")),
    }
}

fn url(value: &Value<'_>) -> Result<MirrorUrl, Why> {
    MirrorUrl::parse(value.text()?).map_err(|error| value.fault(&error.to_string()))
}

fn hosts(table: &Table<'_>) -> Result<ByHost, Why> {
    let entry = |(key, value): (String, Value<'_>)| {
        let pattern = HostPattern::parse(&key).map_err(|error| value.fault(&error.to_string()))?;
        let table = value.table()?;
        let prefs = host(&table)?;
        table.done()?;
        Ok((pattern, prefs))
    };
    table.entries().map(entry).collect::<Result<_, Why>>().map(ByHost::new)
}

fn host(table: &Table<'_>) -> Result<HostPrefs, Why> {
    Ok(HostPrefs {
        connections: table.read("connections", |value| value.number(1..=16))?,
        sessions: table.read("max_transfers", |value| value.number(1..=i64::from(u16::MAX)))?,
        headers: table.read("headers", headers)?.unwrap_or_default(),
        cacert: table.read("cacert", Value::path)?,
        login: table.read("credentials", login)?,
    })
}

/// They may be secrets, so that only what is wrong with them is told.
fn headers(value: &Value<'_>) -> Result<Vec<String>, Why> {
    let headers = value.texts()?;
    headers.iter().try_for_each(|text| foreign::try_header(text)).map_err(|why| value.fault(&why))?;
    Ok(headers)
}

/// Where a user and a password stand: one of three places.
fn login(value: &Value<'_>) -> Result<LoginFrom, Why> {
    let table = value.table()?;
    let netrc = table.read("netrc", Value::yes)?.filter(|yes| *yes).map(|_| LoginFrom::Netrc);
    let file = table.read("file", Value::path)?.map(LoginFrom::File);
    let variable = table.read("env", |value| value.text().map(str::to_owned))?.map(LoginFrom::Env);
    table.done()?;
    let mut places = [netrc, file, variable].into_iter().flatten();
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        _ => Err(value.fault("say one of netrc = true, file = \"PATH\" and env = \"NAME\"")),
    }
}
