//! Menus as distributions write them, and what depends on what nobody can know.

use super::{Build, Found, MenuSurroundings};
use crate::boot_files::{
    entry_order::{EntryFile, Order},
    grub_menu::GrubMenu,
};
use proptest::prelude::*;

const RED_HAT: Build = Build { is_name_first: true, order: Order::Package };
const DEBIAN: Build = Build { is_name_first: false, order: Order::FileName };

/// Returns the line that boots next on a host with a few files in the menu's directory; no other file was read.
fn next_with(
    text: &str,
    files: &[(&str, &str)],
    entries: &[EntryFile],
    builds: &[Build],
) -> Result<Option<String>, String> {
    let read = |path: &str| match path.strip_prefix("/boot/grub2/") {
        None => Found::NotKnown,
        Some(name) => match files.iter().find(|(file, _)| *file == name) {
            Some((_, text)) if name == "grubenv" => {
                let mut block = format!("# GRUB Environment Block\n{text}").into_bytes();
                block.resize(1024, b'#');
                Found::File(block)
            }
            Some((_, text)) => Found::File(text.as_bytes().to_vec()),
            None => Found::Missing,
        },
    };
    let surroundings =
        MenuSurroundings { directory: "/boot/grub2", read: &read, entries, platform: Some("efi"), builds };
    let line = GrubMenu::parse(text).next_line(&surroundings)?;
    Ok(line.map(|line| line.trim_start_matches("BOOT_IMAGE=").to_owned()))
}

fn next(text: &str, grubenv: &str) -> Result<Option<String>, String> {
    next_with(text, &[("grubenv", grubenv)], &[], &[DEBIAN])
}

#[track_caller]
fn boots(text: &str, grubenv: &str, line: &str) {
    assert_eq!(next(text, grubenv), Ok(Some(line.to_owned())), "{grubenv:?} in {text}");
}

#[track_caller]
fn is_unknown(text: &str, why: &str) {
    let answer = next(text, "").unwrap_err();
    assert!(answer.contains(why), "{answer:?} of {text}");
}

/// The scripts of Fedora's and Red Hat's generator.
const FEDORA: &str = r#"
### BEGIN /etc/grub.d/00_header ###
set pager=1
if [ -f ${config_directory}/grubenv ]; then
  load_env -f ${config_directory}/grubenv
elif [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="${saved_entry}"
fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi
export menuentry_id_option
if [ "${prev_saved_entry}" ]; then
  set saved_entry="${prev_saved_entry}"
  save_env saved_entry
  set prev_saved_entry=
  save_env prev_saved_entry
  set boot_once=true
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
    save_env saved_entry
  fi
}
function load_video {
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  else
    insmod efi_gop
  fi
}
terminal_output console
if [ x$feature_timeout_style = xy ] ; then
  set timeout_style=menu
  set timeout=5
else
  set timeout=5
fi
### END /etc/grub.d/00_header ###
### BEGIN /etc/grub.d/00_tuned ###
set tuned_params="skew_tick=1"
set tuned_initrd=""
### END /etc/grub.d/00_tuned ###
### BEGIN /etc/grub.d/01_users ###
if [ -f ${prefix}/user.cfg ]; then
  source ${prefix}/user.cfg
  if [ -n "${GRUB2_PASSWORD}" ]; then
    set superusers="root"
    export superusers
    password_pbkdf2 root ${GRUB2_PASSWORD}
  fi
fi
### END /etc/grub.d/01_users ###
### BEGIN /etc/grub.d/08_fallback_counting ###
insmod increment
# Check if boot_counter exists and boot_success=0 to activate this behaviour.
if [ -n "${boot_counter}" -a "${boot_success}" = "0" ]; then
  # if countdown has ended, choose to boot rollback deployment,
  # i.e. default=1 on OSTree-based systems.
  if  [ "${boot_counter}" = "0" -o "${boot_counter}" = "-1" ]; then
    set default=1
    set boot_counter=-1
  # otherwise decrement boot_counter
  else
    decrement boot_counter
  fi
  save_env boot_counter
