//! `cargo xtask dist --library`: the packages for programs in C and C++, with header, libraries, pkg-config and CMake files.
//! The library is built apart from the binary, because a program in C uses glibc.

use crate::{
    packages,
    run::{builder, output, path_before, run},
    wheel,
};
use anyhow::{Context as _, bail};
use std::{
    env::consts::ARCH,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

const NAME: &str = "liblowlat-dev";
/// Oldest C library that it needs, as the wheel.
const GLIBC: &str = "2.28";
/// Longest stripped library, in bytes.
const BYTES_MAX: u64 = 700_000;
const DESCRIPTION: &str = "Nodes of lowlat's trading pipelines and recordings, for C and C++";

/// Makes both packages in `dist`.
pub fn make(root: &Path, dist: &Path) -> anyhow::Result<()> {
    let header = root.join("pipeline/capi/include/lowlat.h");
    let text = fs::read_to_string(&header).with_context(|| format!("cannot read {}", header.display()))?;
    let version = text.lines().find_map(|line| line.strip_prefix("#define LOWLAT_ABI_VERSION "));
    let soname = format!("liblowlat_capi.so.{}", version.context("cannot find the version in lowlat.h")?);
    let programs = wheel::tools(root)?;
    let (target, folder) = (format!("{ARCH}-unknown-linux-gnu"), root.join("target/library"));
    let build = |crate_type: &str, lto: &str, arguments: &[String]| -> anyhow::Result<PathBuf> {
        let folder = folder.join(crate_type);
        run(builder(programs.join("cargo-zigbuild"))
            .current_dir(root)
            .env("PATH", path_before(programs.clone())?)
            .env("LOWLAT_SONAME", &soname)
            // The features of other programs' crates are not the library's.
            .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
            .args(["rustc", "--profile", "dist", "--locked", "-p", "lowlat-capi", "--crate-type", crate_type])
            .args(["--config", &format!("profile.dist.lto={lto}")])
            .args(["--target", &format!("{target}.{GLIBC}"), "--target-dir"])
            .arg(&folder)
            .arg("--")
            .args(arguments))?;
        Ok(folder.join(&target).join("dist"))
    };
    // The whole shared library is optimised at once. An archive would then hold the compiler's own form of the code.
    let shared_library = build("cdylib", "\"fat\"", &of_linker()?)?.join("liblowlat_capi.so");
    let static_library = build("staticlib", "false", &[])?.join("liblowlat_capi.a");
    let libraries = folder.join("libraries");
    fs::create_dir_all(&libraries).with_context(|| format!("cannot create {}", libraries.display()))?;
    let (shared, archive) = (libraries.join(&soname), libraries.join("liblowlat_capi.a"));
    run(Command::new("objcopy").arg("--strip-all").arg(shared_library).arg(&shared))?;
    localised(&static_library, &archive)?;
    let bytes = fs::metadata(&shared).with_context(|| format!("cannot read {}", shared.display()))?.len();
    if bytes > BYTES_MAX {
        bail!("cannot accept {}: {bytes} bytes, {BYTES_MAX} are the limit", shared.display());
    }
    check_names(Command::new("nm").args(["-D", "--defined-only"]).arg(&shared))?;
    check_names(Command::new("nm").args(["-g", "--defined-only"]).arg(&archive))?;
    println!("{}: {bytes} bytes", shared.display());

    let multiarch = format!("usr/lib/{ARCH}-linux-gnu");
    let tree = folder.join("deb");
    stage(root, &tree, &multiarch, &[&shared, &archive], &soname)?;
    deb(root, dist, &tree)?;
    let tree = folder.join("rpm");
    stage(root, &tree, "usr/lib64", &[&shared, &archive], &soname)?;
    rpm(root, dist, &tree)
}

/// Arguments with which the shared library uses the system's unwinder, as its package requires. Zig would put its own into it.
fn of_linker() -> anyhow::Result<[String; 2]> {
    let unwinder = output(Command::new("cc").arg("-print-file-name=libgcc_s.so.1"))?;
    Ok([format!("-Clink-arg={}", unwinder.trim()), "-Clink-arg=-Wl,--hash-style=gnu".to_owned()])
}

/// Writes an archive of one object whose only global names are lowlat's.
fn localised(built: &Path, archive: &Path) -> anyhow::Result<()> {
    let object = archive.with_extension("o");
    let names = output(Command::new("nm").args(["-g", "--defined-only"]).arg(built))?;
    let mut link = Command::new("ld");
    link.args(["-r", "--gc-sections", "-o"]).arg(&object);
    for name in global_names(&names).filter(|name| name.starts_with("lowlat_")) {
        link.args(["-u", name]);
    }
    run(link.arg(built))?;
    run(Command::new("objcopy")
        .args(["--wildcard", "--keep-global-symbol=lowlat_*", "--strip-debug"])
        // The compiler's own form of the standard library, which binutils with LLVM's plugin cannot read.
        .args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"])
        .arg(&object))?;
    if archive.exists() {
        fs::remove_file(archive).with_context(|| format!("cannot replace {}", archive.display()))?;
    }
    run(Command::new("ar").arg("rcsD").arg(archive).arg(&object))
}

/// The names in the output of nm.
fn global_names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, _, name] => Some(name),
        _ => None,
    })
}

