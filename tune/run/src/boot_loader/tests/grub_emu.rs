//! Compares lowlat with GRUB itself: `grub-emu` runs generated menus, and lowlat must name the entry that it boots, or
//! report that it does not know. Every kernel of these menus is a function that prints its arguments and leaves GRUB.

use lowlat_plan::boot_files::{
    entry_order::{EntryFile, Order},
    grub::{Build, Found, MenuSurroundings},
    grub_menu::GrubMenu,
};
use std::{
    env, fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Number of menus per run, unless the environment sets another.
const SAMPLE: usize = 200;
const DEBIAN: Build = Build { is_name_first: false, order: Order::FileName };
/// Words for variables, entries, and the variables that choose an entry.
const VALUES: [&str; 9] = ["", "0", "1", "2", "x", "two words", "-1", "0x1", "efi"];
const VARIABLES: [&str; 6] = ["a", "b", "c", "next_entry", "saved_entry", "boot_once"];

/// Runs a menu in GRUB. Returns the arguments of the booted entry's kernel.
fn booted_by_grub(directory: &Path, chroot: Option<&Path>) -> Option<String> {
    let mut command = match chroot {
        Some(root) => {
            let mut command = Command::new("chroot");
            command.arg(root).arg("grub-emu");
            command
        }
        None => Command::new("grub-emu"),
    };
    let child = command.args(["-r", "host", "-m", "/dev/null", "-d"]).arg(directory).env("TERM", "dumb");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Key presses for GRUB's pauses after errors.
    let mut keys = child.stdin.take().unwrap();
    let _ = keys.write_all(&[b'\n'; 64]);
    let until = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace(['\r', '\n'], "");
    let (_, rest) = text.split_once("BOOTED:")?;
    Some(words(rest.split_once(":END")?.0))
}

fn words(text: &str) -> String {
    // lowlat quotes words with blanks.
    text.replace("\\\"", "")
        .replace('"', "")
        .replace("\\\\", "\\")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The line that lowlat finds in the same menu.
fn named_by_lowlat(directory: &Path, entries: &[EntryFile], build: Build) -> Result<Option<String>, String> {
    let menu = GrubMenu::parse(&fs::read_to_string(directory.join("grub.cfg")).unwrap());
    let read = |path: &str| match fs::read(path) {
        Ok(bytes) => Found::File(bytes),
        Err(_) if Path::new(path).is_dir() => Found::Directory,
        Err(_) => Found::Missing,
    };
    let surroundings = MenuSurroundings {
        directory: directory.to_str().unwrap(),
        read: &read,
        entries,
        platform: None,
        builds: &[build],
    };
    let line = menu.next_line(&surroundings)?;
    Ok(line.map(|line| words(line.strip_prefix("BOOT_IMAGE=").unwrap())))
}

/// A generator of menus: the same seed gives the same menu.
struct Menu {
    random: u64,
    text: String,
    entries: usize,
    depth: usize,
}

impl Menu {
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % end as u64).unwrap()
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn line(&mut self, text: &str) {
        let indent = self.of(&["", "  ", "\t"]);
        let end = self.of(&["\n", "\n", "\n", "\n\n", "  # it's a comment\n", ";\n"]);
        self.text += &[indent, text, end].concat();
    }

    fn value(&mut self) -> String {
        let (value, variable) = (self.of(&VALUES), self.of(&VARIABLES));
        match self.below(8) {
            0 => format!("${variable}"),
            1 => format!("\"${{{variable}}}\""),
            2 => format!("\"{value}${variable}\""),
            3 => format!("'{value}'"),
            4 => format!("x${{{variable}}}y"),
            5 => format!("\"\\\"{value}\\$\""),
            6 => format!("{}\\ {}", value.replace(' ', ""), value.replace(' ', "")),
            _ => format!("\"{value}\""),
        }
    }

    fn file(&mut self) -> String {
        let place = self.of(&["$prefix", "${config_directory}", "$prefix/.", "($root)$folder"]);
        let name = self.of(&["grubenv", "block", "part.cfg", "empty", "folder", "missing"]);
        format!("{place}/{name}")
    }

    fn test(&mut self) -> String {
        let (left, right) = (self.value(), self.value());
        match self.below(14) {
            0 => format!("-n {left}"),
            1 => format!("-z {left}"),
            2 => format!("{left} = {right}"),
            3 => format!("x{left} != x{right}"),
            4 => format!("{left} == {right}"),
            5 => format!("{left} {} {right}", self.of(&["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])),
            6 => format!("{} {}", self.of(&["-f", "-e", "-d"]), self.file()),
            // The emulator opens directories, GRUB's own drivers do not.
            7 => format!("-s $prefix/{}", self.of(&["grubenv", "empty", "missing"])),
            8 => format!("! {}", self.test()),
            9 => format!("{} -a {}", self.test(), self.test()),
            10 => format!("{} -o {}", self.test(), self.test()),
            11 => format!("( {} )", self.test()),
            12 => format!("{left} '<' {right}"),
            _ => left,
        }
    }

    fn condition(&mut self) -> String {
        let test = self.test();
        match self.below(40) {
            0 => "true".to_owned(),
            1 => "! false".to_owned(),
            2 => format!("test {test}"),
            3 => format!("set c=1; [ {test} ]"),
            4 => format!("! [ {test} ]"),
            5 => "[ \"$grub_platform\" = efi ]".to_owned(),
            6 => "search --no-floppy --file --set=other /missing".to_owned(),
            7 => "[ \"$?\" = 0 ]".to_owned(),
            8 => "f0 0".to_owned(),
            _ => format!("[ {test} ]"),
        }
    }

    fn statements(&mut self, count: usize, may_add: bool) {
        for _ in 0..=self.below(count) {
            self.statement(may_add);
        }
    }

    fn statement(&mut self, may_add: bool) {
        let (variable, value) = (self.of(&VARIABLES), self.value());
        let is_deep = self.depth > 3;
        match self.below(20) {
            0..=2 => self.line(&format!("set {variable}={value}")),
            3 => self.line(&format!("{variable}={value}")),
            4 => self.line(&format!("{} {variable}", ["unset", "export"][usize::from(value.len() > 4)])),
            5 => self.line(&format!("f{} {value} x", value.len() % 2)),
            6 => {
                let names = self.of(&[
                    "",
                    " a b",
                    " -f $prefix/block",
                    " --file $prefix/block c",
                    " -f $prefix/none",
                ]);
                self.line(&format!("load_env{names}"));
            }
            7 => self.line(&format!("save_env {variable}")),
            8 => self.line(&format!("set default={value}")),
            9 => self.line(&format!("set default=\"${{{variable}}}\"")),
            10 => {
                let name = self.of(&[
                    "0",
                    "1",
                    "2",
                    "'1>0'",
                    "\"1>1\"",
                    "id1",
                    "'Entry 2'",
                    "'id3>id4'",
                    "x\\>\\>y",
                    "'id1>1'",
                    "1>0",
                ]);
                self.line(&format!("set default={name}"));
            }
            11 if self.entries == 7 => self.line("set default=1>0"),
            11 if may_add => self.line("source $prefix/part.cfg"),
            12..=15 if !is_deep => self.conditional(may_add),
            16 if !is_deep => {
                self.depth += 1;
                self.text += &format!("for i in {value} 1 $a; do\n");
                self.statements(2, false);
                if self.below(2) == 0 {
                    let turn = self.of(&["break", "continue"]);
                    self.text += &format!("if [ $i = 1 ]; then {turn}; fi\n");
                }
                self.line("set b=\"$b$i\"");
                self.text += "done\n";
                self.depth -= 1;
            }
            17 if !is_deep => {
                self.depth += 1;
                self.text += "w=\nwhile [ \"$w\" != 11 ]; do\nw=1$w\n";
                self.statements(2, false);
                self.text += "done\n";
                self.depth -= 1;
            }
            _ if may_add && !is_deep => self.entry(),
            _ => self.line("insmod part_gpt"),
        }
    }

    fn conditional(&mut self, may_add: bool) {
        self.depth += 1;
        let condition = self.condition();
        let then = self.of(&["; then\n", "\nthen\n", " ; then "]);
        self.text += &["if ", &condition, then].concat();
        self.statements(3, may_add);
        for _ in 0..self.below(3) / 2 {
            let condition = self.condition();
            self.text += &format!("elif {condition}; then\n");
            self.statements(2, may_add);
        }
        if self.below(2) == 0 {
            self.text += "else\n";
            self.statements(3, may_add);
        }
        self.text += "fi\n";
        self.depth -= 1;
    }

    fn entry(&mut self) {
        let number = self.entries;
        self.entries += 1;
        let title = self.of(&["'Entry 2'", "\"Debian $a\"", "Plain", "'x>y'", "'2nd'", "\"it's\""]);
        let id = self.of(&["--id", "--id", "$menuentry_id_option"]);
        let id = match self.below(4) {
            0 => String::new(),
            1 => format!("{id} \"id$a\""),
            _ => format!("{id} id{number}"),
        };
        let class = self.of(&["", "--class os --class \"x y\"", "--unrestricted", "--hotkey=q"]);
        self.depth += 1;
        if self.below(4) == 0 {
            self.text += &format!("submenu {title} {class} {id} {{\n");
            self.statements(2, true);
            self.entry();
            self.text += "}\n";
        } else {
            self.text += &format!("menuentry {title} {class} {id} {{\n");
            self.statements(2, false);
            let value = self.value();
            self.line(&format!("linux /k{number} \"$chosen\" $a \"$1\" {value}"));
            self.text += "}\n";
        }
        self.depth -= 1;
    }
}

/// Writes a menu and its other files.
fn generate(seed: usize, directory: &Path) {
    let random = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut menu = Menu { random, text: String::new(), entries: 0, depth: 0 };
    let block = |lines: &str| {
        let mut block = format!("# GRUB Environment Block\n{lines}").into_bytes();
        block.resize(1024, b'#');
        block
    };
    for name in ["grubenv", "block"] {
        let mut lines = String::new();
        for _ in 0..menu.below(4) {
            let value = menu.of(&["", "0", "1", "id1", "Entry 2", "1>0", "id2>0", "x\\\\y"]);
            lines += &format!("{}={value}\n", menu.of(&VARIABLES));
        }
        fs::write(directory.join(name), block(&lines)).unwrap();
    }
    fs::write(directory.join("empty"), "").unwrap();
    fs::create_dir_all(directory.join("folder")).unwrap();
    menu.statements(2, true);
    fs::write(directory.join("part.cfg"), std::mem::take(&mut menu.text).replace("source ", "true "))
        .unwrap();

    let folder = directory.display();
    menu.text = format!(
        "set timeout=0\nset folder={folder}\nfunction linux {{\n  echo BOOTED:\n  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do\n    echo \"$1 \"\n    shift\n  done\n  \
         echo :END\n  exit\n}}\n"
    );
    for number in 0..2 {
        menu.text += &format!("function f{number} {{\n");
        menu.statements(2, false);
        menu.line("set c=\"$1$#\"");
        menu.line("if [ \"$1\" = 0 ]; then return 1; fi");
        menu.text = menu
            .text
            .replace(&format!("f{number} "), "true ")
            .replace("function true ", &format!("function f{number} "));
        menu.text += "}\n";
    }
    if menu.below(3) > 0 {
        menu.text += "if [ x\"${feature_menuentry_id}\" = xy ]; then\n  menuentry_id_option=\"--id\"\nelse\n  \
            menuentry_id_option=\"\"\nfi\nexport menuentry_id_option\n";
    }
    if menu.below(2) > 0 {
        menu.text += "load_env\nif [ \"${next_entry}\" ] ; then\n  set default=\"${next_entry}\"\n  set next_entry=\n  \
            save_env next_entry\n  set boot_once=true\nelse\n  set default=\"${saved_entry}\"\nfi\n";
    }
    menu.statements(8, true);
    menu.entry();
    fs::write(directory.join("grub.cfg"), menu.text).unwrap();
}

fn is_missing() -> bool {
    let found = Command::new("grub-emu").arg("--version").output();
    if let Err(error) = &found {
        eprintln!("skipped: grub_emu: grub-emu cannot be run ({error}); Debian's package grub-emu has it");
    }
    found.is_err()
}

#[test]
fn generated_menus_boot_what_grub_boots() {
    if is_missing() {
        return;
    }
    let number = |name: &str, usual| env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let (first, menus) = (number("LOWLAT_GRUB_SEED", 0), number("LOWLAT_GRUB_MENUS", SAMPLE));
    let (mut unknown, mut different, mut rejected) = (Vec::new(), Vec::new(), 0);
    for seed in first..first + menus {
        let directory = tempfile::tempdir().unwrap();
        generate(seed, directory.path());
        let check = |name: &str| {
            let check = Command::new("grub-script-check").arg(directory.path().join(name)).output();
            check.is_ok_and(|check| check.status.success())
        };
        let is_right = check("grub.cfg") && check("part.cfg");
        let ours = named_by_lowlat(directory.path(), &[], DEBIAN);
        let grub = booted_by_grub(directory.path(), None);
        match ours {
            Ok(line) if line == grub => {}
            Err(why) if why.ends_with("which GRUB cannot parse") => {
                rejected += 1;
                if is_right {
                    different.push(format!("menu {seed}: {why}, but GRUB can"));
                }
            }
            Err(why) => unknown.push((seed, why)),
            Ok(line) => {
                let kept = directory.keep();
                different.push(format!("menu {seed} in {kept:?}: GRUB boots {grub:?}, lowlat says {line:?}"));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    eprintln!("{rejected} of {menus} menus are wrong, and {} are not known: {unknown:?}", unknown.len());
    // In a few menus, unknown answers can be more frequent than in a thousand.
    assert!(unknown.len() <= menus / 8 + 16, "more than an eighth is not known");
    assert!(rejected <= menus / 4 + 16, "more than a quarter is wrong");
}
