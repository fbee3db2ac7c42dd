//! Build facts for `azalea --version` and `azalea doctor`, and one plain message when the machine lacks what
//! the build needs.
//!
//! It has no dependencies, so that it runs before the bindings to libav are even compiled.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    say_facts();
    if let Err(message) = check_machine() {
        println!("cargo::error={message} (vendor/install-deps.sh installs what is needed)");
    }
}

fn say_facts() {
    println!(
        "cargo::rustc-env=AZALEA_GIT_REVISION={}",
        git_revision().unwrap_or_else(|| "unknown".to_owned())
    );
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let version = answer(Command::new(rustc).arg("--version"));
    println!("cargo::rustc-env=AZALEA_RUSTC={}", version.unwrap_or_else(|| "unknown".to_owned()));
    println!(
        "cargo::rustc-env=AZALEA_TARGET={}",
        env::var("TARGET").unwrap_or_else(|_| "unknown".to_owned())
    );
}

/// The revision of the sources: from the environment, for who packages them without git, or else from git.
fn git_revision() -> Option<String> {
    println!("cargo::rerun-if-env-changed=AZALEA_GIT_REVISION");
    if let Ok(revision) = env::var("AZALEA_GIT_REVISION") {
        return Some(revision)
            .filter(|revision| !revision.is_empty() && !revision.contains(char::is_whitespace));
    }
    let home = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let git = |arguments: &[&str]| answer(Command::new("git").arg("-C").arg(&home).args(arguments));
    // Sources that were unpacked inside somebody else's repository must not take its revision.
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != home.canonicalize().ok()? {
        return None;
    }
    let head = git(&["symbolic-ref", "-q", "HEAD"]);
    let names = ["HEAD", "logs/HEAD", "packed-refs"].into_iter().map(str::to_owned).chain(head);
    // Only what exists: a path that does not would make cargo run this script every time.
    for path in names.filter_map(|name| git(&["rev-parse", "--git-path", &name])).map(|path| home.join(path))
    {
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// Says in one line what is missing or too old, if anything is.
fn check_machine() -> Result<(), String> {
    for name in [
        "AZALEA_SKIP_CHECKS",
        "FFMPEG_DIR",
        "LIBCLANG_PATH",
        "PKG_CONFIG",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG_LIBDIR",
    ] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    if env::var_os("AZALEA_SKIP_CHECKS").is_some() {
        return Ok(());
    }
    // With FFMPEG_DIR, the bindings take libav from there and ask pkg-config nothing.
    if env::var_os("FFMPEG_DIR").is_none() {
        check_libav()?;
    }
    if has_libclang() {
        Ok(())
    } else {
        Err("libclang is missing: the bindings to libav are made with it; set LIBCLANG_PATH if it is in an unusual place".to_owned())
    }
}

fn check_libav() -> Result<(), String> {
    let pkg_config = env::var_os("PKG_CONFIG").unwrap_or_else(|| OsString::from("pkg-config"));
    if answer(Command::new(&pkg_config).arg("--version")).is_none() {
        return Err("pkg-config is missing: the build finds libav with it".to_owned());
    }
    let version = |library: &str| answer(Command::new(&pkg_config).arg("--modversion").arg(library));
    let missing: Vec<&str> = LIBRARIES.into_iter().filter(|library| version(library).is_none()).collect();
    if !missing.is_empty() {
        return Err(format!(
            "the development files of FFmpeg are missing: pkg-config does not find {}",
            missing.join(", ")
        ));
    }
    let found = version("libavcodec").unwrap_or_default();
    let mut numbers = found.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let found_pair = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found_pair < OLDEST_LIBAVCODEC {
        return Err(format!(
            "FFmpeg is too old: libavcodec is {found}, and 59.37 (FFmpeg 5.1) is the oldest that will do"
        ));
    }
    if found_pair.0 >= FIRST_UNKNOWN_LIBAVCODEC {
        return Err(format!(
            "FFmpeg is too new: libavcodec is {found}, and 63 (FFmpeg 9) is the newest that is known"
        ));
    }
    Ok(())
}

/// Looks where the binding generator will look, and in a few places more: a false alarm would stop a build that
/// works.
fn has_libclang() -> bool {
    if let Some(path) = env::var_os("LIBCLANG_PATH") {
        let path = Path::new(&path);
        return path.is_file() || holds_libclang(path);
    }
    let asked = [("llvm-config", "--libdir"), ("clang", "-print-file-name=libclang.so")];
    let asked =
        asked.into_iter().filter_map(|(program, question)| answer(Command::new(program).arg(question)));
    if asked.map(PathBuf::from).any(|path| holds_libclang(&path) || (path.is_absolute() && path.is_file())) {
        return true;
    }
    // `/usr/lib/llvm-14/lib`, `/usr/lib/x86_64-linux-gnu`, `/usr/lib/llvm19/lib` and the like.
    let roots = [
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/local",
        "/opt/homebrew/opt",
        "/usr/local/opt",
        "/lib",
    ];
    let below =
        roots.iter().filter_map(|root| fs::read_dir(root).ok()).flatten().flatten().map(|entry| entry.path());
    let fixed = FIXED_FOLDERS.iter().chain(&roots).map(PathBuf::from);
    fixed
        .chain(below.flat_map(|path| [path.join("lib"), path.join("lib64"), path]))
        .any(|path| holds_libclang(&path))
        || answer(Command::new("ldconfig").arg("-p")).is_some_and(|list| list.contains("libclang"))
}

fn holds_libclang(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Not `libclang-cpp.so`, which is another interface.
        ["libclang.so", "libclang.dylib", "libclang.dll", "clang.dll", "libclang.a"]
            .iter()
            .any(|known| name.starts_with(known))
            || (name.starts_with("libclang-") && !name.starts_with("libclang-cpp") && name.contains(".so"))
    })
}

/// What a program prints, trimmed, if it can be run and succeeds.
fn answer(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

const LIBRARIES: [&str; 6] =
    ["libavcodec", "libavformat", "libavfilter", "libavutil", "libswscale", "libswresample"];

/// FFmpeg 5.1.
const OLDEST_LIBAVCODEC: (u32, u32) = (59, 37);

/// FFmpeg 9 has 63.
const FIRST_UNKNOWN_LIBAVCODEC: u32 = 64;

const FIXED_FOLDERS: [&str; 2] = [
    "/Library/Developer/CommandLineTools/usr/lib",
    "/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib",
];