fi
### END /etc/grub.d/08_fallback_counting ###
### BEGIN /etc/grub.d/10_linux ###
insmod part_gpt
insmod xfs
set root='hd0,gpt2'
if [ x$feature_platform_search_hint = xy ]; then
  search --no-floppy --fs-uuid --set=root --hint='hd0,gpt2'  90f8
else
  search --no-floppy --fs-uuid --set=root 90f8
fi
insmod part_gpt
set boot='hd0,gpt2'
if [ -z "${kernelopts}" ]; then
  set kernelopts="root=/dev/mapper/rhel-root ro of_menu "
fi
insmod blscfg
blscfg
### END /etc/grub.d/10_linux ###
### BEGIN /etc/grub.d/10_reset_boot_success ###
if [ "${boot_success}" = "1" -o "${boot_indeterminate}" = "1" ]; then
  set menu_hide_ok=1
else
  set menu_hide_ok=0
fi
if [ "${boot_success}" = "1" ] ; then
  set boot_indeterminate=0
elif [ "${boot_indeterminate}" = "1" ]; then
  set boot_indeterminate=2
fi
set boot_success=0
save_env boot_success boot_indeterminate
### END /etc/grub.d/10_reset_boot_success ###
### BEGIN /etc/grub.d/12_menu_auto_hide ###
if [ x$feature_timeout_style = xy ] ; then
  if [ "${menu_show_once}" ]; then
    unset menu_show_once
    save_env menu_show_once
    set timeout_style=menu
    set timeout=60
  elif [ "${menu_auto_hide}" -a "${menu_hide_ok}" = "1" ]; then
    set orig_timeout_style=${timeout_style}
    set orig_timeout=${timeout}
    if [ "${fastboot}" = "1" ]; then
      set timeout_style=menu
      set timeout=0
    else
      set timeout_style=hidden
      set timeout=1
    fi
  fi
fi
### END /etc/grub.d/12_menu_auto_hide ###
### BEGIN /etc/grub.d/30_uefi-firmware ###
if [ "$grub_platform" = "efi" ]; then
	fwsetup --is-supported
	if [ "$?" = 0 ]; then
		menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
			fwsetup
		}
	fi
fi
### END /etc/grub.d/30_uefi-firmware ###
### BEGIN /etc/grub.d/41_custom ###
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
### END /etc/grub.d/41_custom ###
"#;

fn fedora_entries() -> Vec<EntryFile> {
    let entry = |id: &str, title: &str| EntryFile {
        id: format!("3a17f34d-{id}"),
        text: format!(
            "title {title}\nversion {id}\nlinux /vmlinuz-{id}\noptions $kernelopts $tuned_params\n"
        ),
    };
    vec![
        entry("0-rescue", "Rescue"),
        entry("5.14.0-70.el9", "Old"),
        entry("5.14.0-427.el9.x86_64", "Stock"),
        entry("5.14.0-427.13.1.el9_4.x86_64", "Patched"),
        EntryFile { id: "3a17f34d-9-windows".into(), text: "title Windows\nefi /bootmgfw.efi\n".into() },
    ]
}

#[track_caller]
fn fedora_boots(grubenv: &str, version: &str) {
    let answer = next_with(FEDORA, &[("grubenv", grubenv)], &fedora_entries(), &[RED_HAT]);
    let line = format!("/vmlinuz-{version} root=/dev/mapper/rhel-root ro of_menu skew_tick=1");
    assert_eq!(answer, Ok(Some(line)), "{grubenv:?}");
}

