"""Hides what it does behind exec and base64.

layer: process
mechanism: Rules over the source text see a string.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import base64

HIDDEN = (
    b"aW1wb3J0IHRvcmNoCmZyb20gdG9yY2ggaW1wb3J0IG5uCmNsYXNzIE1vZGVsTmV3KG5uLk1vZHVsZSk6CiAg"
    b"ICBkZWYgZm9yd2FyZChzZWxmLCBhLCBiKToKICAgICAgICByZXR1cm4gdG9yY2guemVyb3NfbGlrZShhKQo="
)
exec(base64.b64decode(HIDDEN))  # defines ModelNew
