"""The module against its stub, its errors, a node and a recording.

Needs LOWLAT_SOCKET (a master that has not begun), LOWLAT_STUB (lowlat.pyi) and LOWLAT_RECORDING (a recording's folder).
"""

import array
import ast
import asyncio
import copy
import faulthandler
import inspect
import os
import pathlib
import pickle
import selectors
import signal
import tempfile
import threading
import time
import unittest

import lowlat

SOCKET = os.environ["LOWLAT_SOCKET"]


def public(names):
    return {name for name in names if not name.startswith("_")}


class Stub(unittest.TestCase):
    def setUp(self):
        tree = ast.parse(pathlib.Path(os.environ["LOWLAT_STUB"]).read_text())
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.values = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}

    def test_it_names_what_the_module_has(self):
        told = set(self.classes) | public(self.functions) | public(self.values)
        # A wheel has the module inside a package of the same name.
        self.assertEqual(told, public(dir(lowlat)) - {"lowlat"})

    def test_its_classes_have_what_the_module_s_have(self):
        for name, node in self.classes.items():
            found = getattr(lowlat, name)
            if issubclass(found, Exception):
                self.assertEqual(found.__bases__[0].__name__, node.bases[0].id)
                continue
            told = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            self.assertEqual(public(told), public(vars(found)), name)
            self.assertEqual(public(found.__doc__ and {"doc"}), {"doc"}, name)
            for item in public(told):
                self.assertTrue(getattr(found, item).__doc__, f"{name}.{item}")

    def test_its_arguments_are_the_module_s(self):
        def check(where, arguments, found):
            told = [argument.arg for argument in arguments.args + arguments.kwonlyargs]
            self.assertEqual(told, list(inspect.signature(found).parameters), where)

        for name, node in self.functions.items():
            check(name, node.args, getattr(lowlat, name))
        for name in ("poll", "order", "cancel", "replace", "open_orders", "positions", "publish", "set_timer", "fileno", "run", "leave"):
            method = next(item for item in self.classes["Node"].body if getattr(item, "name", "") == name)
            check(name, method.args, getattr(lowlat.Node, name))


