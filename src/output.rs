//! Where results go: names made from the inputs' names, and files that are whole or absent.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use azalea_engine::{Fitted, OutputKind};

use crate::exit::{OutputError, ReaderGone, UsageError};
use crate::settings::{Destination, Input};
use crate::terminal::Screen;

/// The places of one run's results.
///
/// Derived names never meet: not each other, and not an input. They depend on the command line alone, not on
/// which job ends first.
#[derive(Debug)]
pub(crate) struct Places {
    plan: Plan,
    /// Every input that is a file, without links and dots.
    inputs: HashSet<PathBuf>,
    taken: HashSet<PathBuf>,
    /// A folder that this run made; it goes again when nothing was put there.
    made: Option<PathBuf>,
}

#[derive(Debug)]
enum Plan {
    /// One name per input, in their order, without extension.
    Derived(Vec<Derived>),
    Exactly(PathBuf),
    Stdout,
}

#[derive(Debug)]
struct Derived {
    folder: PathBuf,
    stem: OsString,
    suffix: &'static str,
}

impl Places {
    /// Finds a place for each input and makes the folder that all of them share, if there is to be one.
    ///
    /// # Errors
    /// [`OutputError`] when there can be no such place, [`UsageError`] for a file that would go to a terminal.
    pub(crate) fn new(inputs: &[Input], destination: &Destination) -> anyhow::Result<Self> {
        let mut made = None;
        let plan = match destination {
            Destination::Stdout if io::stdout().is_terminal() => {
                return Err(UsageError(
                    "standard output is a terminal; redirect it or name a file".to_owned(),
                )
                .into());
            }
            Destination::Stdout => Plan::Stdout,
            Destination::File(path) => Plan::Exactly(follow_link(path)),
            Destination::Folder(folder) => {
                if !folder.is_dir() {
                    fs::create_dir(folder).map_err(|cause| cannot("make the folder", folder, &cause))?;
                    made = Some(folder.clone());
                }
                Plan::Derived(derive_names(inputs, Some(folder)))
            }
            Destination::Beside => Plan::Derived(derive_names(inputs, None)),
        };
        let inputs = inputs
            .iter()
            .filter_map(|input| match input {
                Input::File(path) => path.canonicalize().ok(),
                Input::Stdin => None,
            })
            .collect();
        Ok(Self { plan, inputs, taken: HashSet::new(), made })
    }

    /// Sees, before any work is done for it, that the result of input number `index` can be put in its place.
    ///
    /// # Errors
    /// [`OutputError`] when its folder is missing or cannot be written.
    pub(crate) fn check(&self, index: usize) -> Result<(), OutputError> {
        let folder = match &self.plan {
            Plan::Stdout => return Ok(()),
            Plan::Exactly(path) if is_special(path) => return Ok(()),
            Plan::Exactly(path) => folder_of(path),
            Plan::Derived(names) => match names.get(index) {
                // A missing input has no folder either, and that is the input's matter.
                Some(name) if or_here(&name.folder).is_dir() => or_here(&name.folder),
                _ => return Ok(()),
            },
        };
        if !folder.is_dir() {
            return Err(OutputError(format!(
                "cannot write into {}: there is no such folder",
                folder.display()
            )));
        }
        check_writable(folder).map_err(|cause| cannot("write into", folder, &cause))
    }

    /// Puts the result of input number `index` in its place and says where that is; `None` is standard output.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be written whole, and then nothing is left; [`ReaderGone`] when nobody
    /// reads standard output any more.
    pub(crate) fn put(
        &mut self,
        index: usize,
        fitted: &Fitted,
        screen: &Screen,
    ) -> anyhow::Result<Option<PathBuf>> {
        let path = match &self.plan {
            Plan::Stdout => {
                return screen.write_bytes(fitted.bytes()).map(|()| None).map_err(|cause| {
                    match cause.kind() {
                        io::ErrorKind::BrokenPipe => ReaderGone.into(),
                        _ => OutputError::stdout(&cause).into(),
                    }
                });
            }
            Plan::Exactly(path) => path.clone(),
            Plan::Derived(names) => match names.get(index) {
                Some(name) => name.free_path(fitted.report().kind, |path| self.is_free(path)),
                None => return Err(OutputError(format!("input number {index} has no place")).into()),
            },
        };
        if is_special(&path) {
            write_through(&path, fitted.bytes()).map_err(|cause| cannot("write", &path, &cause))?;
        } else {
            fitted.write_to(&path).map_err(|error| OutputError(error.to_string()))?;
        }
        self.taken.insert(path.clone());
        self.made = None;
        Ok(Some(path))
    }

    fn is_free(&self, path: &Path) -> bool {
        !self.taken.contains(path) && !path.canonicalize().is_ok_and(|path| self.inputs.contains(&path))
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        if let Some(folder) = &self.made {
            // It may hold something by now, and then it stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Derived {
    /// The first of `NAME.EXT`, `NAME.fit.EXT`, `NAME.fit-2.EXT` … that is free.
    fn free_path(&self, kind: OutputKind, is_free: impl Fn(&Path) -> bool) -> PathBuf {
        let path = |suffix: &str| {
            let mut name = self.stem.clone();
            name.push(suffix);
            name.push(".");
            name.push(kind.extension());
            self.folder.join(name)
        };
        let suffixes = [self.suffix.to_owned(), FIT.to_owned()].into_iter();
        // More names than a run can have inputs, so one of them is free.
        let mut paths =
            suffixes.chain((2..=u32::MAX).map(|number| format!("{FIT}-{number}"))).map(|s| path(&s));
        paths.find(|path| is_free(path)).unwrap_or_else(|| path(self.suffix))
    }
}

/// Whether files can be made in `folder`, found out by making one.
///
/// # Errors
/// Why not.
pub(crate) fn check_writable(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".azalea-{}.tmp", std::process::id()));
    File::create_new(&path)?;
    fs::remove_file(&path)
}