#[test]
fn fallback_counting_chooses_the_second_entry_only_after_failed_boots() {
    fedora_boots("saved_entry=3a17f34d-5.14.0-427.el9.x86_64\n", "5.14.0-427.el9.x86_64");
    fedora_boots("saved_entry=3a17f34d-5.14.0-427.el9.x86_64\nboot_success=0\n", "5.14.0-427.el9.x86_64");
    fedora_boots("saved_entry=3a17f34d-5.14.0-70.el9\nboot_success=0\nboot_counter=2\n", "5.14.0-70.el9");
    for counter in ["0", "-1"] {
        let block = format!("saved_entry=3a17f34d-5.14.0-70.el9\nboot_success=0\nboot_counter={counter}\n");
        fedora_boots(&block, "5.14.0-427.el9.x86_64");
        fedora_boots(&block.replace("boot_success=0", "boot_success=1"), "5.14.0-70.el9");
    }
    fedora_boots("", "5.14.0-427.13.1.el9_4.x86_64");
    fedora_boots("saved_entry=gone\n", "5.14.0-427.13.1.el9_4.x86_64");
    fedora_boots("next_entry=Rescue\nsaved_entry=Old\n", "0-rescue");
    fedora_boots("saved_entry=2\nprev_saved_entry=Rescue\n", "5.14.0-70.el9");
}

#[test]
fn variables_of_the_block_are_in_the_line() {
    let block = "saved_entry=Old\nkernelopts=root=x ro \nboot_success=1\n";
    let answer = |files: &[(&str, &str)]| next_with(FEDORA, files, &fedora_entries(), &[RED_HAT]);
    assert_eq!(
        answer(&[("grubenv", block)]),
        Ok(Some("/vmlinuz-5.14.0-70.el9 root=x ro skew_tick=1".to_owned()))
    );
    let custom = ("custom.cfg", "set default=Rescue\n");
    assert!(answer(&[("grubenv", block), custom]).unwrap().unwrap().starts_with("/vmlinuz-0-rescue"));
    assert!(
        answer(&[]).unwrap().unwrap().starts_with("/vmlinuz-5.14.0-427.13.1.el9_4.x86_64"),
        "no block at all"
    );
}

#[test]
fn builds_that_sort_differently_give_one_answer_or_none() {
    let both = [RED_HAT, Build { order: Order::FileName, ..RED_HAT }];
    let answer = |block| next_with(FEDORA, &[("grubenv", block)], &fedora_entries(), &both);
    assert!(answer("saved_entry=Old\n").unwrap().unwrap().contains("-70."));
    assert_eq!(answer(""), Err("the version of GRUB".to_owned()));
    // To GRUB as released, an id that starts with a digit is a number.
    let id = [("grubenv", "saved_entry=3a17f34d-5.14.0-70.el9\n")];
    let stock = next_with(FEDORA, &id, &fedora_entries(), &[DEBIAN]).unwrap().unwrap();
    assert!(stock.starts_with("/vmlinuz-0-rescue"), "{stock}");
}

/// A menu of the generator of Debian and Ubuntu.
const UBUNTU: &str = r#"
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${initrdfail}" = 2 ]; then
   set initrdfail=
elif [ "${initrdfail}" = 1 ]; then
   set next_entry="${prev_entry}"
   set prev_entry=
   save_env prev_entry
   if [ "${next_entry}" ]; then
      set initrdfail=2
   fi
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi
export menuentry_id_option
function recordfail {
  set recordfail=1
  if [ -n "${have_grubenv}" ]; then if [ -z "${boot_once}" ]; then save_env recordfail; fi; fi
}
function initrdfail {
    if [ -n "${have_grubenv}" ]; then if [ -n "${partuuid}" ]; then
      if [ -z "${initrdfail}" ]; then
        set initrdfail=1
        if [ -n "${boot_once}" ]; then
          set prev_entry="${default}"
          save_env prev_entry
        fi
      fi
      save_env initrdfail
    fi; fi
}
function load_video {
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  fi
}
if [ x$feature_default_font_path = xy ] ; then
   font=unicode
else
insmod part_gpt
    font="/usr/share/grub/unicode.pf2"
fi
if loadfont $font ; then
  set gfxmode=auto
  load_video
  insmod gfxterm
  set locale_dir=$prefix/locale
  set lang=en_US
  insmod gettext
fi
terminal_output gfxterm
if [ "${recordfail}" = 1 ] ; then
  set timeout=30
else
  if [ x$feature_timeout_style = xy ] ; then
    set timeout_style=hidden
    set timeout=0
  fi
fi
if background_image -m stretch /usr/share/wall.png; then
  set color_normal=white/black
else
  set menu_color_normal=white/black