class Errors(unittest.TestCase):
    def test_they_name_the_path_and_the_next_step(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "master.sock"
            with self.assertRaisesRegex(lowlat.JoinError, "(?s)master.sock.*start one"):
                lowlat.join(path, "x", number=1, instruments=[])
            with self.assertRaisesRegex(lowlat.JournalError, f"(?s){folder}.*name the directory"):
                lowlat.Journal(folder)
        self.assertTrue(issubclass(lowlat.JoinError, lowlat.LowlatError))

    def test_wrong_values_are_named(self):
        for part, arguments in [
            ("number 16384.*0 to 16383", {"number": 16384, "instruments": []}),
            ("number -1.*0 to", {"number": -1, "instruments": []}),
            ("instruments 4294967296.*0 to 4294967295", {"instruments": [4294967296]}),
            ("capacity_bytes -5", {"instruments": [], "capacity_bytes": -5}),
            ("overrun 'drop'.*evict", {"instruments": [], "overrun": "drop"}),
            ("evict -1", {"instruments": [], "overrun": ("evict", -1)}),
            ("start 'tail'.*oldest", {"instruments": [], "start": "tail"}),
            ("start: after -1", {"instruments": [], "start": ("after", -1)}),
            ("wait 'x'|wait \"x\"", {"number": 1, "instruments": [], "wait": "x"}),
        ]:
            with self.assertRaisesRegex(ValueError, part):
                lowlat.join(SOCKET, "wrong", **arguments)
        with self.assertRaisesRegex(ValueError, "mine.*own"):
            lowlat.join_node(SOCKET, "wrong", reads=[("md", "mine")])
        with self.assertRaisesRegex(lowlat.JoinError, "a b"):
            lowlat.join(SOCKET, "a b", number=1, instruments=[])
        with self.assertRaises(ValueError):
            lowlat.socket_of("a/b")

        for part, arguments in [
            ("instruments 3", {"instruments": 3}),
            ("instruments '0'.*whole", {"instruments": ["0"]}),
            ("reads 'md'.*tuples", {"instruments": [], "reads": ["md"]}),
        ]:
            with self.assertRaisesRegex(TypeError, part):
                lowlat.join(SOCKET, "wrong", **arguments)

    def test_a_name_has_one_node(self):
        with lowlat.join(SOCKET, "twice", number=2, instruments=[]):
            with self.assertRaisesRegex(lowlat.JoinError, "refuses node twice"):
                lowlat.join(SOCKET, "twice", number=2, instruments=[])


class Nodes(unittest.TestCase):
    def test_records_go_from_node_to_node(self):
        with lowlat.join_node(SOCKET, "reader", reads=[("numbers", [1, 3])]) as reader:
            with lowlat.join_node(SOCKET, "writer", writes="numbers", keys=4) as writer:
                # Both are notified of the link, and handle it when they poll.
                deadline, events = time.monotonic() + 60, []
                sequence = -1
                while not events and time.monotonic() < deadline:
                    writer.poll(0.01)
                    sequence = writer.publish(b"\x00hello", kind=77, instrument=1, schema=5)
                    writer.publish(b"to nobody", kind=77, instrument=2)
                    events = [event for event in reader.poll(0.01) if isinstance(event, lowlat.Record)]
                record = events[-1]
                self.assertIs(type(record), lowlat.Record)
                self.assertEqual((record.payload, record.kind, record.schema), (b"\x00hello", 77, 5))
                self.assertEqual((record.stream, record.instrument, record.source), ("numbers", 1, writer.number))
                self.assertLessEqual(record.sequence, sequence)
                self.assertLessEqual(record.generated_ns, record.received_ns)
                self.assertLessEqual(record.received_ns, lowlat.now_ns())
                self.assertIn("numbers", repr(record))
                with self.assertRaisesRegex(lowlat.PublishError, "reserved"):
                    writer.publish(b"", kind=0xFFFF)
                with self.assertRaisesRegex(lowlat.PublishError, "takes"):
                    writer.publish(bytes(1 << 20), kind=1)
            with self.assertRaisesRegex(lowlat.PublishError, "without a stream"):
                reader.publish(b"", kind=1)
            for use in (
                lambda: reader.order(None, "buy", 1, 1, instrument=0),
                lambda: reader.cancel(0, 1),
                lambda: reader.replace(0, 1, 1, 1),
                reader.open_orders,
                reader.positions,
            ):
                with self.assertRaisesRegex(ValueError, "lowlat.join"):
                    use()
        self.assertTrue(reader.is_over)
        with self.assertRaisesRegex(lowlat.LowlatError, "has left"):
            reader.publish(b"", kind=1)
        self.assertEqual(list(reader), [])

    def test_orders_without_a_cause_and_wrong_ones(self):
        with lowlat.join(SOCKET, "orders", number=9, instruments=[0]) as node:
            first = node.order(None, "buy", 10 * lowlat.PRICE_SCALE, 1, instrument=0)
            self.assertEqual(node.order(None, "sell", 1, 1, instrument=0), first + 1)
            with self.assertRaisesRegex(ValueError, "instrument"):
                node.order(None, "buy", 1, 1)
            with self.assertRaisesRegex(ValueError, "side"):
                node.order(None, "hold", 1, 1, instrument=0)
            with self.assertRaisesRegex(TypeError, "expected the Quote"):
                node.order("quote", "buy", 1, 1)
            for error, part, price, quantity in [
                (TypeError, "price 1.5", 1.5, 1),
                (ValueError, "price 9223372036854775808.*to 9223372036854775807", 2**63, 1),
                (ValueError, "quantity -1.*0 to 4294967295", 1, -1),
            ]:
                with self.assertRaisesRegex(error, part):
                    node.order(None, "buy", price, quantity, instrument=0)
                with self.assertRaisesRegex(error, part):
                    node.replace(0, first, price, quantity)
            for wrong in ("stop", "", 2):
                with self.assertRaisesRegex(ValueError, f'type {wrong!r}: expected "limit", "market" or "ioc"'):
                    node.order(None, "buy", 1, 1, instrument=0, type=wrong)
            for error, part, instrument, number in [
                (ValueError, "instrument -1", -1, first),
                (TypeError, "number 'first'.*whole number", 0, "first"),
            ]:
                with self.assertRaisesRegex(error, part):
                    node.cancel(instrument, number)
                with self.assertRaisesRegex(error, part):
                    node.replace(instrument, number, 1, 1)
            with self.assertRaisesRegex(TypeError, "expected the Quote"):
                node.cancel(0, first, cause=1)
            for read in (node.open_orders, node.positions):
                with self.assertRaisesRegex(lowlat.LowlatError, "(?s)cannot read td's ledger.*has none.*hint"):
                    read()

    def test_requests_are_read_as_they_were_sent(self):
        with lowlat.join(SOCKET, "requests", instruments=[]) as node:
            with lowlat.join_node(SOCKET, "requests-reader", reads=[("orders.requests", None)]) as reader:
                requests, deadline = [], time.monotonic() + 60
                while not requests and time.monotonic() < deadline:
                    node.poll(0.01)
                    number = node.order(None, "sell", 5, 6, instrument=3, type="ioc")
                    requests = [event for event in reader.poll(0.01) if isinstance(event, lowlat.Order)]
                self.assertEqual([(it.action, it.type, it.side) for it in requests], [("new", "ioc", "sell")])
                node.order(None, "buy", 0, 6, instrument=3, type="market")
                node.replace(3, number, 7, 8)
                node.cancel(3, number, cause=requests[0])
                while len(requests) < 4 and time.monotonic() < deadline:
                    requests += reader.poll(0.01)
        self.assertEqual(
            [(it.action, it.type, it.instrument, it.price, it.quantity, it.number - number) for it in requests[1:]],
            [("new", "market", 3, 0, 6, 1), ("replace", "limit", 3, 7, 8, 0), ("cancel", "limit", 3, 0, 0, 0)],
        )
        self.assertEqual(requests[3].cause_sequence, requests[0].sequence)
        self.assertIn("action='cancel'", repr(requests[3]))
        self.assertEqual(pickle.loads(pickle.dumps(requests)), requests)

    def test_payloads_have_any_buffer_and_instruments_are_below_keys(self):
        with lowlat.join_node(SOCKET, "buffers-out", writes="buffers", keys=2) as writer:
            with lowlat.join_node(SOCKET, "buffers-in", reads=[("buffers", None)]) as reader:
                sent = [b"ab", bytearray(b"cd"), memoryview(b"efgh")[::2], array.array("H", [1, 2])]
                for payload in sent:
                    writer.poll()
                    writer.publish(payload, kind=5, instrument=1)
                got, deadline = [], time.monotonic() + 60
                while len(got) < len(sent) and time.monotonic() < deadline:
                    writer.poll()
                    got += [event for event in reader.poll(0.01) if isinstance(event, lowlat.Record)]
                self.assertEqual([record.payload for record in got], [bytes(memoryview(item).tobytes()) for item in sent])
            with self.assertRaisesRegex(lowlat.PublishError, "instrument 2.*keys 0 to 1"):
                writer.publish(b"", kind=5, instrument=2)
            with self.assertRaisesRegex(TypeError, "payload 'text'.*memoryview"):
                writer.publish("text", kind=5)
            with self.assertRaisesRegex(ValueError, "kind 65536"):
                writer.publish(b"", kind=65536)
            # The writer's poll connects readers, so the refusal comes to a reader that asks for too much.
            with self.assertRaisesRegex(lowlat.JoinError, "keys are 0 to 1"):
                lowlat.join_node(SOCKET, "buffers-late", reads=[("buffers", [2])])

    def test_events_are_values(self):
        records = list(lowlat.Journal(os.environ["LOWLAT_RECORDING"]))
        others = [lowlat.Lost("md", 3), lowlat.Lost("md", 3, "why"), lowlat.Damage("d"), lowlat.Command("c"), lowlat.Begin(), lowlat.Timer(5)]
        others.append(lowlat.OpenOrder(7, 3, "sell", 100, 10, 4))
        for event in records + others:
            for again in (pickle.loads(pickle.dumps(event)), copy.copy(event), copy.deepcopy(event)):
                self.assertEqual(again, event)
                self.assertIs(type(again), type(event))
                self.assertEqual((hash(again), repr(again)), (hash(event), repr(event)))
        self.assertEqual(len(set(records)), len(records))
        self.assertNotEqual(lowlat.Lost("md", 3), lowlat.Lost("md", 4))
        order = others[-1]
        self.assertEqual(repr(order), "OpenOrder(number=7, instrument=3, side='sell', price=100, quantity=10, filled=4)")
        with self.assertRaises(AttributeError):
            order.filled = 5
        with self.assertRaisesRegex(ValueError, 'side "hold"'):
            lowlat.OpenOrder(7, 3, "hold", 100, 10, 4)

    def test_a_strategy_reads_other_streams_and_has_a_timer(self):
        heard = []

        class Strategy:
            def on_record(self, node, record):
                heard.append((record.stream, record.payload))
                node.set_timer(lowlat.now_ns() + 5_000_000)

            def on_timer(self, node, timer):
                heard.append(timer.due_ns <= lowlat.now_ns())
                node.leave()

        with lowlat.join_node(SOCKET, "signals", writes="signals", keys=4) as writer:
            node = lowlat.join(SOCKET, "listens", instruments=[], reads=[("signals", [3], "conflate")], overrun=("evict", 100))
            waits = threading.Thread(target=node.run, args=(Strategy(),))
            waits.start()
            deadline = time.monotonic() + 60
            while not heard and time.monotonic() < deadline:
                writer.poll(0.01)
                writer.publish(b"no", kind=5, instrument=2)
                writer.publish(b"up", kind=5, instrument=3)
            waits.join(60)
        self.assertEqual((heard[0], heard[-1]), (("signals", b"up"), True))

    def test_a_reader_with_credit_refuses_its_writer(self):
        with lowlat.join_node(SOCKET, "careful", writes="careful", gives_credit=True, capacity_bytes=4096) as writer:
            with lowlat.join_node(SOCKET, "slow", reads=[("careful", None, "credit")]) as reader:
                writer.poll(0.05)
                with self.assertRaises(lowlat.NoCredit):
                    for _ in range(1000):
                        writer.publish(bytes(64), kind=5)
                        writer.poll()
                self.assertTrue(reader.poll(0.1))

    def test_a_selector_and_asyncio_wait_by_the_descriptor(self):
        with lowlat.join_node(SOCKET, "selected", reads=[("ticks", None)]) as reader:
            with lowlat.join_node(SOCKET, "ticker", writes="ticks") as writer, selectors.DefaultSelector() as selector:
                selector.register(reader, selectors.EVENT_READ)
                got, deadline = [], time.monotonic() + 60
                while not got and time.monotonic() < deadline:
                    writer.poll()
                    writer.publish(b"tick", kind=5)
                    self.assertTrue(selector.select(60))
                    got = [event for event in reader.poll() if isinstance(event, lowlat.Record)]
                self.assertEqual(got[0].payload, b"tick")

                async def listens():
                    reader.set_timer(lowlat.now_ns() + 1_000_000)
                    kinds = []
                    async for event in reader:
                        kinds.append(type(event))
                        if type(event) is lowlat.Timer:
                            writer.publish(b"last", kind=5)
                        elif event.payload == b"last":
                            reader.leave()
                    return kinds

                kinds = asyncio.run(asyncio.wait_for(listens(), 60))
                self.assertEqual((lowlat.Timer in kinds, kinds[-1]), (True, lowlat.Record))

    def test_words_of_the_master(self):
        # The master sends a command to "commanded" and stops it, then drops "given-up".
        with lowlat.join_node(SOCKET, "commanded") as node:
            events = list(node)
            self.assertEqual([type(event) for event in events], [lowlat.Command])
            self.assertEqual(events[0].text, "faster")
            self.assertEqual((node.is_over, node.poll()), (True, []))
        with lowlat.join(SOCKET, "given-up", number=12, instruments=[0]) as node:
            with self.assertRaisesRegex(lowlat.Fenced, "restart this program"):
                list(node)
            with self.assertRaises(lowlat.Fenced):
                node.poll()
            with self.assertRaises(lowlat.Fenced):
                node.order(None, "buy", 1, 1, instrument=0)

    def test_ctrl_c_ends_a_wait_and_other_threads_run_meanwhile(self):
        # A shell starts background jobs with SIGINT ignored, and Python then leaves it so.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        for place, wait in enumerate(("parked", "fast", "adaptive")):
            with lowlat.join(SOCKET, f"ctrl-c-{wait}", number=100 + place, instruments=[0], wait=wait) as node:
                # It runs while the wait has released the lock, and finds the node busy; the signal arrives during the wait.
                busy = []

                def press():
                    while not busy:
                        time.sleep(0.01)
                        try:
                            node.poll()
                        except lowlat.BusyError as error:
                            busy.append(error)
                    os.kill(os.getpid(), signal.SIGINT)

                thread = threading.Thread(target=press)
                thread.start()
                with self.assertRaises(KeyboardInterrupt):
                    for _ in node:
                        pass
                thread.join()
                self.assertEqual(len(busy), 1)
                self.assertFalse(node.is_over)

    def test_leaving_from_another_thread_ends_the_iteration(self):
        for wait in ("parked", "fast", "adaptive"):
            with lowlat.join(SOCKET, f"leave-{wait}", instruments=[0], wait=wait) as node:
                # It leaves once the main thread waits in the node, which is busy then.
                def leave():
                    while True:
                        time.sleep(0.01)
                        try:
                            node.poll()
                        except lowlat.BusyError:
                            break
                    node.leave()

                thread = threading.Thread(target=leave)
                thread.start()
                self.assertEqual(list(node), [])
                thread.join()
                self.assertTrue(node.is_over)
                self.assertEqual(node.poll(None), [])
                with self.assertRaisesRegex(lowlat.LowlatError, "has left"):
                    node.order(None, "buy", 1, 1, instrument=0)
                node.leave()
            # After leave has returned, its name is free.
            lowlat.join(SOCKET, f"leave-{wait}", instruments=[0]).leave()

    def test_leaving_from_a_signal_handler_or_a_method_ends_the_iteration(self):
        with lowlat.join(SOCKET, "leave-signal", instruments=[0]) as node:
            before = signal.signal(signal.SIGUSR1, lambda *_: node.leave())
            timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
            timer.start()
            self.assertEqual(list(node), [])
            timer.join()
            signal.signal(signal.SIGUSR1, before)

        class Leaves:
            def on_record(self, node, record):
                node.leave()

        stop = threading.Event()

        def publish():
            with lowlat.join_node(SOCKET, "leave-writer", writes="leave") as writer:
                while not stop.is_set():
                    writer.poll(0.001)
                    writer.publish(b"", kind=77)

        with lowlat.join_node(SOCKET, "leave-method", reads=[("leave", None)]) as reader:
            thread = threading.Thread(target=publish)
            thread.start()
            reader.run(Leaves())
            stop.set()
            thread.join()
            self.assertTrue(reader.is_over)

    def test_the_master_gives_a_strategy_a_free_number(self):
        with lowlat.join(SOCKET, "free-1", instruments=[]) as one, lowlat.join(SOCKET, "free-2", instruments=[]) as two:
            self.assertNotEqual(one.strategy, two.strategy)
            with self.assertRaisesRegex(lowlat.JoinError, "free-1"):
                lowlat.join(SOCKET, "taker", number=one.strategy, instruments=[])
            number = two.strategy
        with lowlat.join(SOCKET, "free-2", instruments=[]) as two:
            self.assertEqual((two.strategy, two.epoch), (number, 2))
        with lowlat.join_node(SOCKET, "no-strategy") as node:
            self.assertIsNone(node.strategy)

    def test_a_poll_comes_back_when_its_time_is_over(self):
        with lowlat.join(SOCKET, "times", number=11, instruments=[0]) as node:
            begin = time.monotonic()
            self.assertEqual((node.poll(0.05), node.is_over), ([], False))
            self.assertGreaterEqual(time.monotonic() - begin, 0.05)
            with self.assertRaisesRegex(ValueError, "timeout_s -1"):
                node.poll(-1)


class Journals(unittest.TestCase):
    def test_a_recording_is_read_in_the_order_of_time(self):
        journal = lowlat.Journal(os.environ["LOWLAT_RECORDING"])
        self.assertTrue(journal.streams)
        records = [event for event in journal if isinstance(event, lowlat.Record)]
        self.assertEqual({record.stream for record in records}, set(journal.streams))
        for stream in journal.streams:
            own = [record.sequence for record in records if record.stream == stream]
            self.assertEqual(own, sorted(own))
            chosen = lowlat.Journal(journal.folder, stream)
            self.assertEqual([event.sequence for event in chosen if isinstance(event, lowlat.Record)], own)
        times = [record.generated_ns for record in records]
        self.assertEqual(times, sorted(times))
        later = lowlat.Journal(journal.folder, from_ns=times[-1])
        self.assertEqual([e.generated_ns for e in later if isinstance(e, lowlat.Record)], [t for t in times if t >= times[-1]])
        self.assertTrue(all(record.received_ns is None for record in records))

    def test_damage_is_told_and_the_rest_is_read(self):
        whole = pathlib.Path(os.environ["LOWLAT_RECORDING"]) / "00000001.journal"
        data = bytearray(whole.read_bytes())
        data[len(data) // 3] ^= 0xFF
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / whole.name).write_bytes(data)
            events = list(lowlat.Journal(folder))
        told = [event.text for event in events if isinstance(event, lowlat.Damage)]
        self.assertTrue(told and all(str(pathlib.Path(folder) / whole.name) in text for text in told), told)
        self.assertTrue(any(isinstance(event, lowlat.Record) for event in events))

    def test_a_stream_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(lowlat.JournalError, "nobody"):
            lowlat.Journal(os.environ["LOWLAT_RECORDING"], "nobody")


if __name__ == "__main__":
    # Before the test that runs this gives up: where each thread hangs.
    faulthandler.dump_traceback_later(45, exit=True)
    unittest.main(verbosity=2)
