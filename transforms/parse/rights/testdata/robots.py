"""A second reader of what a robots.txt says about use, written from the texts: RFC 9309,
contentsignals.org, RSL 1.0. It reads {"robots_b64", "agent"} from each line of its input and
writes [[line, says, only], ...] and the verdicts, as JSON. argv[1] is the list of agents."""
import base64, json, re, sys

PURPOSES = ["search", "ai-input", "ai-train", "archive"]
AGENTS = [row.rstrip("\n").split("\t") for row in open(sys.argv[1], encoding="utf-8") if row.count("\t") == 4]
NAMES = {"useragent": "user-agent", "user agent": "user-agent", "dissallow": "disallow", "dissalow": "disallow",
         "disalow": "disallow", "diasllow": "disallow", "disallaw": "disallow", "crawldelay": "crawl-delay", "crawl delay": "crawl-delay"}
KEYS = {"user-agent", "allow", "disallow", "crawl-delay", "content-signal", "content-usage", "license"}
WHITE = " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\x00\u200b" + "".join(map(chr, range(0x2000, 0x200b)))
TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def token(text):
    return re.match(r"[A-Za-z0-9_-]*", text).group().lower()


def decode(body):
    for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(mark):
            return body[2:].decode(name, "replace")
    for mark in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xc3\xaf\xc2\xbb\xc2\xbf"):
        if body.startswith(mark):
            body = body[len(mark):]
            break
    return body.decode("utf-8", "surrogateescape")


def records(text):
    if text.strip().startswith("<"):
        return  # a web page
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = line.split("#", 1)[0].strip(WHITE)
        while (m := TAG.match(line)) and "://" not in m.group():
            line = line[m.end():].strip(WHITE)
        while line.endswith(">") and "<" in line and TAG.fullmatch(line[line.rindex("<"):]) and "://" not in line[line.rindex("<"):]:
            line = line[:line.rindex("<")].strip(WHITE)
        key, colon, value = line.partition(":")
        key = key.strip(WHITE).lower()
        key = NAMES.get(key, key)
        if not colon or key not in KEYS:
            words = line.split()
            if len(words) != 2:
                continue
            key, value = NAMES.get(words[0].lower(), words[0].lower()), words[1]
            if key not in KEYS:
                continue
        yield number, key, value.strip(WHITE)


def read(text, agent):
    groups, rows, current, signals_open, rules_open = {}, [], [], False, False
    scope = None
    for number, key, value in records(text):
        if key == "user-agent":
            names = [n.strip(" \t").lower() for n in value.split(",")]
            if not all(re.fullmatch(r"[a-z0-9_-]*|\*", n) for n in names):
                names = ["*" if value.startswith("*") and not token(value[1:]) else token(value)]
            names = [n for n in names if n]
            if not rules_open:
                current, rules_open = [], True
            if not signals_open:
                scope, signals_open = [], True
            scope += names or ["_".join(value.split()) or "nobody"]
            for name in names:
                current.append(name)
                groups.setdefault(name, [])
        elif key in ("allow", "disallow"):
            rules_open = signals_open = False
            for name in set(current):
                if value:
                    groups[name].append((number, key, value))
        elif key == "crawl-delay":
            signals_open = False
        elif key == "license":
            rows.append((number, key, value, None))
        else:
            signals_open = False
            rows.append((number, key, value, scope))
    own = agent if agent in groups else "*"
    out, claims = [], {p: set() for p in PURPOSES}
    for number, key, value, scope in rows:
        says, path, found = [], "", []
        if key == "license":
            says = ["license" if "://" in value else "unknown"]
        elif key == "content-usage":
            says = ["content-usage:draft-ietf-aipref-attach-05"]
        else:
            if value.startswith("/"):
                path, value = re.match(r"([^ \t]*)(.*)", value, re.S).groups()
                path = "" if path in ("/", "/*") else path
            for part in re.split(r"[,; \t]+", re.sub(r"[ \t]*=[ \t]*", "=", value.lower())):
                if not part:
                    continue
                k, _, v = part.partition("=")
                v = v.strip("\"'")
                if k in PURPOSES[:3] and v in ("yes", "no"):
                    found.append((k, v))
                    word = k + ("=allowed" if v == "yes" else "=reserved")
                elif k == "use" and v in ("immediate", "reference", "full"):
                    word = "use=" + v
                else:
                    word = "unknown"
                if word not in says:
                    says.append(word)
            says = says or ["unknown"]
        only = path
        if scope is not None and own not in scope:
            only = " ".join(scope)
        out.append([number, " ".join(says), only])
        if not only:
            for k, v in found:
                claims[k].add(v)
    closed = {}
    for name, purposes, *_ in AGENTS:
        rules = groups.get(token(name), [])
        if any(kind == "allow" for _, kind, _ in rules):
            continue
        all_of = [n for n, kind, value in rules if kind == "disallow" and re.fullmatch(r"/\**|\*+(/\**)?\$?|/\*+\$", value) and value != "/$" and (value.strip("*$") in ("", "/"))
                  and not (value.startswith("*") and "/" in value)]
        if all_of:
            words = closed.setdefault(min(all_of), [])
            for p in purposes.split():
                claims[p].add("no")
                if p + "=reserved" not in words:
                    words.append(p + "=reserved")
    out += [[n, " ".join(closed[n]), ""] for n in sorted(closed)]
    verdict = {frozenset(): "U", frozenset({"yes"}): "A", frozenset({"no"}): "R"}
    return {"says": out, "verdicts": "".join(verdict.get(frozenset(claims[p]), "C") for p in PURPOSES)}


for row in sys.stdin:
    row = json.loads(row)
    print(json.dumps(read(decode(base64.b64decode(row["robots_b64"])), row["agent"])))
