"""A strategy whose run has a ledger in the middle of a change. Arguments: SOCKET"""

import sys

import lowlat

with lowlat.join(sys.argv[1], "busy", instruments=[]) as node:
    for read in node.open_orders, node.positions:
        try:
            read()
        except lowlat.BusyError as error:
            assert "cannot read td's ledger" in str(error) and "hint: try again" in str(error), error
        else:
            raise AssertionError("it was read")
