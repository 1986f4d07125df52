"""Verifies signed requests with http-message-signatures and botgate: verify.py BOTGATE DIRECTORY.json FOLDER.

Each request is a file NUMBER.http. It is also verified for another host, and as it is after three minutes. Prints how many were valid.
"""
import base64, concurrent.futures, datetime, json, pathlib, subprocess, sys, types

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms, signatures

botgate, directory, folder = sys.argv[1:]
keys = {k["kid"]: Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(k["x"] + "=")) for k in json.load(open(directory))["keys"]}


class Keys(HTTPSignatureKeyResolver):
    def resolve_public_key(self, key_id):
        return keys.get(key_id)


verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=Keys())


def valid(text, host):
    head, *lines = text.strip().split("\r\n")
    method, target, _ = head.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    message = types.SimpleNamespace(method=method, url=f"http://{host or headers['Host']}{target}", headers=headers)
    try:
        return len(verifier.verify(message, expect_tag="web-bot-auth", require_components=['"@authority"', '"@path"'])) == 1
    except InvalidSignature:
        return False


def by_botgate(path, host):
    text = path.read_bytes().decode()
    of = next(line for line in text.split("\r\n") if line.startswith("Host: "))
    scheme = "http://" + (host or of.removeprefix("Host: ")) + "/"
    if host:
        path = path.with_suffix(".other")
        path.write_bytes(text.replace(of, "Host: " + host, 1).encode())
    told = subprocess.run([botgate, "verify", path, "--jwks", directory, "--context", scheme, "--format", "json"], capture_output=True, text=True)
    if told.returncode not in (0, 1):
        sys.exit(told.stdout + told.stderr)
    if told.returncode == 1 and not host:
        print(told.stdout[:3000], file=sys.stderr)
    return told.returncode == 0


def both(path):
    text = path.read_bytes().decode()
    return [valid(text, None), by_botgate(path, None), valid(text, "other.example"), by_botgate(path, "other.example")]


real = datetime.datetime
later = type("later", (real,), {"now": classmethod(lambda cls, tz=None: real.now(tz) + datetime.timedelta(minutes=3))})
paths = sorted(pathlib.Path(folder).glob("*.http"))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    own, botgates, other, botgates_other = map(sum, zip(*pool.map(both, paths)))
signatures.datetime = types.SimpleNamespace(datetime=later, timedelta=datetime.timedelta, timezone=datetime.timezone)
late = sum(valid(p.read_bytes().decode(), None) for p in paths)
print(json.dumps({"requests": len(paths), "own": own, "botgate": botgates, "other": other, "botgate_other": botgates_other, "late": late}))