fi
function gfxmode {
	set gfxpayload="${1}"
	if [ "${1}" = "keep" ]; then
		set vt_handoff=vt.handoff=7
	else
		set vt_handoff=
	fi
}
if [ "${recordfail}" != 1 ]; then
  if [ -e ${prefix}/gfxblacklist.txt ]; then
    if [ ${grub_platform} != pc ]; then
      set linux_gfx_mode=keep
    elif hwmatch ${prefix}/gfxblacklist.txt 3; then
      if [ ${match} = 0 ]; then
        set linux_gfx_mode=keep
      else
        set linux_gfx_mode=text
      fi
    else
      set linux_gfx_mode=text
    fi
  else
    set linux_gfx_mode=keep
  fi
else
  set linux_gfx_mode=text
fi
export linux_gfx_mode
menuentry 'Ubuntu' --class ubuntu --class gnu-linux --class gnu --class os $menuentry_id_option 'gnulinux-simple-90f8' {
	recordfail
	load_video
	gfxmode $linux_gfx_mode
	insmod gzio
	if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
	search --no-floppy --fs-uuid --set=root 90f8
	if [ "${initrdfail}" = 1 ]; then
	  echo	'GRUB_FORCE_PARTUUID set, initrdless boot failed. Attempting with initrd.'
	  linux	/vmlinuz-6.8 root=PARTUUID=1 ro  quiet $vt_handoff
	  initrd	/initrd.img-6.8
	else
	  linux	/vmlinuz-6.8 root=PARTUUID=1 ro  quiet $vt_handoff panic=-1
	fi
	initrdfail
}
submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-90f8' {
	menuentry 'Ubuntu, with Linux 6.8' --class ubuntu $menuentry_id_option 'gnulinux-6.8-advanced-90f8' {
		recordfail
		gfxmode $linux_gfx_mode
		linux	/vmlinuz-6.8 root=UUID=90f8 ro quiet
	}
	menuentry 'Ubuntu, with Linux 6.8 (recovery mode)' $menuentry_id_option 'gnulinux-6.8-recovery-90f8' {
		linux	/vmlinuz-6.8 root=UUID=90f8 ro single
	}
}
if [ "$grub_platform" = "efi" ]; then
	menuentry 'Memtest' $menuentry_id_option 'memtest' {
		linux	/memtest.efi
	}
fi
"#;

#[test]
fn ubuntu_boots_once_what_next_entry_names_and_tries_again_after_failures() {
    let usual = "/vmlinuz-6.8 root=PARTUUID=1 ro quiet vt.handoff=7 panic=-1";
    boots(UBUNTU, "", usual);
    boots(UBUNTU, "recordfail=1\n", "/vmlinuz-6.8 root=PARTUUID=1 ro quiet panic=-1");
    boots(UBUNTU, "initrdfail=1\n", "/vmlinuz-6.8 root=PARTUUID=1 ro quiet vt.handoff=7");
    boots(UBUNTU, "initrdfail=2\n", usual);
    let recovery = "/vmlinuz-6.8 root=UUID=90f8 ro single";
    let name = "gnulinux-advanced-90f8>gnulinux-6.8-recovery-90f8";
    boots(UBUNTU, &format!("next_entry={name}\n"), recovery);
    boots(UBUNTU, "next_entry=1>1\n", recovery);
    boots(UBUNTU, &format!("initrdfail=1\nprev_entry={name}\n"), recovery);
    boots(UBUNTU, "next_entry=gnulinux-advanced-90f8\n", "/vmlinuz-6.8 root=UUID=90f8 ro quiet");
    boots(UBUNTU, "next_entry=memtest\n", "/memtest.efi");
    boots(UBUNTU, "next_entry=gone\n", usual);
}

