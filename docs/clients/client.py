import json, os, urllib.request
import redis  # pip install redis

host, port = os.environ.get("FLOWGATE_RESP", "127.0.0.1:7071").rsplit(":", 1)
http = os.environ.get("FLOWGATE_SERVER", "http://127.0.0.1:7070")

flowgate = redis.Redis(host=host, port=int(port), socket_timeout=1)
for _ in range(3):
    allowed, limit, remaining, retry_ms, *_ = flowgate.execute_command("FG.LIMIT", "python:42", "2/60s")
    print("go" if allowed else "wait", remaining)

body = json.dumps({"key": "python:42", "limit": "2/60s"}).encode()
request = urllib.request.Request(http + "/v1/limit", body, {"Content-Type": "application/json"})
decision = json.load(urllib.request.urlopen(request, timeout=1))
print("go" if decision["allowed"] else "wait", decision["remaining"])
