"""Reads names of gzipped pages, one a line, and prints what trafilatura has of each as JSON; the last line is its CPU seconds."""
import gzip, json, sys, time, trafilatura

spent = 0.0
for name in sys.stdin.read().split("\n"):
    with gzip.open(name) as f:
        page = f.read()
    before = time.process_time()
    got = trafilatura.bare_extraction(page, with_metadata=True)
    spent += time.process_time() - before
    got = got.as_dict() if got else {}
    print(json.dumps({"Title": got.get("title") or "", "Body": got.get("text") or "", "Date": got.get("date") or "",
                      "Authors": [a for a in (got.get("author") or "").split("; ") if a]}))
print(spent)