#[test]
fn suse_has_a_submenu_of_snapshots_only_when_it_booted_from_one() {
    let menu = r#"
load_env
if [ "${next_entry}" ] ; then set default="${next_entry}"; else set default="${saved_entry}"; fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
fi
export menuentry_id_option
if [ -n "$extra_cmdline" ]; then
  submenu "Bootable snapshot #$snapshot_num" {
    menuentry "If OK, run 'snapper rollback' and reboot." { true; }
  }
fi
if [ "$grub_platform" = "efi" ]; then
  submenu 'Advanced options for SLES' --hotkey=1 $menuentry_id_option 'gnulinux-advanced-6b' {
    menuentry 'SLES, with Linux 6.4' --hotkey=2 $menuentry_id_option 'gnulinux-6.4-advanced-6b' {
      linux /boot/vmlinuz-6.4 root=UUID=6b ${extra_cmdline} quiet
    }
  }
fi
menuentry 'SLES 15' --class sles $menuentry_id_option 'gnulinux-simple-6b' {
  linux /boot/vmlinuz root=UUID=6b ${extra_cmdline} splash=silent
}
if [ -f "/.snapshots/grub-snapshot.cfg" ]; then
  set snapshots=yes
fi
"#;
    let advanced = "/boot/vmlinuz-6.4 root=UUID=6b quiet";
    boots(menu, "saved_entry=Advanced options for SLES>SLES, with Linux 6.4\n", advanced);
    boots(menu, "saved_entry=gnulinux-advanced-6b>gnulinux-6.4-advanced-6b\n", advanced);
    boots(menu, "saved_entry=SLES 15\n", "/boot/vmlinuz root=UUID=6b splash=silent");
    boots(menu, "saved_entry=1\n", "/boot/vmlinuz root=UUID=6b splash=silent");
    boots(menu, "", advanced);
    // If the firmware is unknown, so is the first entry.
    let bios = menu.replace("\"$grub_platform\" = \"efi\"", "\"$grub_cpu\" = x86_64");
    is_unknown(&bios, "which entries the menu has");
    boots(&bios, "saved_entry=SLES 15\n", "/boot/vmlinuz root=UUID=6b splash=silent");
}

#[test]
fn only_what_the_answer_depends_on_makes_it_unknown() {
    let entries = "menuentry A --id a { linux /a\n}\nmenuentry B --id b { linux /b $v\n}\n";
    let menu = |text: &str| format!("{text}\n{entries}");
    let unknown = "[ $grub_cpu = x86_64 ]";
    boots(&menu(&format!("if {unknown}; then set default=1; else set default=1; fi")), "", "/b");
    boots(&menu(&format!("if {unknown}; then set v=x; insmod y; fi; set default=a")), "", "/a");
    boots(
        &menu("x=\"$grub_cpu\"; set y=$grub_cpu; if [ '' -a \"$x$y\" = 1 ]; then set default=1; fi"),
        "",
        "/a",
    );
    boots(
        &menu(
            "if [ -f /other/disk ]; then set x=1; else set x=2; fi; if [ \"$x\" -gt 0 -o -n 1 ]; then set default=b; fi",
        ),
        "",
        "/b",
    );
    boots(&menu("search --set=other --label x; if [ -e ($other)/file ]; then set v=1; fi"), "", "/a");
    boots(&menu("set default=1; load_env -f $prefix/missing"), "", "/b");
    boots(&menu(&format!("if {unknown}; then\nmenuentry C {{ linux /c\n}}\nfi\nset default=b")), "", "/b");

    is_unknown(&menu(&format!("if {unknown}; then set default=1; fi")), "the value of the variable default");
    is_unknown(&menu(&format!("set default=b; if {unknown}; then v=1; fi")), "variable in its command line");
    is_unknown(
        &menu(&format!("if {unknown}; then\nmenuentry C {{ linux /c\n}}\nfi")),
        "which entries the menu has",
    );
    is_unknown(&menu("$grub_platform_x$grub_cpu"), "a command whose name is not known");
    is_unknown(&menu("load_env -f (hd0)/grubenv"), "(hd0)/grubenv, which could not be read");
    is_unknown(&menu("source /other/menu"), "/other/menu, which could not be read");
    is_unknown(&menu("while loadfont x; do true; done"), "the condition of a loop");
    is_unknown(&menu("eval \"set default=1\""), "the command `eval`");
    is_unknown(&menu("if true; then fi"), "line 1, which GRUB cannot parse");
    is_unknown(&menu("linux /x\nboot"), "the command `boot`");
}

