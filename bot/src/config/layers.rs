//! A file under the environment, with where each value comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use toml_edit::{ImDocument, TableLike};

use crate::config::environment::{Environment, PREFIX};
use crate::config::error::{ConfigError, suggestion};
use crate::config::keys::keys;
use crate::config::kind::{Kind, written};

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, with its section.
    pub key: &'static str,
    /// The value as it would be written in a file; a secret is `"(set)"`.
    pub value: String,
    /// Where the value comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// It stands in a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from one, where that could be found.
        line: Option<usize>,
    },
    /// A variable of the environment has it.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: Some(line) } => write!(f, "{}, line {line}", path.display()),
            Self::File { path, line: None } => path.display().fmt(f),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// The layers, being read key by key.
pub(super) struct Layers<'a> {
    figment: Figment,
    file: Option<File<'a>>,
    problems: Vec<String>,
    entries: Vec<Entry>,
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
    document: ImDocument<&'a str>,
}

impl<'a> Layers<'a> {
    /// Puts the layers on top of each other. Keys and variables that nobody knows are noted as problems.
    ///
    /// # Errors
    /// When the file is no TOML; nothing can be said about its keys then.
    pub(super) fn new(
        file: Option<(&'a Path, &'a str)>,
        environment: &Environment,
    ) -> Result<Self, ConfigError> {
        let mut layers =
            Self { figment: Figment::new(), file: None, problems: Vec::new(), entries: Vec::new() };
        if let Some((path, text)) = file {
            let document = ImDocument::parse(text).map_err(|error| {
                let line = error.span().map(|span| format!(", line {}", line_at(text, span.start)));
                // In one line, and without the text around the mistake, which can hold a secret.
                let what = error.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
                ConfigError::one(format!("{}{}: {what}", path.display(), line.unwrap_or_default()))
            })?;
            let data = Toml::string(text)
                .data()
                .map_err(|error| ConfigError::one(format!("{}: {}", path.display(), error.kind)))?;
            layers.figment = layers.figment.merge(Layer { metadata: Metadata::from(FILE, path), data });
            layers.unknown_in(path, text, document.as_table(), "");
            layers.file = Some(File { path, text, document });
        }
        let variables = layers.variables(environment);
        let data = Profile::Default.collect(variables);
        layers.figment = layers.figment.merge(Layer { metadata: Metadata::named(ENVIRONMENT), data });
        Ok(layers)
    }

    /// The value of a key: what a layer says, or else its default. What is not allowed is noted as a problem.
    pub(super) fn read<K: Kind>(&mut self, key: &'static str, default: K::Value) -> K::Value {
        let (value, origin) = match self.figment.find_value(key) {
            // Nothing but "there is none" can go wrong here.
            Err(_) => (default, Origin::Default),
            Ok(raw) => {
                let origin = self.origin(key, &raw);
                let value = K::read(&raw).unwrap_or_else(|| {
                    let shown = if K::SECRET { String::new() } else { format!(" = {}", written(&raw)) };
                    self.problems.push(format!("{key}{shown} ({origin}): it must be {}", K::allowed()));
                    default
                });
                (value, origin)
            }
        };
        self.entries.push(Entry { key, value: K::show(&value), origin });
        value
    }

