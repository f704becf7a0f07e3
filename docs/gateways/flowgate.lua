-- http-request lua.flowgate: asks Flowgate, and hands its answer to the client when it is a denial.
-- Needs HAProxy 2.5 or later, for core.httpclient. See haproxy.md.

local GATE = "http://127.0.0.1:7070/gate"
local TIMEOUT_MS = 2000
-- What to do while Flowgate is away: "open" lets requests through, "closed" answers 503.
local WHEN_AWAY = "open"
-- Requests with more header lines are answered 431 without asking. Flowgate reads 100, and HAProxy's client sends hardly
-- more: without a bound, a client could choose that there is no answer.
local MAX_HEADERS = 64

-- Not passed on: they are about the connection, or about a body that Flowgate does not get.
local SKIPPED = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true, ["keep-alive"] = true,
    ["te"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
    -- The client's own words for what is set below.
    ["x-forwarded-for"] = true, ["x-forwarded-host"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
    ["x-original-method"] = true, ["x-original-uri"] = true,
}

-- What Flowgate is told of the request; nothing when it has too many headers.
local function about(txn)
    local headers, chain, lines = {}, {}, 0
    for name, values in pairs(txn.http:req_get_headers()) do
        local list = {}
        for index = 0, #values do
            list[#list + 1] = values[index]
        end
        lines = lines + #list
        if name == "x-forwarded-for" then
            chain = list
        elseif not SKIPPED[name] then
            headers[name] = list
        end
    end
    if lines > MAX_HEADERS then
        return nil
    end
    -- Whom HAProxy hears from stands at the right, as every proxy appends it.
    chain[#chain + 1] = txn.sf:src()
    headers["x-forwarded-for"] = { table.concat(chain, ", ") }
    headers["x-forwarded-host"] = { txn.sf:req_hdr("host") or "" }
    headers["x-forwarded-method"] = { txn.sf:method() }
    headers["x-forwarded-uri"] = { txn.sf:pathq() }
    return headers
end

core.register_action("flowgate", { "http-req" }, function(txn)
    local headers = about(txn)
    if not headers then
        txn:done(txn:reply { status = 431 })
    end
    local asked, answer = pcall(function()
        return core.httpclient():get { url = GATE, headers = headers, timeout = TIMEOUT_MS }
    end)
    local status = asked and answer and answer.status or 0
    if status >= 200 and status < 300 then
        return
    end
    -- Flowgate denies with 4xx: gate.deny_status may be any of them, and a request that it refuses to read is not to pass
    -- either. Anything else is no answer.
    if status < 400 or status > 499 then
        if WHEN_AWAY == "open" then
            return
        end
        txn:done(txn:reply { status = 503 })
    end
    local reply = txn:reply { status = status, body = answer.body }
    for _, name in ipairs { "content-type", "retry-after", "ratelimit-policy", "ratelimit" } do
        local values = answer.headers[name]
        if values then
            reply:add_header(name, values[0])
        end
    end
    txn:done(reply)
end, 0)
