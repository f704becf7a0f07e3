
-- a * x <= b * y for numbers below 2^32 and times below 2^45, in limbs of 20 bits.
local function product_at_most(a, x, b, y)
  local function limbs(u, t)
    local low = u * (t % 1048576)
    t = floor(t / 1048576)
    local middle = u * (t % 1048576) + floor(low / 1048576)
    local high = u * floor(t / 1048576) + floor(middle / 1048576)
    return high, middle % 1048576, low % 1048576
  end
  local ah, am, al = limbs(a, x)
  local bh, bm, bl = limbs(b, y)
  if ah ~= bh then return ah < bh end
  if am ~= bm then return am < bm end
  return al <= bl
end

-- What is asked, as encode.rs numbers it. No more units are ever counted at once than 10^12; a cost may be one more, which never passes.
local PEEK, RECORD, CHECK, REFUND, DENY = 2, 3, 4, 5, 6
local op, cost, units, asks = 0, 0, 0, true
-- The next cell, the first key of the request, and whether a calendar period is needed that the caller left out.
local i, first_key, outside = 5, 0, false

-- The end of a window that opens now.
local function window_end()
  local kind = A[i]
  i = i + 2
  if kind == 112 then return now + A[i - 1] end
  if kind == 99 then return now - now % A[i - 1] + A[i - 1] end
  local from, last = A[i - 1], i + A[i]
  local ends
  for at = i + 1, last do
    ends = A[at]
    if ends > now then break end
  end
  i = last + 1
  if now < from or now >= ends then outside = true end
  return ends
end

local function count_at(ends, count)
  return now < ends and count or 0
end

