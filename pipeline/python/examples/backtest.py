"""Runs the market maker over a recording, and records what it does. Arguments: RECORDING OUT INSTRUMENT...

Two runs have the same orders: `lowlat journal diff OUT OTHER` ends with exit code 0.
"""

import pathlib
import subprocess
import sys
import time

import lowlat

recording, out, *instruments = sys.argv[1:]
options = ["--speed", "max", "--await", "maker", "--name", "backtest", "--record", out]
run = subprocess.Popen(["lowlat", "pipeline", "run", "--from-recording", recording, *options])
socket = lowlat.socket_of("backtest")
while not socket.exists() and run.poll() is None:
    time.sleep(0.01)
maker = pathlib.Path(__file__).with_name("market_maker.py")
made = subprocess.run([sys.executable, maker, socket, *instruments])
sys.exit(run.wait() or made.returncode)
