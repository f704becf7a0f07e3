-- Decides a request: all its limits and bans, all or nothing, in one call. Answers with the states it FOUND; the
-- caller derives the decision from them. See docs/redis.md, "How it counts".
--
-- KEYS   one per counter, one per ban record
-- ARGV   written by encode.rs, which says what stands where
-- Reply  {now, states...}, and a -3 at the end for each value that cannot be read and counts as absent;
--        {-1, now}: other calendar ends are needed; {-2}: an ad hoc key is in use by another algorithm. In these two
--        cases nothing has changed.

local call, try, pack, unpack, floor, sub = redis.call, redis.pcall, struct.pack, struct.unpack, math.floor, string.sub
local A, head = ARGV, ARGV[1]

-- The short ways: a take from one limit, in a straight line. Further keys are bans that are only watched; a subject that
-- has a record of one goes the long way. Setting up the functions of the long way costs Redis
-- several times what such a decision does. A value that a straight line does not expect goes the long way.
-- ARGV: (b|p) want room [want room ticks [now]], remainders after wholes; or (f|s|a) time cost, and the limit's numbers.
if #head == 1 then
  local is_bucket = head == 'b' or head == 'p'
  local now, least = is_bucket and A[7] or A[2], 3600000
  if now == '' or (is_bucket and not A[7]) then
    local t = call('TIME')
    now, least = t[1] * 1000000 + t[2], 0
  else
    now = now + 0
  end
  local v = try('GET', KEYS[1])
  local is_own, reply, new, lives_until = true
  if v then
    -- The table of an error, which a list or a hash gives, has no size.
    local size = #v
    if head == 's' then
      is_own = size > 24 and size % 16 == 9
    else
      is_own = size == (head == 'a' and 25 or 17)
    end
    is_own = is_own and sub(v, 1, 1) == head
  end

  for k = 2, #KEYS do
    if try('GET', KEYS[k]) then is_own = false end
  end

  if not is_own then
    -- Another algorithm's, unreadable, or with the window of an `after=` that was edited away.
  elseif is_bucket then
    local full, rest = 0, 0
    if v then
      full, rest = unpack('<dd', v, 2)
      is_own = full >= 0 and full < 9007199254740992 and full % 1 == 0
        and rest >= 0 and rest < 9007199254740992 and rest % 1 == 0
    end
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
      local new_rest = debt_rest + want_rest
      lives_until = now + debt + want
      if new_rest >= ticks then lives_until, new_rest = lives_until + 1, new_rest - ticks end
      new = pack('<c1dd', head, lives_until, new_rest)
    end
    reply = {now, full, rest}

  elseif head == 'f' then
    local ends, count, counted = 0, 0, A[3] + 0
    if v then
      ends, count = unpack('<dd', v, 2)
      is_own = ends >= 0 and ends < 9007199254740992 and ends % 1 == 0
        and count >= 0 and count < 9007199254740992 and count % 1 == 0
    end
    if now < ends then counted = counted + count end
    if counted <= A[4] + 0 then
      lives_until = ends
      if ends <= now then
        local kind = A[5]
        if kind == 'p' then
          lives_until = now + A[6]
        elseif kind == 'c' then
          lives_until = now - now % A[6] + A[6]
        else
          if now < A[6] + 0 or now >= A[7 + A[7]] + 0 then return {-1, now} end
          local at = 8
          while A[at] + 0 <= now do at = at + 1 end
          lives_until = A[at] + 0
        end
      end
      new = pack('<c1dd', 'f', lives_until, counted)
    end
    reply = {now, ends, count}

  elseif head == 's' then
    local cost, most, grid = A[3] + 0, A[4] + 0, A[6] + 0
    local used, from, last, last_units = 0, 10, 0, 0
    if v then
      used = unpack('<d', v, 2)
      local size, leaves, units = #v
      while from < size do
        leaves, units = unpack('<dd', v, from)
        if leaves > now then break end
        used, from = used - units, from + 16
      end
      if from < size then
        last, last_units = unpack('<dd', v, size - 15)
        is_own = used < 9007199254740992 and used % 1 == 0 and last < 9007199254740992 and last % 1 == 0
          and leaves <= last and last_units >= 1 and last_units <= used and last_units % 1 == 0
      else
        is_own = used == 0
      end
    end
    reply = used > 0 and {now, 1, last, used} or {now, 0}
    if used + cost <= most then
      lives_until = now
      if grid > 0 then lives_until = now - now % grid + grid end
      lives_until = lives_until + A[5]
      if used == 0 then
        new = pack('<c1ddd', 's', cost, lives_until, cost)
      elseif lives_until <= last then
        lives_until = last
        new = pack('<c1d', 's', used + cost) .. sub(v, from, -17) .. pack('<dd', last, last_units + cost)
      else
        new = pack('<c1d', 's', used + cost) .. sub(v, from) .. pack('<dd', lives_until, cost)
      end
    elseif cost < most then
      -- When enough of the oldest have left.
      local excess, leaves = used + cost - most, last
      local still, size = excess, #v
      while still > 0 and from < size do
        local units
        leaves, units = unpack('<dd', v, from)
        still, from = still - units, from + 16
      end
      -- Pairs that do not add up to their sum, or are not in order, are not a log.
      is_own = is_own and still <= 0 and leaves > now and leaves <= last and leaves % 1 == 0
      reply = {now, 2, leaves, excess, last, used}
    end

  elseif head == 'a' then
    local cost, most, period = A[3] + 0, A[4] + 0, A[5] + 0
    local start, forget, previous, current = now - now % period, 0, 0, 0
    if v then
      forget, previous, current = unpack('<ddd', v, 2)
      is_own = forget >= 0 and forget % 1 == 0 and previous >= 0 and previous < 4294967296 and previous % 1 == 0
        and current >= 0 and current < 4294967296 and current % 1 == 0
    end
    reply = {now, forget, previous, current}
    local newest = forget - 2 * period
    if forget <= now then
      previous, current = 0, 0
    elseif newest == start then
      -- As it stands.
    elseif newest == start - period then
      previous, current = current, 0
    else
      is_own = false
    end
    local room, fades = most - current - cost, false
    if previous > room and room >= 0 then
      -- Where the estimate is not close to the limit, rounded products tell as well as exact ones.
      local weight, whole = previous * (period - (now - start)), room * period
      fades = weight < whole * 0.999999999
      if not fades and weight <= whole * 1.000000001 then is_own = false end
    end
    if is_own and room >= 0 and (previous <= room or fades) then
      lives_until = start + 2 * period
      new = pack('<c1ddd', 'a', lives_until, previous, current + cost)
    end
  end

  if is_own then
    if new then
      local ttl = (lives_until - now) / 1000
      ttl = ttl - ttl % 1 + 1
      if ttl < least then ttl = least end
      call('SET', KEYS[1], new, 'PX', ttl)
    end
    for _ = 1, 4 * (#KEYS - 1) do reply[#reply + 1] = 0 end
    return reply
  end
  -- The long way knows what to do.
  if is_bucket then
    A = {'take', A[7] or '', '1', '1', '0', '1', '0', head, A[2], A[4] or '0', A[3], A[5] or '0', '0', '0', A[6] or '1', '-'}
  else
    local long = {'take', A[2], A[3], '1', '0', '1', '0', head}
    for at = 4, #A do long[#long + 1] = A[at] end
    long[#long + 1] = '-'
    A = long
  end
  A[4] = #KEYS
  for _ = 2, #KEYS do
    local at = #A
    A[at + 1], A[at + 2], A[at + 3] = '0', '0', '2'
  end
  head = 'take'
end
