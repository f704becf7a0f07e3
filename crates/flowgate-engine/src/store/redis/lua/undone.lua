
-- What was undone of late in a counter that leaks (bucket, pace, CL.THROTTLE).
--
-- A charge is named by the instant at which it has leaked out. When one is undone, those behind it leak out earlier than
-- their names say. So each rollback that may have a charge behind it leaves an entry beside the counter:
--   charged    when the charge was made
--   undone     when it was undone
--   leaks      when it would have leaked out, at the earliest
--   ends       when the counter would have been full: no later than that does the entry matter, as every charge that was
--              there has leaked out by then
--   base whole rest     what was taken out, and how many rests make a whole
-- The first four are microseconds. The text is the letter u and the entries, oldest first, each as seven doubles.
--
-- Every doubt makes what is taken out smaller: then something stays charged that was not taken, until it leaks out.

local MOST_UNDONE, MOST_TAKEN, each = 32, 9007199254740991, _G.unpack

local function is_before(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end

local function minus(a, b, base)
  local whole, rest = a[1] - b[1], a[2] - b[2]
  if rest < 0 then whole, rest = whole - 1, rest + base end
  return {whole, rest}
end

-- A pair and what an entry has taken out. Rests of another rate are rounded up.
local function plus_entry(sum, entry, base)
  local whole, rest = sum[1] + entry[6], sum[2]
  if entry[5] == base then rest = rest + entry[7] elseif entry[7] > 0 then whole = whole + 1 end
  if rest >= base then whole, rest = whole + 1, rest - base end
  return {math.min(whole, MOST_TAKEN), rest}
end

-- An instant in microseconds, rounded down.
local function micros_of(letter, instant)
  if letter == 'c' then return instant[1] * 1000000 + floor(instant[2] / 1000) end
  return instant[1]
end

-- The entries that matter. Where they cannot be read, one entry stands for all that may have been undone: more than any
-- counter holds.
local function undone_open(key, counter, letter, own, charge, base)
  -- Beside the counter: its name with another first letter.
  local name, known = '!' .. sub(counter, 2), unreadable
  local v = text_at(key, name)
  local undone, is_sound_list = {key = key, name = name, changed = false}, unreadable == known
  if v then
    is_sound_list = sub(v, 1, 1) == 'u' and #v % 56 == 1
    for at = 2, is_sound_list and #v or 0, 56 do
      local entry = {unpack('<ddddddd', v, at)}
      for n = 1, 7 do is_sound_list = is_sound_list and is_sound(entry[n]) end
      is_sound_list = is_sound_list and entry[7] < entry[5]
      if entry[4] > now then undone[#undone + 1] = entry end
    end
    if not is_sound_list then unreadable = unreadable + 1 end
  end
  if not is_sound_list then
    local ends = math.max(own_until(letter, own, 1), micros_of(letter, charge) + 1)
    undone = {key = key, name = name, changed = true, {0, now, 0, ends, base, MOST_TAKEN, 0}}
  end
  return undone
end

-- How much was taken out ahead of a charge since it was made, behind what was owed until `start`. Within one microsecond
-- the order is not known: there, what lay before `start` may have been ahead. A charge of the future tells of a clock that
-- was put back: then anything may have been.
local function undone_ahead(undone, charged, start, base)
  local sum = {0, 0}
  for n = 1, #undone do
    local entry = undone[n]
    local is_ahead = entry[1] < charged and entry[2] > charged
    local may_be_ahead = entry[1] <= charged and entry[2] >= charged and entry[3] <= start
    if is_ahead or may_be_ahead or charged > now then sum = plus_entry(sum, entry, base) end
  end
  return sum
end

-- Adds an entry. Of too many the two oldest become one, which stands for at least as much.
local function undone_add(undone, charged, leaks, ends, base, took)
  if charged > now then charged = 0 end
  undone.changed = true
  undone[#undone + 1] = {charged, now, leaks, ends, base, took[1], took[2]}
  while #undone > MOST_UNDONE do
    local first, second = table.remove(undone, 1), undone[1]
    local sum = plus_entry({second[6], second[7]}, first, second[5])
    undone[1] = {
      math.min(first[1], second[1]), math.max(first[2], second[2]), math.min(first[3], second[3]),
      math.max(first[4], second[4]), second[5], sum[1], sum[2],
    }
  end
end

local function undone_keep(undone)
  if not undone.changed then return end
  local v, ends = 'u', now
  for n = 1, #undone do
    v, ends = v .. pack('<ddddddd', each(undone[n])), math.max(ends, undone[n][4])
  end
  keep(undone.key, undone.name, v, ends)
end
