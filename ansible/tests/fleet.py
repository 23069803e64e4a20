"""The playbooks of the collection on fake hosts: on this machine, with a program that stands in for lowlat."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent
COLLECTION = TESTS.parent
ROW = "vm.swappiness: overridden by sysctl_file /etc/sysctl.d/zz-app.conf, planned"


class Run:
    """A finished playbook."""

    def __init__(self, done):
        self.status, self.text = done.returncode, done.stdout
        recap = self.text.rpartition("PLAY RECAP")[2]
        self.changed = {host: int(count) for host, count in re.findall(r"^(\w+) .*changed=(\d+)", recap, re.M)}


class FleetTest(unittest.TestCase):
    """Two fake hosts, desk1 and desk2."""

    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="lowlat-ansible-test."))
        self.addCleanup(shutil.rmtree, self.top)
        (self.top / "ansible_collections/lowlat").mkdir(parents=True)
        (self.top / "ansible_collections/lowlat/lowlat").symlink_to(COLLECTION)
        self.binary = self.top / "lowlat-to-ship"
        fake = (TESTS / "fake_lowlat.py").read_text().replace("@DOCUMENTS@", str(TESTS / "documents"))
        self.binary.write_text(f"#!{sys.executable}\n{fake}")
        self.binary.chmod(0o755)
        for host in ("desk1", "desk2"):
            folder = self.top / host
            folder.mkdir()
            (folder / "boot_id").write_text("boot 0\n")
            (folder / "reboot").write_text(f"#!/bin/sh\nexec {self.binary} reboot\n")
            (folder / "reboot").chmod(0o755)

    def play(self, name, hosts=("desk1",), arguments=(), **variables):
        """Runs a playbook of the collection on these hosts."""
        shared = {
            "ansible_become": False,
            "ansible_connection": "fake_host",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "lowlat_binary": str(self.binary),
            "lowlat_documents_directory": str(self.top / "documents"),
            **variables,
        }
        own = {
            host: {
                "fake_host_directory": str(self.top / host),
                "lowlat_program": str(self.top / host / "lowlat"),
                "lowlat_work_directory": str(self.top / host),
                "lowlat_reboot_command": str(self.top / host / "reboot"),
            }
            for host in hosts
        }
        inventory = self.top / "inventory.json"
        inventory.write_text(json.dumps({"lowlat": {"hosts": own, "vars": {name: value for name, value in shared.items() if value is not None}}}))
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(self.top),
            "ANSIBLE_CONFIG": str(self.top / "none.cfg"),
            "ANSIBLE_CONNECTION_PLUGINS": str(TESTS / "connection_plugins"),
            "ANSIBLE_HOME": str(self.top / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PYTHON_INTERPRETER": "auto_silent",
            "PWD": str(self.top),
        }
        command = ["ansible-playbook", "-i", inventory, f"lowlat.lowlat.{name}", *arguments]
        return Run(subprocess.run(command, cwd=self.top, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False))

    def passes(self, run):
        self.assertEqual(run.status, 0, run.text)
        return run

    def put(self, host, **state):
        """Changes the state of a host."""
        kept = self.top / host / "state.json"
        kept.write_text(json.dumps({**(json.loads(kept.read_text()) if kept.exists() else {}), **state}))

    def state(self, host):
        return json.loads((self.top / host / "state.json").read_text())

    def calls(self, host):
        """The calls of lowlat since the last look, without the paths of the private directory."""
        log = self.top / host / "calls"
        text = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        return re.sub(r"\S*/lowlat-ansible/", "DIR/", text).splitlines()

    def test_check_mode_shows_the_plan_and_changes_nothing(self):
        before = {path.name for path in (self.top / "desk1").iterdir()}
        run = self.passes(self.play("rollout", arguments=["--check"]))
        self.assertIn("+ skew_tick=1", run.text)
        self.assertEqual(run.changed["desk1"], 2, "the binary and the plan: " + run.text)
        self.assertEqual(self.calls("desk1"), ["--version", "tune plan --out DIR/plan.json"])
        self.assertEqual({path.name for path in (self.top / "desk1").iterdir()}, before)

    def test_check_mode_without_lowlat_says_so(self):
        run = self.passes(self.play("rollout", arguments=["--check"], lowlat_package="lowlat.deb", lowlat_binary=None))
        self.assertIn("lowlat is not installed", run.text)

    def test_a_stock_host_gets_the_plan_which_then_stays_as_it_is(self):
        run = self.passes(self.play("rollout", lowlat_profile="trading", lowlat_accept_risks=["boot.psi"]))
        apply = "tune apply --plan DIR/plan.json --yes --json --confirm-within 10m"
        status, verify = "tune status --json", "tune verify --json"
        self.assertEqual(
            self.calls("desk1"),
            [
                "--version",
                status,
                "tune plan --out DIR/plan.json --profile trading --accept-risk boot.psi",
                status,
                apply,
                status,
                "reboot",
                status,
                verify,
                "tune confirm --json",
            ],
        )
        self.assertEqual(run.changed["desk1"], 4, "binary, apply, reboot, confirm: " + run.text)
        self.assertEqual((self.state("desk1")["boots"], self.state("desk1")["waits"]), (1, False))
        saved = json.loads((self.top / "documents/desk1.verification.json").read_text())
        self.assertEqual(saved["counts"]["held"], 3)
        self.assertEqual(list((self.top / "desk1").glob("lowlat-ansible*")), [])

        again = self.passes(self.play("rollout"))
        self.assertEqual(again.changed["desk1"], 0, again.text)
        self.assertEqual(self.calls("desk1"), ["--version", status, "tune plan --out DIR/plan.json", status, f"{verify} --no-ticks"])

    def test_a_plan_that_does_not_hold_is_not_confirmed(self):
        self.put("desk1", faulty=True)
        run = self.play("rollout")
        self.assertNotEqual(run.status, 0)
        self.assertIn(ROW, run.text)
        self.assertIn("rolls it back within 10m", run.text)
        self.assertNotIn("tune confirm --json", self.calls("desk1"))
        self.assertTrue(self.state("desk1")["waits"])
        saved = json.loads((self.top / "documents/desk1.verification.json").read_text())
        self.assertEqual(saved["counts"]["overridden"], 1)

    def test_a_failure_shows_the_programs_own_message(self):
        for what in ("apply", "confirm", "rollback"):
            self.put("desk1", **({"plan": "complete"} if what == "rollback" else {}), refuses=[what])
            run = self.play("rollback" if what == "rollback" else "rollout")
            self.assertNotEqual(run.status, 0, run.text)
            self.assertIn(f"cannot {what}: the disk is full", run.text)
            self.assertNotIn("from_json", run.text)

    def test_the_first_host_that_fails_ends_the_roll_out(self):
        self.put("desk1", faulty=True)
        run = self.play("rollout", hosts=("desk1", "desk2"))
        self.assertNotEqual(run.status, 0)
        self.assertEqual(self.calls("desk2"), [], run.text)
        self.assertFalse((self.top / "desk2/lowlat").exists())

    def test_a_host_that_is_lost_ends_the_roll_out_and_the_rollback(self):
        for name in ("rollout", "rollback"):
            # gone has no directory, so that it is unreachable from the start.
            run = self.play(name, hosts=("gone", "desk1", "desk2"))
            self.assertNotEqual(run.status, 0, name)
            self.assertRegex(run.text, r"gone .*unreachable=1")
            self.assertIn("gone was lost or failed", run.text)
            self.assertEqual((self.calls("desk1"), self.calls("desk2")), ([], []), run.text)

    def test_relative_paths_mean_the_callers_folder(self):
        controller = self.top / "controller"
        controller.mkdir()
        shutil.copy(self.binary, controller / "lowlat")
        shutil.copy(self.binary, self.top / "desk1/lowlat")
        role = self.top / "desk.toml"
        role.write_text('profile = "trading"\n')
        self.passes(
            self.play(
                "collect",
                lowlat_documents=["result"],
                lowlat_documents_directory="here/documents",
                lowlat_role_file="desk.toml",
                lowlat_binary="lowlat-to-ship",
                lowlat_controller_program=str(controller / "lowlat"),
                lowlat_report="page.html",
            )
        )
        self.assertTrue((self.top / "page.html").exists())
        self.assertTrue((self.top / "here/documents/desk1.result.json").exists())
        self.assertFalse((COLLECTION / "playbooks/page.html").exists())

    def test_a_start_without_end_fails_before_the_host_rolls_back(self):
        systemctl = self.top / "desk1/bin/systemctl"
        systemctl.parent.mkdir()
        systemctl.write_text("#!/bin/sh\nexec sleep 600\n")
        systemctl.chmod(0o755)
        self.put("desk1", within_s=4)
        run = self.play("rollout")
        self.assertNotEqual(run.status, 0)
        self.assertIn("systemd is still starting units after 2 seconds", run.text)
        self.assertEqual(self.calls("desk1")[-1], "reboot", run.text)
        self.assertTrue(self.state("desk1")["waits"])

    def test_drift_is_repaired_without_the_switch(self):
        self.put("desk1", plan="complete", applied_in=0, boots=1, drifted=True)
        run = self.passes(self.play("rollout"))
        self.assertIn("tune apply --plan DIR/plan.json --yes --json", self.calls("desk1"))
        self.assertEqual(self.state("desk1")["boots"], 1, run.text)
        # Not repairable: the confirmed plan stays.
        self.put("desk1", faulty=True)
        run = self.play("rollout")
        self.assertNotEqual(run.status, 0)
        self.assertIn("confirmed earlier, and stays", run.text)
        self.assertFalse(self.state("desk1")["waits"])

    def test_a_host_on_which_much_cannot_be_read_stays_as_it_is(self):
        self.put("desk1", plan="complete", unread=True)
        run = self.passes(self.play("rollout"))
        self.assertEqual(run.changed["desk1"], 1, "the binary: " + run.text)
        self.put("desk1", waits=True)
        run = self.passes(self.play("rollout"))
        self.assertEqual(run.changed["desk1"], 1, "the confirmation: " + run.text)
        self.passes(self.play("rollout", arguments=["--check"]))

    def test_an_interrupted_apply_is_completed_first(self):
        self.put("desk1", plan="part", waits=True, applied_in=0)
        self.passes(self.play("rollout"))
        self.assertIn("tune apply --yes --json --confirm-within 10m", self.calls("desk1"))
        self.assertEqual((self.state("desk1")["plan"], self.state("desk1")["waits"]), ("complete", False))

    def test_a_run_that_ended_before_the_confirmation_is_resumed(self):
        self.put("desk1", plan="complete", waits=True, applied_in=0, boots=1)
        self.passes(self.play("rollout"))
        self.assertEqual((self.state("desk1")["boots"], self.state("desk1")["waits"]), (1, False))

    def test_documents_are_collected_and_rendered(self):
        self.put("desk1", plan="complete", applied_in=0, boots=1)
        for host in ("desk1", "desk2"):
            shutil.copy(self.binary, self.top / host / "lowlat")
        role = self.top / "desk.toml"
        role.write_text('profile = "trading"\n')
        controller = self.top / "controller"
        controller.mkdir()
        shutil.copy(self.binary, controller / "lowlat")
        run = self.play(
            "collect",
            hosts=("desk1", "desk2"),
            lowlat_documents=["verification", "result", "capture"],
            lowlat_assess_arguments=["--no-measure"],
            lowlat_role_file=str(role),
            lowlat_controller_program=str(controller / "lowlat"),
            lowlat_report=str(self.top / "page.html"),
        )
        self.assertEqual(self.passes(run).changed, {"desk1": 0, "desk2": 0})
        found = sorted(path.name for path in (self.top / "documents").iterdir())
        both = ("desk1", "desk2")
        expected = ["desk1.verification.json", *(f"{host}.{kind}" for host in both for kind in ("result.json", "capture.tar.gz"))]
        self.assertEqual(found, sorted(expected))
        self.assertIn("--role DIR/role.toml --no-measure", "\n".join(self.calls("desk2")))
        files = " ".join(f"{self.top}/documents/{host}.result.json" for host in both)
        self.assertEqual(self.calls("controller"), [f"report fleet {files} --report {self.top}/page.html"])
        self.assertTrue((self.top / "page.html").exists())

    def test_the_page_has_no_results_of_an_earlier_run(self):
        shutil.copy(self.binary, self.top / "desk1/lowlat")
        # desk2 fails, because it does not have lowlat; desk3 is unreachable.
        (self.top / "documents").mkdir()
        for host in ("desk2", "desk3"):
            (self.top / f"documents/{host}.result.json").write_text("{}\n")
        controller = self.top / "controller"
        controller.mkdir()
        shutil.copy(self.binary, controller / "lowlat")
        page = {"lowlat_controller_program": str(controller / "lowlat"), "lowlat_report": str(self.top / "page.html")}
        run = self.play("collect", hosts=("desk1", "desk2", "desk3"), lowlat_documents=["result"], **page)
        self.assertNotEqual(run.status, 0)
        self.assertRegex(run.text, r"desk3 .*unreachable=1")
        self.assertEqual(self.calls("controller"), [f"report fleet {self.top}/documents/desk1.result.json --report {self.top}/page.html"], run.text)
        self.assertTrue((self.top / "documents/desk2.result.json").exists())
        run = self.passes(self.play("collect", lowlat_documents=["verification"], **page))
        self.assertIn("page.html is not written: this run collected no result document", run.text)
        self.assertEqual(self.calls("controller"), [])

    def test_the_rollback_reboots_and_is_idempotent(self):
        self.put("desk1", plan="complete", applied_in=0, boots=1)
        shutil.copy(self.binary, self.top / "desk1/lowlat")
        preview = self.passes(self.play("rollback", arguments=["--check"]))
        self.assertIn("To be restored: 1.", preview.text)
        self.assertEqual((preview.changed["desk1"], self.state("desk1")["plan"]), (1, "complete"))
        run = self.passes(self.play("rollback"))
        self.assertEqual(run.changed["desk1"], 2, "rollback and reboot: " + run.text)
        self.assertEqual((self.state("desk1")["plan"], self.state("desk1")["boots"]), (None, 2))
        again = self.passes(self.play("rollback"))
        self.assertEqual(again.changed["desk1"], 0, again.text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