fn check_names(nm: &mut Command) -> anyhow::Result<()> {
    let text = output(nm)?;
    let other = global_names(&text).find(|name| !name.starts_with("lowlat_"));
    if let Some(other) = other {
        bail!("cannot accept the library: it exports {other}");
    }
    if global_names(&text).next().is_none() {
        bail!("cannot accept the library: it exports nothing");
    }
    Ok(())
}

/// Lays out the files of a package.
fn stage(root: &Path, tree: &Path, lib: &str, libraries: &[&Path], soname: &str) -> anyhow::Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree).with_context(|| format!("cannot empty {}", tree.display()))?;
    }
    let version = env!("CARGO_PKG_VERSION");
    let put = |from: &Path, to: &str| copy(from, &tree.join(to));
    for library in libraries {
        put(library, &format!("{lib}/{}", library.file_name().unwrap_or_default().to_string_lossy()))?;
    }
    let link = tree.join(lib).join("liblowlat_capi.so");
    symlink(soname, &link).with_context(|| format!("cannot create {}", link.display()))?;
    put(&root.join("pipeline/capi/include/lowlat.h"), "usr/include/lowlat.h")?;
    for (path, text) in [
        (
            format!("{lib}/pkgconfig/lowlat.pc"),
            format!(
                "includedir=/usr/include\nlibdir=/{lib}\n\nName: lowlat\nDescription: {DESCRIPTION}\nVersion: {version}\n\
                 Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -llowlat_capi\nLibs.private: -lm -lpthread -ldl\n"
            ),
        ),
        (format!("{lib}/cmake/lowlat/lowlat-config.cmake"), cmake(lib, soname)),
        (
            format!("{lib}/cmake/lowlat/lowlat-config-version.cmake"),
            format!(
                "set(PACKAGE_VERSION {version})\nif(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  \
                 set(PACKAGE_VERSION_EXACT TRUE)\nendif()\nif(NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  \
                 set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n"
            ),
        ),
    ] {
        write(&tree.join(path), &text)?;
    }
    let docs = format!("usr/share/doc/{NAME}");
    for (from, to) in [
        ("pipeline/capi/README.md", "README.md"),
        ("pipeline/capi/examples/strategy.c", "examples/strategy.c"),
        ("pipeline/capi/examples/first_strategy.c", "examples/first_strategy.c"),
        ("pipeline/capi/examples/market_maker.c", "examples/market_maker.c"),
        ("cli/packaging/copyright", "copyright"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("LICENSE-MIT", "LICENSE-MIT"),
    ] {
        put(&root.join(from), &format!("{docs}/{to}"))?;
    }
    Ok(())
}

