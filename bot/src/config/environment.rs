//! What the process was started with: variables and folders.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The variables and the folder that a configuration is read with.
#[derive(Clone, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect(), folder: PathBuf::new() }
    }

    /// One with these variables, in this folder; an empty folder is the current one.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>, folder: PathBuf) -> Self {
        Self { variables: variables.into_iter().collect(), folder }
    }

    /// The variables of this program, sorted by name.
    pub(super) fn ours(&self) -> Vec<(String, &OsStr)> {
        let named = self.variables.iter().filter_map(|(name, value)| {
            let name = name.to_string_lossy();
            name.starts_with(PREFIX).then(|| (name.into_owned(), value.as_os_str()))
        });
        let mut ours: Vec<_> = named.collect();
        ours.sort();
        ours
    }

    /// The file that `AZALEA_CONFIG` names.
    pub(super) fn named_file(&self) -> Option<PathBuf> {
        self.get("AZALEA_CONFIG").map(PathBuf::from)
    }

    /// Where a configuration may be, the most wanted first.
    pub(super) fn usual_files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.folder.join(FILE)];
        files.extend(self.user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join(FILE)));
        files
    }

    /// Where the store is unless it is set: a folder of its own among the user's data, or in the current folder when
    /// there is no user.
    pub(super) fn data_folder(&self) -> PathBuf {
        self.user_folder("XDG_DATA_HOME", ".local/share").unwrap_or_else(|| self.folder.join("azalea-data"))
    }

    /// Our folder in one of the user's, which a variable names or which has its usual place at home.
    fn user_folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        // Relative ones are to be ignored, says the specification of these variables.
        let named = self.get(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder = named.or_else(|| self.get("HOME").map(|home| PathBuf::from(home).join(usual)))?;
        Some(folder.join("azalea"))
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        let variable = self.variables.iter().find(|(known, _)| known == name);
        variable.map(|(_, value)| value.as_os_str()).filter(|value| !value.is_empty())
    }
}

impl std::fmt::Debug for Environment {
    /// Without values: some of them are secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.variables.iter().map(|(name, _)| name).collect();
        f.debug_struct("Environment").field("variables", &names).field("folder", &self.folder).finish()
    }
}

/// How the names of our variables begin.
pub(super) const PREFIX: &str = "AZALEA_";

const FILE: &str = "azalea.toml";

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::new(variables.iter().map(|(name, value)| (name.into(), value.into())), "here".into())
    }

    #[test]
    fn the_user_s_folders_follow_their_variables() {
        let xdg = environment(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "relative")]);
        assert_eq!(
            xdg.usual_files(),
            [PathBuf::from("here/azalea.toml"), PathBuf::from("/c/azalea/azalea.toml")]
        );
        assert_eq!(xdg.data_folder(), PathBuf::from("/h/.local/share/azalea"));
        let nobody = environment(&[("HOME", "")]);
        assert_eq!(nobody.usual_files(), [PathBuf::from("here/azalea.toml")]);
        assert_eq!(nobody.data_folder(), PathBuf::from("here/azalea-data"));
    }

    #[test]
    fn values_of_variables_are_not_shown() {
        let shown = format!("{:?}", environment(&[("AZALEA_DISCORD__TOKEN", "hunter2")]));
        assert!(shown.contains("AZALEA_DISCORD__TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