    /// Whether nobody set the key, which has been read.
    pub(super) fn is_default(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && entry.origin == Origin::Default)
    }

    /// Shows another value for the key, which has been read.
    pub(super) fn amend(&mut self, key: &str, shown: String) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
            entry.value = shown;
        }
    }

    /// Notes that the key's value, which has been read, does not go with others.
    pub(super) fn contradiction(&mut self, key: &str, what: &str) {
        let Some(entry) = self.entries.iter().find(|entry| entry.key == key) else { return };
        self.problems.push(format!("{key} = {} ({}): {what}", entry.value, entry.origin));
    }

    /// All that was read.
    ///
    /// # Errors
    /// All that is wrong.
    pub(super) fn finish(self) -> Result<Vec<Entry>, ConfigError> {
        ConfigError::of(self.problems).map(|()| self.entries)
    }

    fn origin(&self, key: &str, raw: &Value) -> Origin {
        let in_file = self.figment.get_metadata(raw.tag()).is_some_and(|layer| layer.name == FILE);
        match &self.file {
            Some(file) if in_file => Origin::File { path: file.path.to_owned(), line: file.line_of(key) },
            _ => Origin::Variable(variable_of(key)),
        }
    }

    /// Notes what in a table of the file nobody knows. `above` is the table's own key with a dot, or nothing.
    fn unknown_in(&mut self, path: &Path, text: &str, table: &dyn TableLike, above: &str) {
        for (name, item) in table.iter() {
            let key = format!("{above}{name}");
            let below = format!("{key}.");
            if keys().any(|known| known.name == key) {
                continue;
            }
            let line = table.get_key_value(name).and_then(|(key, _)| key.span());
            let line = line.map(|span| format!(", line {}", line_at(text, span.start))).unwrap_or_default();
            let place = format!("({}{line})", path.display());
            match item.as_table_like() {
                Some(inner) if keys().any(|known| known.name.starts_with(&below)) => {
                    self.unknown_in(path, text, inner, &below);
                }
                _ if keys().any(|known| known.name.starts_with(&below)) => {
                    self.problems.push(format!("{key} {place} is a section and has no value of its own"));
                }
                _ => {
                    // Of an unknown section, the first key can tell what was meant.
                    let first = item.as_table_like().and_then(|inner| inner.iter().next());
                    let key = first.map_or(key, |(first, _)| format!("{below}{first}"));
                    let meant = suggestion(&key, keys().map(|known| known.name), ".");
                    self.problems.push(format!("unknown key {key} {place}{meant}"));
                }
            }
        }
    }

    /// The values that variables have, as nested tables. Those that nobody knows are noted as problems.
    fn variables(&mut self, environment: &Environment) -> Dict {
        let known: BTreeMap<String, &'static str> =
            keys().map(|key| (variable_of(key.name), key.name)).collect();
        let mut values = Dict::new();
        for (name, value) in environment.ours() {
            let key = known.get(&name);
            match (key, value.to_str()) {
                (Some(key), Some(text)) => insert(&mut values, key, text),
                (Some(_), None) => self.problems.push(format!("the variable {name} holds no UTF-8 text")),
                // With two underscores it can mean nothing but a key.
                (None, _) if name.contains(JOINT) => {
                    let meant = suggestion(&name, known.keys().map(String::as_str), JOINT);
                    self.problems.push(format!("unknown variable {name}{meant}"));
                }
                (None, _) => {
                    let meant = known.keys().find(|known| known.replace(JOINT, "_") == name);
                    if let Some(meant) = meant {
                        self.problems.push(format!("unknown variable {name}; did you mean {meant}?"));
                    }
                }
            }
        }
        values
    }
}

impl File<'_> {
    /// The line in which the key stands.
    fn line_of(&self, key: &str) -> Option<usize> {
        let mut table: &dyn TableLike = self.document.as_table();
        let mut parts = key.split('.').peekable();
        while let Some(part) = parts.next() {
            let (name, item) = table.get_key_value(part)?;
            if parts.peek().is_none() {
                return name.span().map(|span| line_at(self.text, span.start));
            }
            table = item.as_table_like()?;
        }
        None
    }
}

/// One layer as figment takes it.
struct Layer {
    metadata: Metadata,
    data: Map<Profile, Dict>,
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        self.metadata.clone()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(self.data.clone())
    }
}

/// Puts a text at a key, making the tables on the way.
fn insert(into: &mut Dict, key: &str, text: &str) {
    match key.split_once('.') {
        None => {
            into.insert(key.to_owned(), text.into());
        }
        Some((table, rest)) => {
            let inner = into.entry(table.to_owned()).or_insert_with(|| Dict::new().into());
            if let Value::Dict(_, inner) = inner {
                insert(inner, rest, text);
            }
        }
    }
}

/// The variable that overrides a key.
pub(super) fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', JOINT).to_uppercase())
}

/// The line, from one, of the byte at `at`.
fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count().saturating_add(1)
}

const FILE: &str = "file";
const ENVIRONMENT: &str = "environment";

/// What stands in a variable's name for the dot in a key.
const JOINT: &str = "__";