/// What a person should know when a file's name promises another kind than it holds.
pub(crate) fn misnomer(path: &Path, kind: OutputKind) -> Option<String> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let fits = extension.is_empty()
        || extension == kind.extension()
        || (kind == OutputKind::Jpeg && extension == "jpeg");
    (!fits).then(|| format!("{} holds a file of kind {}", path.display(), kind.extension()))
}

fn derive_names(inputs: &[Input], shared: Option<&Path>) -> Vec<Derived> {
    let mut seen = HashSet::new();
    let suffix = if shared.is_some() { "" } else { FIT };
    let name = |input: &Input| {
        let (own_folder, stem) = match input {
            Input::Stdin => (Path::new(""), OsStr::new("stdin")),
            Input::File(path) => {
                (path.parent().unwrap_or(Path::new("")), path.file_stem().unwrap_or(OsStr::new("input")))
            }
        };
        let folder = shared.unwrap_or(own_folder).to_owned();
        let stem = shorten(stem);
        let numbered = (2..=u32::MAX).map(|number| {
            let mut next = stem.clone();
            next.push(format!("-{number}"));
            next
        });
        // Some file systems hold names that differ in case alone for one.
        let mut is_new = |stem: &OsStr| seen.insert((folder.clone(), stem.to_string_lossy().to_lowercase()));
        let stem = std::iter::once(stem.clone()).chain(numbered).find(|stem| is_new(stem)).unwrap_or(stem);
        Derived { folder, stem, suffix }
    };
    inputs.iter().map(name).collect()
}

/// A stem that leaves room for suffix, extension and the parts of a temporary name in the 255 bytes that file
/// systems allow.
fn shorten(stem: &OsStr) -> OsString {
    if stem.len() <= MOST_STEM_BYTES {
        return stem.to_owned();
    }
    let text = stem.to_string_lossy();
    let end = (0..=MOST_STEM_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default().into()
}

/// The file itself where `path` is a link to one, so that the link stays and its target is replaced.
fn follow_link(path: &Path) -> PathBuf {
    let Ok(target) = path.read_link() else { return path.to_owned() };
    // What a link leads to may not be there yet.
    path.canonicalize().unwrap_or_else(|_| folder_of(path).join(target))
}

fn folder_of(path: &Path) -> &Path {
    or_here(path.parent().unwrap_or(Path::new("")))
}

/// The folder of a bare name is the current one.
fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Whether `path` is a device or a pipe, which must be written to and never be replaced.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn write_through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(bytes)
}

fn cannot(what: &str, path: &Path, cause: &io::Error) -> OutputError {
    OutputError(format!("cannot {what} {}: {cause}", path.display()))
}

/// What stands in a derived name beside its input.
const FIT: &str = ".fit";

const MOST_STEM_BYTES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(inputs: &[&str], shared: Option<&str>) -> Vec<String> {
        let inputs: Vec<Input> = inputs.iter().map(|name| Input::File(name.into())).collect();
        let derived = derive_names(&inputs, shared.map(Path::new));
        derived.iter().map(|name| name.free_path(OutputKind::Mp4, |_| true).display().to_string()).collect()
    }

    #[test]
    fn a_result_stands_beside_its_input() {
        assert_eq!(
            names(&["a/clip.mov", "b/clip.mov", "x.y.mkv"], None),
            ["a/clip.fit.mp4", "b/clip.fit.mp4", "x.y.fit.mp4"]
        );
    }

    #[test]
    fn results_of_equal_names_are_numbered_in_the_order_of_their_inputs() {
        let inputs = ["a/clip.mov", "b/clip.mp4", "clip-2.mp4", "CLIP.mkv"];
        assert_eq!(
            names(&inputs, Some("out")),
            ["out/clip.mp4", "out/clip-2.mp4", "out/clip-2-2.mp4", "out/CLIP-3.mp4"]
        );
        assert_eq!(names(&["clip.mov", "clip.mp4"], None), ["clip.fit.mp4", "clip-2.fit.mp4"]);
    }

    #[test]
    fn a_derived_name_never_replaces_what_is_taken() {
        let name = Derived { folder: "d".into(), stem: "clip".into(), suffix: "" };
        let path = name.free_path(OutputKind::Mp4, |path| path != Path::new("d/clip.mp4"));
        assert_eq!(path, Path::new("d/clip.fit.mp4"));
        let path = name.free_path(OutputKind::Mp4, |path| path.to_string_lossy().contains("-3"));
        assert_eq!(path, Path::new("d/clip.fit-3.mp4"));
    }

    #[test]
    fn long_names_are_cut_between_letters() {
        let short = shorten(OsStr::new(&"é".repeat(150)));
        assert_eq!(short, OsString::from("é".repeat(100)));
        assert_eq!(shorten(OsStr::new(&format!("x{}", "é".repeat(150)))).len(), 199);
    }

    #[test]
    fn a_name_that_promises_another_kind_is_noted() {
        assert_eq!(
            misnomer(Path::new("out.mp4"), OutputKind::Png),
            Some("out.mp4 holds a file of kind png".to_owned())
        );
        for (name, kind) in [
            ("out.MP4", OutputKind::Mp4),
            ("out", OutputKind::Gif),
            ("out.jpeg", OutputKind::Jpeg),
            ("a.jpg", OutputKind::Jpeg),
        ] {
            assert_eq!(misnomer(Path::new(name), kind), None, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_special_and_a_file_is_not() {
        assert!(is_special(Path::new("/dev/null")));
        assert!(!is_special(Path::new("Cargo.toml")));
        assert!(!is_special(Path::new("no such file")));
    }
}
