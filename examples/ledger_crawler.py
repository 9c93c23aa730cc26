#!/usr/bin/env python3
"""A crawler in another language, driven by `persxfer ledger` in JSON lines.

It claims what is due, fetches each file with the standard library, and tells what came of it:

    persxfer ledger add http://127.0.0.1:8000/a http://127.0.0.1:8000/b
    python3 examples/ledger_crawler.py FOLDER [ROUNDS]
"""
import json, os, subprocess, sys, urllib.error, urllib.request

PERSXFER = os.environ.get("PERSXFER", "persxfer")


def ledger(*words, lines=()):
    """Runs one command; what it printed, line by line."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    ran = subprocess.run([PERSXFER, "ledger", *words], input=text, stdout=subprocess.PIPE, text=True)
    if ran.returncode not in (0, 4):  # 4: a lease was lost; what was done for it has no effect
        sys.exit(ran.returncode)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def attempt(claim, folder):
    """Fetches one file into its final name; what to tell the ledger of it."""
    word = {"key": claim["key"], "token": claim["token"]}
    target = os.path.join(folder, urllib.request.quote(claim["key"], safe=""))
    try:
        with urllib.request.urlopen(claim["mirrors"][0]["url"], timeout=30) as answer:
            body = answer.read()
        with open(target + ".part", "wb") as part:
            part.write(body)
        os.replace(target + ".part", target)
        return {**word, "size": len(body)}
    except urllib.error.HTTPError as error:
        classes = {404: "missing", 410: "gone", 401: "denied", 403: "denied", 429: "throttled", 503: "throttled"}
        return {**word, "class": classes.get(error.code, "unsupported")}
    except OSError:
        return {**word, "class": "unreachable"}


def main(folder, rounds):
    ledger("release", "--of", "example")  # what an earlier run held when it was killed
    for _ in range(rounds):
        words = [attempt(claim, folder) for claim in ledger("claim", "-n", "20", "--as", "example") if claim["mirrors"]]
        ledger("complete", "--lines", lines=[word for word in words if "class" not in word])
        ledger("fail", "--lines", lines=[word for word in words if "class" in word])


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