local reply = {}
local function say(number)
  reply[#reply + 1] = number
end

-- What each algorithm reads, answers and does. `h` is one limit on one counter.
local kinds = {}

local bucket = {}
function bucket.read(h, v, at)
  h.want, h.want_rest, h.room, h.room_rest = A[i], A[i + 1], A[i + 2], A[i + 3]
  h.cap, h.cap_rest, h.ticks = A[i + 4], A[i + 5], A[i + 6]
  i = i + 7
  h.debt, h.rest = 0, 0
  local full, rest = 0, 0
  if v then
    full, rest = unpack('<dd', v, at)
    if full >= now then h.debt, h.rest = full - now, math.min(rest, h.ticks - 1) end
  end
  say(full) say(rest)
  h.passes = h.debt < h.room or (h.debt == h.room and h.rest <= h.room_rest)
end
function bucket.charge(h, denied)
  local debt, rest = h.debt + h.want, h.rest + h.want_rest
  if rest >= h.ticks then debt, rest = debt + 1, rest - h.ticks end
  local cap, cap_rest = 3153600000000000, 0
  if denied then cap, cap_rest = h.cap, h.cap_rest end
  if debt > cap or (debt == cap and rest > cap_rest) then debt, rest = cap, cap_rest end
  if debt > h.debt or (debt == h.debt and rest > h.rest) then h.debt, h.rest = debt, rest end
end
function bucket.refund(h)
  h.debt, h.rest = h.debt - h.want, h.rest - h.want_rest
  if h.rest < 0 then h.debt, h.rest = h.debt - 1, h.rest + h.ticks end
  if h.debt < 0 then h.debt, h.rest = 0, 0 end
end
function bucket.write(h)
  if h.debt == 0 and h.rest == 0 then return pack('<dd', 0, 0), 0 end
  return pack('<dd', now + h.debt, h.rest), now + h.debt + 1
end
kinds.b, kinds.p = bucket, bucket

kinds.f = {
  read = function(h, v, at)
    h.most = A[i]
    i = i + 1
    h.new_ends = window_end()
    h.ends, h.count = 0, 0
    if v then h.ends, h.count = unpack('<dd', v, at) end
    say(h.ends) say(h.count)
    if h.ends <= now then h.ends, h.count = 0, 0 end
    h.passes = h.count + cost <= h.most
  end,
  charge = function(h, denied)
    if h.ends == 0 then h.ends = h.new_ends end
    h.count = math.max(math.min(h.count + units, denied and h.most or 9007199254740991), h.count)
  end,
  refund = function(h)
    h.count = h.count - cost
    if h.count <= 0 then h.ends, h.count = 0, 0 end
  end,
  write = function(h)
    return pack('<dd', h.ends, h.count), h.ends
  end,
}

-- What the caller is told of a log: no more units than its questions are about. These are where those leave that must
-- go before the request passes, now and once it was counted, or the newest that a refund leaves. Nil where the log
-- contradicts itself.
local function log_entries(h)
  local log, entries, first, second = h.log, {}, 0, 0
  if op == REFUND then
    first = log.used - cost
  elseif asks and cost <= h.most then
    first = log.used + cost - h.most
    second = h.counts_denied and first + cost or 0
  end
  local function tell(place)
    if place <= 0 or place >= log.used then return true end
    entries[#entries + 1] = log_leaves(log, place)
    entries[#entries + 1] = place
    return #entries % 2 == 0
  end
  if not tell(first) or (second > first and not tell(second)) then return nil end
  if log.used > 0 then
    entries[#entries + 1] = log_last(log)
    entries[#entries + 1] = log.used
  end
  return entries
end

kinds.s = {
  read = function(h, v, at)
    h.most, h.period, h.grid = A[i], A[i + 1], A[i + 2]
    i = i + 3
    h.log = log_open(v, at)
    local entries = log_entries(h)
    if not entries then
      unreadable = unreadable + 1
      h.log, entries = log_empty(), {}
    end
    h.passes = cost <= h.most and h.log.used + cost <= h.most
    say(#entries / 2)
    for _, number in ipairs(entries) do say(number) end
  end,
  charge = function(h)
    local at = now
    if h.grid > 0 then at = (floor(now / h.grid) + 1) * h.grid end
    log_push(h.log, at + h.period, math.min(units, h.most), h.most)
  end,
  refund = function(h)
    log_pop(h.log, cost)
  end,
  write = function(h)
    return log_write(h.log)
  end,
}

kinds.a = {
  read = function(h, v, at)
    local most, period = A[i], A[i + 1]
    i = i + 2
    local start, decided_at, forget, previous, current = now - now % period, now, 0, 0, 0
    if v then forget, previous, current = unpack('<ddd', v, at) end
    say(forget) say(previous) say(current)
    local newest = math.max(forget - 2 * period, 0)
    if forget <= now then
      previous, current = 0, 0
    elseif newest % period ~= 0 then
      previous, current = 0, previous + current
    elseif newest >= start then
      start, decided_at = newest, math.max(now, newest)
    elseif newest + period == start then
      previous, current = current, 0
    else
      previous, current = 0, 0
    end
    h.most, h.period, h.start, h.previous, h.current = most, period, start, previous, current
    local room = most - current - cost
    h.passes = room >= 0
      and (previous <= room or product_at_most(previous, period - (decided_at - start), room, period))
  end,
  charge = function(h, denied)
    h.current = math.max(math.min(h.current + units, denied and h.most or 4294967295), h.current)
  end,
  refund = function(h)
    h.current = math.max(h.current - cost, 0)
  end,
  write = function(h)
    if h.current == 0 and h.previous == 0 then return pack('<ddd', 0, 0, 0), 0 end
    local forget = h.start + 2 * h.period
    return pack('<ddd', forget, math.min(h.previous, 4294967295), math.min(h.current, 4294967295)), forget
  end,
}

-- Counts nothing; only an ad hoc key is asked whether it is somebody else's.
kinds.u = {
  read = function(h) h.passes = true end,
  charge = function() end,
  refund = function() end,
  write = function() return '', 0 end,
}

-- Per limit: name, letter, the algorithm's numbers; where the letter is a capital, the free number and its window.
local function read_hit(key, counts_denied)
  local mark = string.char(A[i + 1])
  local h = {key = key, name = name_at(i), letter = mark:lower(), counts_denied = counts_denied, seen_ends = 0, seen = 0}
  i = i + 2
  local v, at = text_at(key, h.name), 2
  if v then
    local letter, own_at, ends, seen = open_value(v)
    if letter == h.letter then
      at, h.seen_ends, h.seen = own_at, ends, seen
    else
      -- The name of a rule's counter says which algorithm it has; that of an ad hoc key does not.
      if not letter or h.name ~= AD_HOC then
        unreadable = unreadable + 1
      elseif math.max(ends, own_until(letter, v, own_at)) > now then
        return nil
      end
      v = false
    end
  end
  h.kind = kinds[h.letter]
  h.kind.read(h, v, at)
  if mark ~= h.letter then
    h.free, h.found = A[i], v and sub(v, at)
    i = i + 1
    h.seen_new_ends = window_end()
    say(h.seen_ends) say(h.seen)
    if h.seen_ends <= now then h.seen_ends, h.seen = 0, 0 end
    if h.seen + cost <= h.free then h.passes = true end
  end
  return h
end

local function write_hit(h, enforced)
  local own, ends = h.kind.write(h)
  -- What was not counted in is left as it was.
  if not enforced and h.found then own, ends = h.found, own_until(h.letter, h.found, 1) end
  keep_both(h.key, h.name, h.letter, own, ends, h.seen_ends, h.seen)
end

local function charge(h, denied)
  if h.letter == 'u' then return end
  local enforced = true
  if h.free then
    enforced = h.seen + units >= h.free
    if h.seen_ends == 0 then h.seen_ends = h.seen_new_ends end
    h.seen = math.max(math.min(h.seen + units, denied and h.free or 9007199254740991), h.seen)
  end
  if enforced then h.kind.charge(h, denied) end
  write_hit(h, enforced)
end

local function refund(h)
  if h.letter == 'u' then return end
  local enforced = true
  if h.free then
    enforced = h.seen >= h.free
    h.seen = h.seen - cost
    if h.seen <= 0 then h.seen_ends, h.seen = 0, 0 end
  end
  if enforced then h.kind.refund(h) end
  write_hit(h, enforced)
end

-- Per ban: name, strikes, within, forget, number of lengths, lengths. A record is the end of the last ban, until when it is
-- remembered, how many there were in a row, and the log of strikes. One that is only watched has no numbers.
local function read_ban(key, watched)
  local b = {key = key, name = name_at(i)}
  i = i + 1
  if not watched then
    b.after, b.within, b.forget, b.lengths = A[i], A[i + 1], A[i + 2], i + 3
    i = i + 4 + A[i + 3]
  end
  local v = text_at(key, b.name)
  b.ends, b.forget_at, b.level = 0, 0, 0
  if v and open_value(v) ~= 'x' then
    unreadable = unreadable + 1
    v = false
  end
  if v then b.ends, b.forget_at, b.level = unpack('<ddd', v, 2) end
  b.log = log_open(v, 26)
  say(b.ends) say(b.forget_at) say(b.level) say(b.log.used)
  return b
end

local function strike(b)
  if b.log.used + 1 < b.after then
    log_push(b.log, now + b.within, 1, b.after)
  else
    if now >= b.forget_at then b.level = 0 end
    b.ends = now + A[b.lengths + math.min(b.level + 1, A[b.lengths])]
    b.forget_at, b.level = b.ends + b.forget, math.min(b.level + 1, 255)
    b.log = log_empty()
  end
  local value = pack('<c1ddd', 'x', b.ends, b.forget_at, b.level)
  if b.log.used > 0 then value = value .. pack('<d', b.log.used) .. b.log.pairs end
  keep(b.key, b.name, value, math.max(b.forget_at, log_last(b.log)))
end

-- Per rule: 1 counts denied, 2 is a shadow, 3 is both; number of limits; 1 if it bans, 2 if a ban of it is
-- only watched; which of the request's keys is that of its subject; its limits, its ban. Nil where a counter is of another
-- algorithm.
local function read_rule()
  local flags, count, bans, key = A[i], A[i + 1], A[i + 2], KEYS[first_key + A[i + 3]]
  i = i + 4
  local rule = {counts_denied = flags % 2 == 1, shadow = flags >= 2}
  for n = 1, count do
    local h = read_hit(key, rule.counts_denied and op ~= PEEK)
    if not h then return nil end
    if not h.passes then rule.exceeded = true end
    rule[n] = h
  end
  if bans ~= 0 then rule.ban = read_ban(key, bans == 2) end
  return rule
end
