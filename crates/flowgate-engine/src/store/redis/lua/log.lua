-- A sliding log is the sum of its units and then pairs of when units leave and how many. The pairs are read where they
-- lie, so pairs in the middle are looked at only when they are the oldest or the newest. A log that turns out to
-- contradict itself (pairs that do not add up to their sum, or are not in order) is unreadable from then on.
local function log_empty()
  return {used = 0, pairs = ''}
end

-- Opens the log of a readable value; without those that have left.
local function log_open(v, at)
  if not v or #v < at + 24 - 1 then return log_empty() end
  local used, from, size = unpack('<d', v, at), at + 8, #v
  local leaves, units
  while from < size do
    leaves, units = unpack('<dd', v, from)
    if leaves > now then break end
    used, from = used - units, from + 16
  end
  if from < size and used > 0 and is_sound(used) then
    local last, last_units = unpack('<dd', v, size - 15)
    if leaves <= last and last_units <= used then return {used = used, pairs = sub(v, from)} end
  end
  if from < size or used ~= 0 then unreadable = unreadable + 1 end
  return log_empty()
end

local function log_last(log)
  return log.used > 0 and unpack('<d', log.pairs, #log.pairs - 15) or 0
end

-- When the unit at this place, counted from the oldest, leaves; nil where the pairs do not tell.
local function log_leaves(log, place)
  for at = 1, #log.pairs, 16 do
    local leaves, units = unpack('<dd', log.pairs, at)
    place = place - units
    if place <= 0 then return is_sound(leaves) and leaves or nil end
  end
  return nil
end

-- Counts units at a time and keeps the newest `most` of all.
local function log_push(log, leaves, units, most)
  local added = pack('<dd', leaves, units)
  if log.used > 0 then
    local last, last_units = unpack('<dd', log.pairs, #log.pairs - 15)
    if leaves <= last then
      log.pairs = sub(log.pairs, 1, -17) .. pack('<dd', last, last_units + units)
    else
      log.pairs = log.pairs .. added
    end
  else
    log.pairs = added
  end
  log.used = log.used + units
  local at, surplus = 1, log.used - most
  while surplus > 0 do
    local first, first_units = 0, 0
    if at < #log.pairs then first, first_units = unpack('<dd', log.pairs, at) end
    if not (first_units > 0) then
      -- The pairs do not add up: what was there counts as absent.
      unreadable = unreadable + 1
      log.pairs, log.used = added, units
      return
    end
    at = at + 16
    if first_units > surplus then
      log.pairs, at = pack('<dd', first, first_units - surplus) .. sub(log.pairs, at), 1
      first_units = surplus
    end
    surplus, log.used = surplus - first_units, log.used - first_units
  end
  if at > 1 then log.pairs = sub(log.pairs, at) end
end

-- Takes the newest units out.
local function log_pop(log, units)
  while units > 0 and log.used > 0 and #log.pairs > 0 do
    local last, last_units = unpack('<dd', log.pairs, #log.pairs - 15)
    local rest = sub(log.pairs, 1, -17)
    if last_units > units then
      log.pairs, log.used, units = rest .. pack('<dd', last, last_units - units), log.used - units, 0
    else
      log.pairs, log.used, units = rest, log.used - last_units, units - last_units
    end
  end
end

-- The log as a value's own part, and until when it lives.
local function log_write(log)
  if not (log.used > 0) or log.pairs == '' then return '', 0 end
  return pack('<d', log.used) .. log.pairs, (unpack('<d', log.pairs, #log.pairs - 15))
end

