//! lowlat's drop-in as shells read it.

use super::{plan, token};
use lowlat_host::cmdline::CommandLine;
use lowlat_plan::boot_files::{defaults, drop_in, missing};
use lowlat_settings::change::BootToken;
use proptest::prelude::*;
use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

/// Shells of this machine that can be a host's `/bin/sh`, with options that could break a snippet.
const SHELLS: [&[&str]; 4] =
    [&["sh", "-eu"], &["dash", "-eu"], &["bash", "-eu"], &["bash", "--posix", "-eu"]];

/// Values of the two variables after the drop-in, in every shell. `before` is the text of the files read before it.
fn after(before: &str, tokens: &[BootToken]) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("99-zz-lowlat.cfg");
    fs::write(&path, drop_in::text(tokens)).unwrap();
    variables(&format!("{before}\n. {}", path.display()))
}

/// Values of the two variables after a script. All shells must agree on them.
fn variables(script: &str) -> (String, String) {
    let script = format!(
        "{script}\nprintf '%s\\n%s\\n' \"${{GRUB_CMDLINE_LINUX-}}\" \"${{GRUB_CMDLINE_LINUX_DEFAULT-}}\"\n"
    );
    let answers: Vec<_> = SHELLS.iter().filter_map(|shell| Some((shell, run(shell, &script)?))).collect();
    let (_, first) = &answers[0];
    for (shell, answer) in &answers {
        assert_eq!(answer, first, "{shell:?} says otherwise\n{script}");
    }
    let (every, usual) = first.strip_suffix('\n').unwrap().split_once('\n').unwrap();
    (every.to_owned(), usual.to_owned())
}

/// A shell's output; none if it is not installed.
fn run(shell: &[&str], script: &str) -> Option<String> {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("skipped: {} is not here ({error})", shell[0]);
            return None;
        }
    };
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{shell:?}: {stderr}\n{script}");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn it_appends_and_takes_away() {
    let (every, usual) = after(
        "GRUB_CMDLINE_LINUX='net.ifnames=0 nohz-full=2 console=ttyS0 dyndbg=\"file a +p\"'\n\
         GRUB_CMDLINE_LINUX_DEFAULT='quiet isolcpus=1 nohz=off nohzx=1 isolcpus=2 splash'",
        &plan(),
    );
    assert_eq!(every, " net.ifnames=0 console=ttyS0 dyndbg=\"file a +p\"");
    assert_eq!(
        usual,
        " quiet nohzx=1 splash isolcpus=managed_irq,domain,1-7,9-15 nohz_full=1-7,9-15 rcu_nocb_poll"
    );
}

#[test]
fn it_works_with_nothing_set_and_with_odd_settings_of_the_shell() {
    let (every, usual) = after("", &plan()[1..2]);
    assert_eq!((every.as_str(), usual.as_str()), ("", " nohz_full=1-7,9-15"));
    let (_, usual) = after("IFS=,=o\nset -f\nGRUB_CMDLINE_LINUX_DEFAULT='a=b,c foo *'", &plan()[1..2]);
    assert_eq!(usual, " a=b,c foo * nohz_full=1-7,9-15");
    let (_, usual) = after("cd /\nGRUB_CMDLINE_LINUX_DEFAULT='* /*'", &plan()[2..3]);
    assert_eq!(usual, " * /*", "nothing is expanded");
}

