"""A strategy that runs until its run ends. Arguments: SOCKET"""

import sys

import lowlat

with lowlat.join(sys.argv[1], "until-the-end", instruments=[0]) as node:
    for event in node:
        pass
    assert node.is_over
print("ended")
