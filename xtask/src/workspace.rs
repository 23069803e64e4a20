//! The workspace's packages, as `cargo metadata` lists them.

use crate::run;
use anyhow::Context as _;
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

#[derive(Debug, Deserialize)]
pub struct Workspace {
    pub packages: Vec<Package>,
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    pub target_directory: PathBuf,
}

#[derive(Debug, Deserialize)]
pub struct Package {
    pub name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<PackageDependency>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    test: bool,
}

#[derive(Debug, Deserialize)]
struct PackageDependency {
    name: String,
    /// "dev" or "build"; `None` for what the package itself needs.
    kind: Option<String>,
}

impl Workspace {
    pub fn read() -> anyhow::Result<Self> {
        let text = run::output(run::cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
        serde_json::from_str(&text).context("cannot parse the output of cargo metadata")
    }

    /// The packages that hold these files, which are relative to the workspace's root.
    pub fn owners(&self, files: &[String]) -> BTreeSet<&str> {
        files.iter().filter_map(|file| self.owner(Path::new(file))).collect()
    }

    fn owner(&self, file: &Path) -> Option<&str> {
        let file = self.root.join(file);
        let holds = |package: &&Package| file.starts_with(package.folder());
        let deepest =
            self.packages.iter().filter(holds).max_by_key(|package| package.folder().as_os_str().len());
        deepest.map(|package| package.name.as_str())
    }

    /// Pairs of packages, the first of which needs the second, each with its folder at the top of the tree.
    pub fn arrows(&self) -> impl Iterator<Item = [(&str, &str); 2]> {
        self.packages.iter().flat_map(move |package| {
            let needed = package.dependencies.iter().filter(|of| of.kind.is_none());
            let needed = needed.filter_map(|of| self.packages.iter().find(|other| other.name == of.name));
            needed.filter_map(move |other| Some([package.place(&self.root)?, other.place(&self.root)?]))
        })
    }

    /// These packages and all that depend on one of them, directly or not.
    pub fn with_dependents<'a>(&'a self, mut names: BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        loop {
            let known = names.len();
            for package in &self.packages {
                if package.dependencies.iter().any(|dependency| names.contains(dependency.name.as_str())) {
                    names.insert(&package.name);
                }
            }
            if names.len() == known {
                return names;
            }
        }
    }

    /// Those of the packages that have unit tests in a target of this kind.
    pub fn tested_in<'a>(&'a self, kinds: &[&str], names: &BTreeSet<&str>) -> Vec<&'a str> {
        let tested =
            |target: &Target| target.test && target.kind.iter().any(|kind| kinds.contains(&kind.as_str()));
        let chosen =
            |package: &&Package| names.contains(package.name.as_str()) && package.targets.iter().any(tested);
        self.packages.iter().filter(chosen).map(|package| package.name.as_str()).collect()
    }
}

impl Package {
    /// Its name, and the folder at the top of the tree that it is in.
    fn place(&self, root: &Path) -> Option<(&str, &str)> {
        let below = self.folder().strip_prefix(root).ok()?;
        Some((&self.name, below.iter().next()?.to_str()?))
    }

    fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        let package = |name: &str, folder: &str, kind: &str, uses: &[&str]| Package {
            name: name.to_owned(),
            manifest_path: Path::new("/top").join(folder).join("Cargo.toml"),
            targets: vec![Target { kind: vec![kind.to_owned()], test: kind != "cdylib" }],
            dependencies: uses
                .iter()
                .map(|name| PackageDependency { name: (*name).to_owned(), kind: None })
                .collect(),
        };
        Workspace {
            packages: vec![
                package("host", "host/model", "lib", &[]),
                package("host-tools", "host/model/tools", "bin", &["host"]),
                package("cli", "cli", "bin", &["host-tools"]),
                package("python", "pipeline/python", "cdylib", &[]),
            ],
            root: "/top".into(),
            target_directory: "/top/target".into(),
        }
    }

    #[test]
    fn a_file_belongs_to_the_deepest_package() {
        let files = ["host/model/src/lib.rs", "host/model/tools/build.rs", "hosted/a", "README.md"];
        let owners = workspace();
        let owners = owners.owners(&files.map(str::to_owned));
        assert_eq!(owners, BTreeSet::from(["host", "host-tools"]));
    }

    #[test]
    fn dependents_of_dependents_are_included() {
        let workspace = workspace();
        assert_eq!(
            workspace.with_dependents(BTreeSet::from(["host"])),
            BTreeSet::from(["host", "host-tools", "cli"])
        );
        assert_eq!(workspace.with_dependents(BTreeSet::from(["python"])), BTreeSet::from(["python"]));
    }

    #[test]
    fn packages_without_unit_tests_are_left_out() {
        let workspace = workspace();
        let all = BTreeSet::from(["host", "cli", "python"]);
        assert_eq!(workspace.tested_in(&["lib", "cdylib"], &all), ["host"]);
        assert_eq!(workspace.tested_in(&["bin"], &all), ["cli"]);
    }
}
