
-- A sliding log is the sum of its units and then pairs of when units leave and how many. `from` is where the pairs
-- begin that have not left; the pairs are read where they lie, so a long log costs no more than what is read of it.
local function log_open(v, at)
  local log = {v = v, from = at, used = 0}
  if v and #v >= at + 8 then
    log.used, log.from = unpack('<d', v, at), at + 8
    while log.from < #v do
      local leaves, units = unpack('<dd', v, log.from)
      if leaves > now then break end
      log.used, log.from = log.used - units, log.from + 16
    end
  end
  log.pairs = log.used > 0 and sub(v, log.from) or ''
  return log
end

local function log_last(log)
  return log.used > 0 and unpack('<d', log.pairs, #log.pairs - 15) or 0
end

-- When the unit at this place, counted from the oldest, leaves.
local function log_leaves(log, place)
  local at = 1
  while true do
    local leaves, units = unpack('<dd', log.pairs, at)
    place = place - units
    if place <= 0 then return leaves end
    at = at + 16
  end
end

-- Counts units at a time and keeps the newest `most` of all.
local function log_push(log, leaves, units, most)
  if log.used > 0 then
    local last, last_units = unpack('<dd', log.pairs, #log.pairs - 15)
    if leaves <= last then
      log.pairs = sub(log.pairs, 1, -17) .. pack('<dd', last, last_units + units)
    else
      log.pairs = log.pairs .. pack('<dd', leaves, units)
    end
  else
    log.pairs = pack('<dd', leaves, units)
  end
  log.used = log.used + units
  local at, surplus = 1, log.used - most
  while surplus > 0 do
    local first, first_units = unpack('<dd', log.pairs, at)
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
  while units > 0 and log.used > 0 do
    local last, last_units = unpack('<dd', log.pairs, #log.pairs - 15)
    local rest = sub(log.pairs, 1, -17)
    if last_units > units then
      log.pairs, log.used, units = rest .. pack('<dd', last, last_units - units), log.used - units, 0
    else
      log.pairs, log.used, units = rest, log.used - last_units, units - last_units
    end
  end
end
