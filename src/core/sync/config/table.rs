//! The same keys in TOML: a text, or an array of texts where several things may be said.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{BadConfig, Setting, Value};
use crate::core::printable::printable;

/// The settings of a file, in order.
pub(super) fn read(text: &str) -> Result<Vec<Setting>, BadConfig> {
    let line = |span: Range<usize>| text.bytes().take(span.start).filter(|b| *b == b'\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        BadConfig::new(error.span().map_or(1, line), "", printable(error.message().trim()).replace('\n', " "))
    })?;
    let setting = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let (key, line): (&std::borrow::Cow<'_, str>, _) = (key.get_ref(), line(key.span()));
        match value_of(value.get_ref()) {
            Some(value) => Ok(Setting { key: key.to_string(), line, value }),
            None => Err(BadConfig::new(line, key, "it should be a text in quotes, or an array of such texts")),
        }
    };
    let mut settings = table.get_ref().iter().map(setting).collect::<Result<Vec<_>, _>>()?;
    settings.sort_by_key(|setting| setting.line);
    Ok(settings)
}

fn value_of(value: &DeValue<'_>) -> Option<Value> {
    if let Some(text) = value.as_str() {
        return Some(Value::Text(text.to_owned()));
    }
    let texts = value.as_array()?.iter().map(|one| one.get_ref().as_str().map(str::to_owned));
    texts.collect::<Option<_>>().map(Value::List)
}
