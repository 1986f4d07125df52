"""What the Python crawlers share: the simulated web's names, and the file of reasons.

SEEDS has the start URLs, STATE a folder that outlives a kill, REASONS a file.
"""
import os
import socket

AGENT = "SafetyBot/1.0 (+https://bot.example/)"
SEEDS = os.environ["SEEDS"].split()
STATE = os.environ["STATE"]
DEPTH = 3

real, real_name = socket.getaddrinfo, socket.gethostbyname


def loopback(host):
    name = host.decode() if isinstance(host, bytes) else host or ""
    return "127.0.0.1" if name.endswith(".test") else host


socket.getaddrinfo = lambda host, *a, **k: real(loopback(host), *a, **k)
socket.gethostbyname = lambda host: real_name(loopback(host))


def reason(url, why):
    """Notes that a page is not fetched, and why."""
    with open(os.environ["REASONS"], "a") as f:
        f.write(f"{url}\t{why}\n".replace("\r", " "))