/// The package's file for CMake: targets lowlat::lowlat and lowlat::static.
fn cmake(lib: &str, soname: &str) -> String {
    format!(
        "find_package(Threads REQUIRED)\nif(NOT TARGET lowlat::lowlat)\n  \
         add_library(lowlat::lowlat SHARED IMPORTED)\n  set_target_properties(lowlat::lowlat PROPERTIES\n    \
         IMPORTED_LOCATION /{lib}/{soname} IMPORTED_SONAME {soname} INTERFACE_INCLUDE_DIRECTORIES /usr/include)\n  \
         add_library(lowlat::static STATIC IMPORTED)\n  set_target_properties(lowlat::static PROPERTIES\n    \
         IMPORTED_LOCATION /{lib}/liblowlat_capi.a INTERFACE_INCLUDE_DIRECTORIES /usr/include\n    \
         INTERFACE_LINK_LIBRARIES \"Threads::Threads;m;dl\")\nendif()\n"
    )
}

fn deb(root: &Path, dist: &Path, tree: &Path) -> anyhow::Result<()> {
    let architecture = if ARCH == "aarch64" { "arm64" } else { "amd64" };
    let version = env!("CARGO_PKG_VERSION");
    let control = format!(
        "Package: {NAME}\nVersion: {version}-1\nArchitecture: {architecture}\nMaintainer: {}\nSection: libdevel\n\
         Priority: optional\nDepends: libc6 (>= {GLIBC}), libgcc-s1\nDescription: {DESCRIPTION}\n \
         Header, shared and static library, and files for pkg-config and CMake.\n",
        packages::AUTHORS
    );
    write(&tree.join("DEBIAN/control"), &control)?;
    let package = dist.join(format!("{NAME}_{version}-1_{architecture}.deb"));
    run(Command::new("dpkg-deb")
        .env("SOURCE_DATE_EPOCH", packages::time_unix_s(root)?)
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(tree)
        .arg(&package))
    .context("cannot make the Debian package\nhint: install dpkg")
}

fn rpm(root: &Path, dist: &Path, tree: &Path) -> anyhow::Result<()> {
    let spec = tree.with_extension("spec");
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "%global __os_install_post %{{nil}}\n%define _binary_payload w9.gzdio\n%define _build_id_links none\n\
         %define _buildhost lowlat\n%define use_source_date_epoch_as_buildtime 1\n\
         %define clamp_mtime_to_source_date_epoch 1\nAutoReqProv: no\n\n\
         Name: lowlat-devel\nVersion: {version}\nRelease: 1\nSummary: {DESCRIPTION}\nGroup: Development/Libraries\n\
         License: Apache-2.0 OR MIT\nVendor: The lowlat authors\nPackager: The lowlat authors\n\
         Requires: glibc >= {GLIBC}\nRequires: libgcc\n\n\
         %description\nHeader, shared and static library, and files for pkg-config and CMake.\n\n\
         %install\nrm -rf %{{buildroot}}\nmkdir -p %{{buildroot}}\ncp -a {tree}/. %{{buildroot}}/\n\n\
         %files\n%defattr(-,root,root)\n/usr/include/lowlat.h\n/usr/lib64/liblowlat_capi*\n/usr/lib64/pkgconfig/lowlat.pc\n\
         /usr/lib64/cmake/lowlat\n%doc /usr/share/doc/{NAME}\n",
        tree = tree.display()
    );
    write(&spec, &text)?;
    packages::rpmbuild(root, dist, &spec, &[])
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let made = || {
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::copy(from, to)
    };
    made().with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    mode(to)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let made = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)
    };
    made().with_context(|| format!("cannot write {}", path.display()))?;
    mode(path)
}

/// Everyone may read it.
fn mode(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = fs::Permissions::from_mode(0o644);
    fs::set_permissions(path, permissions)
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}
