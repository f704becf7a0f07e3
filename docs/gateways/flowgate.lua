-- http-request lua.flowgate: asks Flowgate, and hands its answer to the client when it is a denial.
-- Needs HAProxy 2.5 or later with Lua; lua-load-per-thread loads it. See haproxy.md.

local HOST, PORT = "127.0.0.1", 7070
-- Of a denial the status is Flowgate's. "/gate/403" asks for another one.
local GATE = "/gate"
-- A request waits for Flowgate at most this long, in whole seconds.
local TIMEOUT_SECONDS = 2
-- What to do while Flowgate is away: "open" lets requests through, "closed" answers 503.
local WHEN_AWAY = "open"
-- Requests with more header lines are answered 431 without asking. Flowgate reads 100: without a bound, a client could
-- choose that there is no answer.
local MAX_HEADERS = 64
-- Connections to Flowgate that each thread keeps for the next request.
local MAX_IDLE = 64

-- Not passed on: they are about the connection, or about a body that Flowgate does not get.
local SKIPPED = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true, ["keep-alive"] = true,
    ["te"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
    -- The client's own words for what is set below.
    ["x-forwarded-for"] = true, ["x-forwarded-host"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true,
}
-- What a client gets to see of a denial, beside status and body.
local SHOWN = { "content-type", "retry-after", "ratelimit-policy", "ratelimit", "x-flowgate-action" }

-- What the script reads of an answer.
local READ = { ["connection"] = true, ["content-length"] = true }
for _, name in ipairs(SHOWN) do
    READ[name] = true
end

-- Collects garbage when memory is four times what the last collection left, not twice: less work for each request.
collectgarbage("setpause", 400)

-- Each thread has its own script, and so its own connections.
local idle = {}
-- When this thread has last logged that Flowgate is away, in seconds.
local logged_at = 0

-- The question to Flowgate; nothing when the request has too many headers.
local function question(txn)
    local fetch = txn.sf
    local lines, chain, host = {}, "", ""
    local count = 0
    for line, name in fetch:req_hdrs():gmatch("(([^:\r\n]+):[^\r\n]*\r\n)") do
        count = count + 1
        if not SKIPPED[name] then
            lines[#lines + 1] = line
        elseif name == "x-forwarded-for" then
            chain = chain .. line:match(": ?([^\r\n]*)") .. ", "
        elseif name == "host" then
            host = line:match(": ?([^\r\n]*)")
        end
    end
    if count > MAX_HEADERS then
        return nil
    end
    return table.concat {
        "GET ", GATE, " HTTP/1.1\r\nhost: flowgate",
        -- Whom HAProxy hears from stands at the right, as every proxy appends it.
        "\r\nx-forwarded-for: ", chain, fetch:src(),
        "\r\nx-forwarded-host: ", host,
        "\r\nx-forwarded-method: ", fetch:method(),
        "\r\nx-forwarded-uri: ", fetch:pathq(), "\r\n",
        table.concat(lines), "\r\n",
    }
end

-- Sends the question, and returns status, headers and body of the answer; nothing when the connection fails.
local function exchange(socket, text)
    if (socket:send(text) or 0) < #text then
        return nil
    end
    local line = socket:receive("*l")
    local status = line and tonumber(line:sub(10, 12))
    if not status then
        return nil
    end
    local headers = {}
    while true do
        line = socket:receive("*l")
        if not line then
            return nil
        elseif line == "" then
            break
        end
        local colon = line:find(":", 1, true) or 1
        local name = line:sub(1, colon - 1):lower()
        if READ[name] then
            headers[name] = line:sub(colon + 2)
        end
    end
    local length, body = tonumber(headers["content-length"]) or 0, ""
    if length > 0 then
        body = socket:receive(length)
        if not body then
            return nil
        end
    end
    if headers["connection"] == "close" or #idle >= MAX_IDLE then
        socket:close()
    else
        idle[#idle + 1] = socket
    end
    return status, headers, body
end

-- Asks on a connection that is there, or on a new one. Status 0 is no answer.
local function ask(text)
    local started = os.time()
    local socket = table.remove(idle)
    if socket then
        local status, headers, body = exchange(socket, text)
        if status then
            return status, headers, body
        end
        socket:close()
        -- Flowgate, or the timeout, may have closed it since its last use. But if Flowgate has let this question wait, it
        -- would let the next one wait, too.
        if os.time() - started >= TIMEOUT_SECONDS then
            return 0
        end
    end
    socket = core.tcp()
    socket:settimeout(TIMEOUT_SECONDS)
    if socket:connect(HOST, PORT) then
        local status, headers, body = exchange(socket, text)
        if status then
            return status, headers, body
        end
    end
    socket:close()
    return 0
end

core.register_action("flowgate", { "http-req" }, function(txn)
    local text = question(txn)
    if not text then
        txn:done(txn:reply { status = 431 })
    end
    local status, headers, body = ask(text)
    if status >= 200 and status < 300 then
        if headers["ratelimit"] then
            txn:set_var("txn.flowgate_policy", headers["ratelimit-policy"])
            txn:set_var("txn.flowgate_left", headers["ratelimit"])
        end
        return
    end
    -- Flowgate denies with 4xx: gate.deny_status may be any of them, and a request that it refuses to read is not to pass
    -- either. Anything else is not an answer.
    if status < 400 or status > 499 then
        if os.time() > logged_at then
            logged_at = os.time()
            core.log(core.err, "Flowgate gives no answer at " .. HOST .. ":" .. PORT .. ", requests are " .. WHEN_AWAY)
        end
        if WHEN_AWAY == "open" then
            return
        end
        txn:done(txn:reply { status = 503 })
    end
    local reply = txn:reply { status = status, body = body }
    for _, name in ipairs(SHOWN) do
        if headers[name] then
            reply:add_header(name, headers[name])
        end
    end
    txn:done(reply)
end, 0)
