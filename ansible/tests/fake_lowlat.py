"""Stands in for lowlat on a fake host: logs its calls, and answers with documents that lowlat wrote.

The directory of the host, from FAKE_HOST or else the program's own, has state.json, the log `calls`, and boot_id.
"""

import json
import os
import pathlib
import sys

HOST = pathlib.Path(os.environ.get("FAKE_HOST") or pathlib.Path(__file__).parent)
DOCUMENTS = pathlib.Path("@DOCUMENTS@")
STOCK = {"plan": None, "boots": 0, "applied_in": None, "waits": False, "drifted": False, "faulty": False, "rolled_back_in": None, "within_s": 600, "refuses": [], "unread": False}


def document(name):
    return json.loads((DOCUMENTS / name).read_text())


def answer(status, value):
    print(json.dumps(value, indent=2))
    sys.exit(status)


def after(option):
    """The value of an option; None without it."""
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else None


def is_pending(state):
    return state["plan"] == "complete" and state["applied_in"] == state["boots"]


def plan(state):
    value, text = document("plan.json"), (DOCUMENTS / "plan.txt").read_text()
    if state["plan"] and state["drifted"]:
        value["changes"], text = value["changes"][1:], "Plan for profile trading: 1 change.\n"
    elif state["plan"] and not is_pending(state):
        value["changes"], text = [], "Plan for profile trading: nothing to change.\n"
    pathlib.Path(after("--out")).write_text(json.dumps(value))
    print(text, end="")
    sys.exit(1 if value["changes"] else 4 if state["unread"] else 0)


def status(state):
    value = document("status.json")
    if state["plan"]:
        confirmation = {"kind": "waiting", "within_s": state["within_s"], "left_s": state["within_s"] - 1} if state["waits"] else {"kind": "not_needed"}
        value["in_force"] = {
            "known": {
                "plan_id": "d0ba3b03678bb204",
                "profile": "trading",
                "change_count": 2,
                "applied_unix_ms": 1795540654994,
                "age_s": 10,
                "is_of_this_boot": is_pending(state),
                "is_complete": state["plan"] == "complete",
                "confirmation": confirmation,
                "earlier": [],
            }
        }
        value["reboot"] = "pending" if is_pending(state) else "done"
    elif state["rolled_back_in"] == state["boots"]:
        value["reboot"] = "pending_rollback"
    answer(state["plan"] == "part", value)


def refuse(what):
    print(f"lowlat tune: cannot {what}: the disk is full", file=sys.stderr)
    sys.exit(2)


def apply(state):
    if "apply" in state["refuses"]:
        refuse("apply")
    if state["plan"] == "part" and "--plan" in sys.argv:
        sys.exit("lowlat tune: another plan is unfinished")
    value = document("apply.json")
    value["is_changed"] = state["plan"] != "complete" or state["drifted"]
    value["needs_reboot"] = state["plan"] != "complete"
    if state["plan"] != "complete":
        state["applied_in"] = state["boots"]
    state.update(plan="complete", waits=state["waits"] or "--confirm-within" in sys.argv, drifted=False)
    save(state)
    answer(4 if state["unread"] and not value["is_changed"] else 0, value)


def verify(state):
    if not state["plan"]:
        print("lowlat tune: cannot verify /: no plan is in force", file=sys.stderr)
        sys.exit(2)
    value = document("verify.json")
    row, counts = value["rows"][-1], value["counts"]
    if is_pending(state):
        value["rows"][0]["standing"], counts["held"], counts["pending"] = "pending", 2, 1
        answer(3, value)
    if state["faulty"] or state["drifted"]:
        row.update(standing="overridden", observed={"known": "60"})
        row["by"] = {"kind": "sysctl_file", "name": "/etc/sysctl.d/zz-app.conf", "line": 1, "does": "sets vm.swappiness = 60"}
        counts["held"], counts["overridden"] = 2, 1
        answer(1, value)
    answer(0, value)


def confirm(state):
    if "confirm" in state["refuses"]:
        refuse("confirm")
    if not state["plan"]:
        answer(1, {"confirmed": "nothing-in-force"})
    word = "now" if state["waits"] else "already"
    state["waits"] = False
    save(state)
    answer(0, {"confirmed": word})


def rollback(state):
    value = document("rollback.json")
    if "rollback" in state["refuses"]:
        refuse("rollback")
    if "--dry-run" in sys.argv:
        print("To be restored: 1.")
        sys.exit(0)
    state.update(plan=None, waits=False, drifted=False, rolled_back_in=state["boots"])
    save(state)
    answer(0, value)


def reboot(state):
    state["boots"] += 1
    save(state)
    (HOST / "boot_id").write_text(f"boot {state['boots']}\n")


def version():
    print("lowlat 0.1.0")


def measure():
    for option in ("--result", "--report"):
        if after(option):
            pathlib.Path(after(option)).write_text(f"{' '.join(sys.argv[1:])}\n")


def capture():
    pathlib.Path(sys.argv[3]).write_text("capture\n")


def save(state):
    (HOST / "state.json").write_text(json.dumps(state))


def main():
    HOST.mkdir(exist_ok=True)
    with open(HOST / "calls", "a", encoding="utf-8") as calls:
        calls.write(" ".join(sys.argv[1:]) + "\n")
    kept = HOST / "state.json"
    state = {**STOCK, **(json.loads(kept.read_text()) if kept.exists() else {})}
    words = sys.argv[1:3] if sys.argv[1] in ("tune", "host", "report") else sys.argv[1:2]
    answers = {
        "tune plan": plan,
        "tune status": status,
        "tune apply": apply,
        "tune verify": verify,
        "tune confirm": confirm,
        "tune rollback": rollback,
        "reboot": reboot,
    }
    others = {"--version": version, "assess": measure, "host capture": capture, "report fleet": measure}
    words = " ".join(words)
    if words in others:
        others[words]()
    else:
        answers[words](state)


main()
