"""What redis-py says and hears. Arguments: the server's port, and its password or nothing."""

import sys

import redis

PORT, PASSWORD = int(sys.argv[1]), sys.argv[2]


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def check(protocol):
    client = redis.Redis(port=PORT, password=PASSWORD or None, protocol=protocol, decode_responses=True)
    key = f"user:{protocol}"
    equal(client.ping(), True)
    equal(client.execute_command("CL.THROTTLE", key, 15, 30, 60), [0, 16, 15, -1, 2])

    limit = f"limit:{protocol}"
    equal(client.execute_command("FG.LIMIT", limit, "5/60s", 5), [1, 5, 0, -1, 60_000, 0, "", ""])
    equal(client.execute_command("FG.LIMIT", limit, "5/60s"), [0, 5, 0, 60_000, 60_000, 0, "", ""])
    taken = client.execute_command("FG.TAKE", 3, "user", key)
    equal(taken, [0, 2, 2, -2, 0, 0, "captcha", "reply"])

    equal(client.ttl(limit), 60)
    equal(client.pttl(limit), 60_000)
    equal(client.exists(limit, key, "none"), 2)
    equal(client.delete(limit, "none"), 1)
    equal(client.ttl(limit), -2)

    for transaction in (False, True):
        pipeline = client.pipeline(transaction=transaction)
        for _ in range(1000):
            pipeline.execute_command("CL.THROTTLE", f"pipeline:{protocol}:{transaction}", 999, 1, 60)
        equal([reply[2] for reply in pipeline.execute()], list(range(999, -1, -1)))

    equal(client.config_get("databases"), {"databases": "16"})
    assert client.info()["flowgate_version"]
    try:
        client.execute_command("FG.LIMIT", "k", "5/nothing")
    except redis.ResponseError as error:
        assert "nothing" in str(error), error
    else:
        raise AssertionError("no error")
    client.close()


check(2)
check(3)
if PASSWORD:
    try:
        redis.Redis(port=PORT, password="wrong").ping()
    except redis.AuthenticationError:
        pass
    else:
        raise AssertionError("a wrong password was taken")
print("done")
