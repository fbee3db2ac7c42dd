//! The example: every key with its default and the reason for it.

use std::fmt::Write as _;

use crate::config::keys::keys;
use crate::config::layers::variable_of;

/// The text of `azalea.example.toml`: a file that can be read, and that changes nothing.
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    let mut section = "";
    for key in keys() {
        let (in_section, rest) = key.name.split_once('.').unwrap_or(("", key.name));
        if in_section != section {
            section = in_section;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n[{section}]");
        }
        let _ = writeln!(text);
        for line in wrap(&format!("{} Allowed: {}. [{}]", key.reason, key.allowed, variable_of(key.name))) {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "{rest} = {}", key.default);
    }
    text
}

/// The words of `text` in lines of bounded length.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let full = |line: &String| !line.is_empty() && line.len().saturating_add(word.len()) >= LINE_BYTES;
        if lines.last().is_some_and(full) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

const HEAD: &str = "\
# Azalea's configuration: every key with its default. A key that is left out has its default.
#
# It is read from --config, or what AZALEA_CONFIG names, or ./azalea.toml, or azalea/azalea.toml in your configuration
# folder. The variable in brackets overrides the key. Times are written like \"250ms\", \"30s\", \"5m\" or \"1h30m\", sizes
# like \"10MiB\", \"10MB\" or 10485760. An empty text means that the key is not set. `azalea config check` tells what is
# in effect and where it comes from.
";

const LINE_BYTES: usize = 116;