#[test]
fn quotes_hold_words_together() {
    let line = r#"a="x nohz_full=1 y" 'b nohz_full=2' c\ nohz_full=3 "nohz_full=4 5" d="#;
    let (_, usual) = after(&format!("GRUB_CMDLINE_LINUX_DEFAULT={}", quoted(line)), &plan()[1..2]);
    assert_eq!(usual, r#" a="x nohz_full=1 y" 'b nohz_full=2' c\ nohz_full=3 d= nohz_full=1-7,9-15"#);
}

#[test]
fn what_is_inits_and_an_open_quote_come_last() {
    let set = |line: &str| format!("GRUB_CMDLINE_LINUX_DEFAULT={}", quoted(line));
    assert_eq!(after(&set("a -- nohz_full=1 b"), &plan()[1..2]).1, " a nohz_full=1-7,9-15 -- nohz_full=1 b");
    assert_eq!(after(&set("a x=\"b c"), &plan()[1..2]).1, " a nohz_full=1-7,9-15 x=\"b c");
}

#[test]
fn values_with_white_space_reach_the_variable_whole() {
    let (_, usual) = after("", &[token("dyndbg", Some("file a +p; file b"))]);
    assert_eq!(usual, " dyndbg=\"file a +p; file b\"");
}

#[test]
fn reading_it_twice_is_reading_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.cfg");
    fs::write(&path, drop_in::text(&plan())).unwrap();
    let set = "GRUB_CMDLINE_LINUX=ro\nGRUB_CMDLINE_LINUX_DEFAULT='quiet nohz_full=3'";
    let once = after(set, &plan());
    let twice = after(&format!("{set}\n. {}", path.display()), &plan());
    assert_eq!(once, twice);
}

/// Every parameter except those of the property tests.
fn others(line: &str) -> Vec<(String, Option<String>)> {
    let parsed = CommandLine::parse(line);
    let keep = |name: &str| !["a", "b", "new"].contains(&name);
    let mut all: Vec<_> = parsed.tokens().iter().filter(|(name, _)| keep(name)).cloned().collect();
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn any_line_comes_out_with_the_parameters_and_everything_else(
        every in "[a-cé=\"* -]{0,30}", usual in "[a-cé=\"*$;&# -]{0,30}",
    ) {
        let tokens = [token("a", Some("1")), token("b", None), token("new", Some(""))];
        // The kernel's line is trimmed before it is split, so trailing white space in an open quote does not show.
        let (every, usual) = (every.trim_end(), usual.trim_end());
        let set = format!("GRUB_CMDLINE_LINUX={}\nGRUB_CMDLINE_LINUX_DEFAULT={}", quoted(every), quoted(usual));
        let (new_every, new_usual) = after(&set, &tokens);
        let faults = missing(&new_usual, &tokens);
        prop_assert!(faults.is_empty(), "{:?} -> {:?}: {:?}", usual, new_usual, faults);
        let all_off: Vec<BootToken> = tokens.iter().map(|t| BootToken { value: None, ..t.clone() }).collect();
        let faults = missing(&new_every, &all_off);
        prop_assert!(faults.is_empty(), "{:?} -> {:?}: {:?}", every, new_every, faults);
        prop_assert_eq!(others(&new_usual), others(usual));
        prop_assert_eq!(others(&new_every), others(every));
    }

    #[test]
    fn an_edited_file_of_defaults_is_what_a_shell_makes_of_it(
        words in "[a-z=\" ]{0,20}",
        parts in prop::collection::vec("(a=[0-9]|b|c=[a-z*]{1,3}|d=\"x y\"|e-f=1)", 0..6),
        is_single in any::<bool>(),
    ) {
        let tokens = [token("a", Some("1")), token("b", None), token("new", Some("x y"))];
        let line = parts.join(" ");
        let value = if is_single { quoted(&line) } else { format!("\"{}\"", line.replace('"', "\\\"")) };
        let text = format!("# {words}\nGRUB_CMDLINE_LINUX={value}\nGRUB_CMDLINE_LINUX_DEFAULT='b=1 c'\n");
        let (_, usual) = variables(&defaults::edit(&text, &tokens).unwrap());
        let faults = missing(&usual, &tokens);
        prop_assert!(faults.is_empty(), "{}: {:?}", usual, faults);
        let text = format!("# {words}\nGRUB_CMDLINE_LINUX={value}\n");
        let (every, _) = variables(&defaults::edit(&text, &tokens).unwrap());
        let faults = missing(&every, &tokens);
        prop_assert!(faults.is_empty(), "{}: {:?}", every, faults);
        prop_assert_eq!(others(&every), others(&line));
    }
}