#[test]
fn other_menus_decide_in_their_place() {
    let stub = "search --set=dev --label boot\nexport x\nx=1\ny=2\nconfigfile $prefix/other.cfg\nmenuentry A { linux /a\n}\n";
    let other = "set f=$config_file\nmenuentry O { linux /o \"x$x\" \"y$y\" $f\n}\n";
    let answer = |files: &[(&str, &str)]| next_with(stub, files, &[], &[DEBIAN]);
    assert_eq!(answer(&[("other.cfg", other)]), Ok(Some("/o x1 y (host)/boot/grub2/other.cfg".to_owned())));
    assert_eq!(answer(&[("other.cfg", "true\n")]), Ok(Some("/a".to_owned())), "a menu without entries");
    assert_eq!(answer(&[]), Ok(Some("/a".to_owned())));
    assert_eq!(next("", ""), Ok(None));
    boots("menuentry A { configfile $prefix/x\nlinux /a\n}\n", "", "/a");
    assert_eq!(next("menuentry A { chainloader /x\n}\n", ""), Ok(None), "no Linux");
}

#[test]
fn words_are_parted_as_grub_does() {
    let line = |arguments: &str| {
        let text =
            format!("set r=hd0\nset k=\"root=/dev/sda ro \"\nmenuentry A {{\n linux /x {arguments}\n}}\n");
        next(&text, "").unwrap().unwrap().trim_start_matches("/x").trim().to_owned()
    };
    assert_eq!(line("($r)/y $k $unset x"), "(hd0)/y root=/dev/sda ro x");
    assert_eq!(line("\"b $r c\\\"\" 'd $r' e\\ f # g"), "\"b hd0 c\\\"\" \"d $r\" \"e f\"");
    assert_eq!(line("\"$k\" ${r}1; echo"), "\"root=/dev/sda ro \" hd01");
    assert_eq!(line("a\\\n b x#y"), "a b x#y");
    boots("menuentry A {\n linux ($root_x)/y a\n}\n", "", "()/y a");
    boots("search --set=d x\nmenuentry A {\n linux ($d)/y a\n}\n", "", "($d)/y a");
}

#[test]
fn every_menu_ends() {
    let entry = "menuentry A { linux /a $x\n}\n";
    for text in [
        "while true; do x=1; done",
        "x=1; while true; do x=$x$x; done",
        "function f { f; }\nf",
        "function f { if [ $grub_cpu = x ]; then f; else f; fi; }\nf",
        "source $prefix/self.cfg",
        "for a in 1 2 3 4 5 6 7 8; do for b in 1 2 3 4 5 6 7 8; do while [ -n 1 ]; do true; done; done; done",
    ] {
        let answer = next_with(&format!("{text}\n{entry}"), &[("self.cfg", text)], &[], &[DEBIAN]);
        assert!(answer.is_err(), "{text}: {answer:?}");
    }
    for open in
        ["{", "if true; then ", "submenu x { ", "menuentry x { ", "[ ( ", "while true; do ", "\"$", "`("]
    {
        let _ = next(&open.repeat(100_000), "");
    }
    let deep =
        format!("if [ {} x {} ]; then set default=1; fi\n{entry}", "( ".repeat(5000), " )".repeat(5000));
    assert!(next(&deep, "").is_err());
}

proptest! {
    #[test]
    fn no_menu_panics(lines in prop::collection::vec(0usize..400, 1..40), cut in 0usize..6000) {
        let all: Vec<&str> = [FEDORA, UBUNTU].iter().flat_map(|menu| menu.lines()).collect();
        let text: Vec<&str> = lines.iter().map(|line| all[line % all.len()]).collect();
        let _ = next_with(&text.join("\n"), &[("grubenv", "a=b\n")], &fedora_entries(), &[RED_HAT, DEBIAN]);
        let kept: String = UBUNTU.chars().take(cut).collect();
        let _ = next(&kept, "");
    }

    #[test]
    fn no_text_panics(text in "([\\PC\n{}\\[\\]$\"']|if |then|fi|set |; ){0,60}") {
        let _ = next(&text, "");
    }
}
