//! Settings, documents and commands that texts name exist.

use lowlat_catalogue::CATALOGUE;
use std::path::Path;

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name))
        .expect("a file of the project")
}

/// Words in backticks that look like ids of settings.
fn ids(text: &str) -> Vec<&str> {
    let layers: Vec<String> =
        lowlat_settings::Layer::ALL.iter().map(|layer| format!("{}.", layer.word())).collect();
    let is_id = |word: &&str| layers.iter().any(|layer| word.starts_with(layer.as_str()));
    text.split('`').skip(1).step_by(2).filter(is_id).collect()
}

#[test]
fn every_setting_that_a_document_names_is_in_the_catalogue() {
    let guide = document("docs/guide-57037.md");
    assert!(ids(&guide).len() > 30, "the guide's document names the rows of its hazards");
    for id in ids(&guide) {
        let is_there = match id.split_once('*') {
            Some((prefix, _)) => CATALOGUE.settings().any(|setting| setting.id.starts_with(prefix)),
            None => CATALOGUE.find(id).is_some(),
        };
        assert!(is_there, "docs/guide-57037.md names {id}, which is no setting");
    }
}

#[test]
fn every_hazard_s_document_is_there() {
    for setting in CATALOGUE.settings() {
        for source in setting.sources.iter().filter(|source| source.starts_with("docs/")) {
            let file = source.split(':').next().unwrap_or_default();
            assert!(!document(file).is_empty(), "{}: {file}", setting.id);
        }
    }
}

#[test]
fn the_readme_names_every_command_and_its_own_test_command() {
    let readme = document("README.md");
    assert!(
        readme.contains("<!-- test command -->\n```sh\ncargo test --workspace --no-fail-fast\n```"),
        "the test command that CI reads"
    );
    let help =
        std::process::Command::new(crate::common::binary()).arg("--help").output().expect("the binary runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in
        commands.filter_map(|line| line.split_whitespace().next()).filter(|command| *command != "help")
    {
        assert!(readme.contains(&format!("`lowlat {command}")), "the README does not name lowlat {command}");
    }
}
