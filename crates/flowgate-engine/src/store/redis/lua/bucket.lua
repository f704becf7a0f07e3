-- Decides a request: all its limits and bans, all or nothing, in one call. Answers with the states it FOUND; the
-- caller derives the decision from them. See docs/redis.md, "How it counts".
--
-- KEYS   one per counter, one per ban record
-- ARGV   written by encode.rs, which says what stands where
-- Reply  {now, states...}; {-1, now}: other calendar ends are needed; {-2}: a key is in use by another algorithm.
--        In both cases nothing has changed.

local call, pack, unpack, floor, sub = redis.call, struct.pack, struct.unpack, math.floor, string.sub
local A, head = ARGV, ARGV[1]

-- The short way: one bucket or pace, take. ARGV: letter want room [want room ticks [now]], remainders after wholes.
if head == 'b' or head == 'p' then
  local now, least = A[7], 3600000
  if now then
    now = now + 0
  else
    local t = call('TIME')
    now, least = t[1] * 1000000 + t[2], 0
  end
  local v = call('GET', KEYS[1])
  local mark, full, rest = head, 0, 0
  if v then mark, full, rest = unpack('<c1dd', v) end
  if mark == head then
    local want, room, ticks = A[2] + 0, A[3] + 0, A[6]
    local want_rest, room_rest, debt, debt_rest = 0, 0, 0, 0
    if full >= now then debt, debt_rest = full - now, rest end
    if ticks then
      want_rest, room_rest, ticks = A[4] + 0, A[5] + 0, ticks + 0
      if debt_rest >= ticks then debt_rest = ticks - 1 end
    else
      ticks, debt_rest = 1, 0
    end
    if debt < room or (debt == room and debt_rest <= room_rest) then
      local new, new_rest = now + debt + want, debt_rest + want_rest
      if new_rest >= ticks then new, new_rest = new + 1, new_rest - ticks end
      local ttl = floor((new - now) / 1000) + 1
      if ttl < least then ttl = least end
      call('SET', KEYS[1], pack('<c1dd', head, new, new_rest), 'PX', ttl)
    end
    return {now, full, rest}
  end
  -- Somebody else's, or with the window of an `after=` that was edited away: the long way knows what to do.
  A = {'t', A[7] or '', '1', '1', '0', '1', '0', head, A[2], A[4] or '0', A[3], A[5] or '0', '0', '0', A[6] or '1', '0', '-'}
  head = 't'
end

