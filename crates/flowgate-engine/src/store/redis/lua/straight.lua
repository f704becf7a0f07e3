-- Decides a request: all its limits and bans, all or nothing, in one call. Answers with the states it FOUND; the
-- caller derives the decision from them. See docs/redis.md, "How it counts".
--
-- KEYS   one per subject
-- ARGV   one argument of cells, written by encode.rs, which says what stands where
-- Reply  now and the states, the straight way as doubles in one string, which Redis sends for less than half of what a list takes;
--        the long way {now, states...}, and a -3 at the end for each value that cannot be read and counts as absent;
--        {-1, now}: other calendar ends are needed; {-2}: an ad hoc key is in use by another algorithm. In these two
--        cases nothing has changed.

-- The straight way: a take, in one pass without functions, and for one subject without tables. Setting up the functions of
-- the long way costs Redis several times what such a decision does. What a straight line does not expect goes the long way:
-- a value that is not ours, `after=`, a record of a ban, a denial that counts. Nothing is written before that is known.
local op, given, cost, rules, flags, limits, bans, subject, name, letter, t1, t2, t3, t4, t5, t6, t7 =
  unpack('<ddddddddc8dddddddd', Q)
if op == 1 then
  local key, now, least = KEYS[1], given, 3600000
  if given < 0 then
    local t = call('TIME')
    now, least = t[1] * 1000000 + t[2], 0
  end
  local v = try('GET', key)
  -- The table of an error, which a list or a hash gives, has no size.
  local size = v and #v or 0
  local is_straight = not v or size > 35
  local exceeded, must_count_denial = false, false
  -- The entries that are written if all pass, how much of the value has been read, the last instant that matters.
  local new, covered, lives = '2', 1, 0
  -- The same of all subjects, while there are several: their values, and the three above.
  local current, values, news, read, lasts = 1
  -- Logs with a key of their own that grow: key, pair to append, size then, from, instants of the new end and of expiry.
  local grown
  local reply, at = pack('<d', now), 33

  for r = 1, is_straight and rules or 0 do
    if r > 1 then flags, limits, bans, subject = unpack('<dddd', Q, at) end
    at = at + 32
    if subject ~= current then
      if not values then values, news, read, lasts = {}, {}, {}, {} end
      values[current], news[current], read[current], lasts[current] = v, new, covered, lives
      current, key = subject, KEYS[subject]
      v, new, covered, lives = values[subject], news[subject], read[subject], lasts[subject]
      if not new then v, new, covered, lives = try('GET', key), '2', 1, 0 end
      size = v and #v or 0
      if v and size < 36 then is_straight = false break end
    end
    if flags ~= 0 or bans == 1 then must_count_denial = true end
    for _ = 1, limits do
      -- The first limit was read together with the head.
      if at > 65 then name, letter, t1, t2, t3, t4, t5, t6, t7 = unpack('<c8dddddddd', Q, at) end
      local p, mark, length, till = v and find(v, name, 2, true)

      if letter == 98 or letter == 112 then
        -- bucket, pace: want want_rest room room_rest cap cap_rest ticks
        at = at + 72
        local full, rest, debt, debt_rest = 0, 0, 0, 0
        if p then
          if p + 34 > size then is_straight = false break end
          mark, length, till, full, rest = unpack('<BHddd', v, p + 8)
          if mark ~= letter or length ~= 16 or not (full >= 0 and full < 9007199254740992 and full % 1 == 0
            and rest >= 0 and rest < 9007199254740992 and rest % 1 == 0) then
            is_straight = false break
          end
          covered = covered + 35
          if full >= now then
            debt, debt_rest = full - now, rest
            if debt_rest >= t7 then debt_rest = t7 - 1 end
          end
        end
        reply = pack('<c0dd', reply, full, rest)
        if debt < t3 or (debt == t3 and debt_rest <= t4) then
          full, rest = now + debt + t1, debt_rest + t2
          if rest >= t7 then full, rest = full + 1, rest - t7 end
          till = rest > 0 and full + 1 or full
          new = pack('<c0c8BHddd', new, name, letter, 16, till, full, rest)
          if till > lives then lives = till end
        else
          exceeded = true
        end

      elseif letter == 115 then
        -- sliding: most period grid
        at = at + 40
        local used, last, last_units, leaves, units, from, behind = 0, 0, 0
        local grows = now + t2
        if t3 > 0 then grows = now - now % t3 + t3 + t2 end
        if p then
          if p + 42 > size then is_straight = false break end
          mark, length, last, used, leaves, units = unpack('<BHdddd', v, p + 8)
          behind = p + 19 + length
          if behind > size + 1 then is_straight = false break end
          covered = covered + 19 + length
        end
        if mark == 115 then
          from = p + 27
          if length % 16 ~= 8 then is_straight = false break end
          while leaves <= now do
            used, from = used - units, from + 16
            if from >= behind then break end
            leaves, units = unpack('<dd', v, from)
          end
          if from < behind then
            local newest
            newest, last_units = unpack('<dd', v, behind - 16)
            if not (last == newest and used < 9007199254740992 and used % 1 == 0 and last < 9007199254740992
              and last % 1 == 0 and leaves <= last and last_units >= 1 and last_units <= used and last_units % 1 == 0) then
              is_straight = false break
            end
          elseif used ~= 0 then
            is_straight = false break
          end
          local excess = used + cost - t1
          if excess > 0 then
            exceeded = true
            if cost < t1 then
              -- When enough of the oldest have left.
              local still = excess
              while true do
                still, from = still - units, from + 16
                if still <= 0 or from >= behind then break end
                leaves, units = unpack('<dd', v, from)
              end
              -- Pairs that do not add up to their sum, or are not in order, are not a log.
              if not (still <= 0 and leaves > now and leaves <= last and leaves % 1 == 0) then is_straight = false break end
            end
            if used == 0 then
              reply = pack('<c0d', reply, 0)
            elseif cost < t1 and excess < used then
              reply = pack('<c0ddddd', reply, 2, leaves, excess, last, used)
            else
              reply = pack('<c0ddd', reply, 1, last, used)
            end
          elseif used == 0 then
            reply = pack('<c0d', reply, 0)
            new = pack('<c0c8BHdddd', new, name, 115, 24, grows, cost, grows, cost)
            if grows > lives then lives = grows end
          elseif grows <= last then
            reply = pack('<c0ddd', reply, 1, last, used)
            new = pack('<c0c8BHddc0dd', new, name, 115, 8 + behind - from, last, used + cost,
              sub(v, from, behind - 17), last, last_units + cost)
            if last > lives then lives = last end
          else
            length = 24 + behind - from
            -- A log that has become long moves out.
            if length > 264 then is_straight = false break end
            reply = pack('<c0ddd', reply, 1, last, used)
            new = pack('<c0c8BHddc0dd', new, name, 115, length, grows, used + cost, sub(v, from, behind - 1), grows, cost)
            if grows > lives then lives = grows end
          end

        elseif not p then
          reply = pack('<c0d', reply, 0)
          if cost <= t1 then
            new = pack('<c0c8BHdddd', new, name, 115, 24, grows, cost, grows, cost)
            if grows > lives then lives = grows end
          else
            exceeded = true
          end

        elseif mark == 108 and length == 64 then
          -- A log with a key of its own: the oldest pairs are read as far as they matter, the newest is in the entry.
          local log_from, log_size, expires
          last, last_units, used, leaves, units, log_from, log_size, expires = unpack('<dddddddd', v, p + 19)
          if not (used >= 1 and used < 9007199254740992 and used % 1 == 0 and last < 9007199254740992 and last % 1 == 0
            and last_units >= 1 and last_units % 1 == 0 and leaves <= last and units >= 1
            and log_from >= 0 and log_from <= log_size and log_size % 16 == 0) or last <= now then
            is_straight = false break
          end
          local excess = used + cost - t1
          local chunk, place, from_then, still = '', 1, log_from, 0
          -- Drops what has left; then, for a denial, goes on to what must leave.
          local is_walking = true
          while is_walking do
            local is_left = leaves <= now
            if is_left then
              used, excess, log_from, from_then = used - units, excess - units, log_from + 16, log_from + 16
            else
              if excess <= 0 or cost >= t1 then break end
              still = still + units
              if still >= excess then break end
              from_then = from_then + 16
            end
            if from_then >= log_size then
              leaves, units = last, last_units
              if not is_left and still + units < excess then is_straight = false end
              if not is_left then break end
            else
              if place > #chunk - 15 then
                chunk, place = try('GETRANGE', key .. ':' .. name, format('%d', from_then), format('%d', from_then + 127)), 1
              end
              if #chunk < place + 15 then is_straight = false break end
              leaves, units = unpack('<dd', chunk, place)
              place = place + 16
              if not (units >= 1 and units % 1 == 0 and leaves >= 0 and leaves <= last and leaves % 1 == 0) then
                is_straight = false break
              end
            end
            if used < last_units then is_straight = false break end
          end
          if not is_straight then break end
          if excess > 0 then
            exceeded = true
            if cost < t1 and excess < used then
              reply = pack('<c0ddddd', reply, 2, leaves, excess, last, used)
            else
              reply = pack('<c0ddd', reply, 1, last, used)
            end
          else
            reply = pack('<c0ddd', reply, 1, last, used)
            used = used + cost
            if grows <= last then
              last_units = last_units + cost
              if log_from >= log_size then units = last_units end
            else
              grown = grown or {}
              local n = #grown
              grown[n + 1], grown[n + 2] = key .. ':' .. name, pack('<dd', last, last_units)
              grown[n + 3], grown[n + 4], grown[n + 5] = log_size, log_from, 0
              log_size, last, last_units = log_size + 16, grows, cost
              -- Its key lives long enough for a period of further growth.
              if grows > expires then
                expires = grows + t2
                grown[n + 5] = expires
              end
              if log_from > 511 and log_from * 2 > log_size then
                -- Half has left: the rest is written anew.
                log_size, log_from = log_size - log_from, 0
                if grown[n + 5] == 0 then grown[n + 5] = expires end
              else
                grown[n + 4] = 0
              end
            end
            new = pack('<c0c8BHddddddddd', new, name, 108, 64, last, last, last_units, used, leaves, units, log_from, log_size, expires)
            if last > lives then lives = last end
          end
        else
          is_straight = false break
        end

      elseif letter == 102 then
        -- fixed: most, and how windows end: p length | c length | l from number {end}
        at = at + (t2 == 108 and 48 + 8 * t4 or 40)
        local ends, count, counted = 0, 0, cost
        if p then
          if p + 34 > size then is_straight = false break end
          mark, length, till, ends, count = unpack('<BHddd', v, p + 8)
          if mark ~= 102 or length ~= 16 or not (ends >= 0 and ends < 9007199254740992 and ends % 1 == 0
            and count >= 0 and count < 9007199254740992 and count % 1 == 0) then
            is_straight = false break
          end
          covered = covered + 35
          if now < ends then counted = counted + count end
        end
        reply = pack('<c0dd', reply, ends, count)
        if counted <= t1 then
          if ends <= now then
            if t2 == 112 then
              ends = now + t3
            elseif t2 == 99 then
              ends = now - now % t3 + t3
            else
              local place = at - 8 * t4
              ends = unpack('<d', Q, at - 8)
              if now < t3 or now >= ends then return {-1, now} end
              ends = unpack('<d', Q, place)
              while ends <= now do
                place = place + 8
                ends = unpack('<d', Q, place)
              end
            end
          end
          new = pack('<c0c8BHddd', new, name, 102, 16, ends, ends, counted)
          if ends > lives then lives = ends end
        else
          exceeded = true
        end

      elseif letter == 97 then
        -- approx: most period
        at = at + 32
        local start, forget, previous, current = now - now % t2, 0, 0, 0
        if p then
          if p + 42 > size then is_straight = false break end
          mark, length, till, forget, previous, current = unpack('<BHdddd', v, p + 8)
          if mark ~= 97 or length ~= 24 or not (forget >= 0 and forget < 9007199254740992 and forget % 1 == 0
            and previous >= 0 and previous < 4294967296 and previous % 1 == 0
            and current >= 0 and current < 4294967296 and current % 1 == 0) then
            is_straight = false break
          end
          covered = covered + 43
        end
        reply = pack('<c0ddd', reply, forget, previous, current)
        local newest = forget - 2 * t2
        if forget <= now then
          previous, current = 0, 0
        elseif newest == start - t2 then
          previous, current = current, 0
        elseif newest ~= start then
          is_straight = false break
        end
        local room, fades = t1 - current - cost, false
        if previous > room and room >= 0 then
          -- Where the estimate is not close to the limit, rounded products tell as well as exact ones.
          local weight, whole = previous * (t2 - (now - start)), room * t2
          fades = weight < whole * 0.999999999
          if not fades and weight <= whole * 1.000000001 then is_straight = false break end
        end
        if room >= 0 and (previous <= room or fades) then
          till = start + 2 * t2
          new = pack('<c0c8BHdddd', new, name, 97, 24, till, till, previous, current + cost)
          if till > lives then lives = till end
        else
          exceeded = true
        end

      else
        is_straight = false break
      end
    end
    if not is_straight then break end
    if bans ~= 0 then
      if v and find(v, sub(Q, at, at + 7), 2, true) then is_straight = false break end
      reply, at = pack('<c0dddd', reply, 0, 0, 0, 0), at + 8
      if bans == 1 then at = at + 32 + 8 * unpack('<d', Q, at + 24) end
    end
  end

  if exceeded then
    if is_straight and not must_count_denial then return reply end
    is_straight = false
  end
  -- Behind the entries that were asked stay the others of a subject, while they matter.
  if values then values[current], news[current], read[current], lasts[current] = v, new, covered, lives end
  for k = 1, is_straight and #KEYS or 0 do
    if values then
      v, new, covered, lives = values[k], news[k], read[k], lasts[k]
      size = v and #v or 0
    end
    if v and lives > 0 and covered ~= size then
      local place = 2
      if sub(v, 1, 1) ~= '2' then is_straight = false end
      while is_straight and place <= size do
        if place + 18 > size then is_straight = false break end
        local name, _, length, till = unpack('<c8BHd', v, place)
        local behind = place + 19 + length
        if behind > size + 1 or not (till >= 0 and till < 9007199254740992) then is_straight = false break end
        if till >= now and not find(Q, name, 1, true) then
          new = new .. sub(v, place, behind - 1)
          if till > lives then lives = till end
        end
        place = behind
      end
      if not is_straight then break end
      if values then news[k], lasts[k] = new, lives end
    end
  end
  if is_straight and grown then
    for n = 1, #grown, 5 do
      -- A log that is not as long as its entry says was lost. A key that only this call has made would live for ever.
      local length = try('APPEND', grown[n], grown[n + 1])
      if length ~= grown[n + 2] + 16 then
        if length == 16 then call('DEL', grown[n]) end
        is_straight = false break
      end
    end
    for n = 1, is_straight and #grown or 0, 5 do
      local log, from, expires = grown[n], grown[n + 3], grown[n + 4]
      local ttl = math.floor((expires - now) / 1000) + 1
      if ttl < least then ttl = least end
      if from > 0 then
        call('SET', log, call('GETRANGE', log, from, -1), 'PX', ttl)
      elseif expires > 0 then
        call('PEXPIRE', log, ttl)
      end
    end
  end
  if is_straight then
    for k = 1, #KEYS do
      if values then key, new, lives = KEYS[k], news[k], lasts[k] end
      -- Of a subject without limits only bans were looked up.
      if lives > 0 then
        local ttl = (lives - now) / 1000
        ttl = ttl - ttl % 1 + 1
        if ttl < least then ttl = least end
        -- Redis would write a double, which takes it longer.
        call('SET', key, new, 'PX', format('%d', ttl))
      end
    end
    return reply
  end
end

