
-- Values: a letter for the algorithm and doubles. The letter is a capital where the window of `after=` goes first.
-- Times are whole microseconds; a bucket's go with a remainder in ticks. Every number and every sum is below 2^53.
-- A value that none of our scripts can have written is unreadable: it counts as absent, is overwritten by the next
-- charge, and the reply says how many there were. So a foreign write to a key spoils the count of one subject only.

local now, least
-- Tests bring the time along; their keys live for an hour of the real one at least.
local function read_time(given)
  if given == '' then
    local t = call('TIME')
    now, least = t[1] * 1000000 + t[2], 0
  else
    now, least = given + 0, 3600000
  end
end

local unreadable = 0

-- Adds to a reply how many values could not be read.
local function told(reply)
  for _ = 1, unreadable do reply[#reply + 1] = -3 end
  return reply
end

-- Whether a number may be one of ours. NaN and the infinities are not.
local function is_sound(number)
  return number >= 0 and number < 9007199254740992 and number % 1 == 0
end

-- The text under a key; false where there is none. A node that needs a key to exist puts an empty one there.
local function text_at(key)
  local v = try('GET', key)
  if type(v) == 'table' then
    -- Whatever else is wrong with the key, asking again says it to the caller.
    if not v.err:find('WRONGTYPE', 1, true) then call('GET', key) end
    unreadable = unreadable + 1
    return false
  end
  return v ~= '' and v
end

-- How many numbers the own part of a value has before its log, if it has one.
local numbers = {b = 2, p = 2, f = 2, a = 3, c = 2, s = 0, x = 3}

-- Whether a log may lie at a place: its sum and at least one pair, whose last is looked at.
local function is_log(v, at)
  local size = #v - at + 1
  if size < 24 or size % 16 ~= 8 then return false end
  local used = unpack('<d', v, at)
  local last, units = unpack('<dd', v, #v - 15)
  return is_sound(used) and is_sound(last) and is_sound(units) and used > 0 and units > 0
end

-- The letter of a value in lower case, where its own part begins, and the end and the count of the window of
-- `after=`; nil where the value is unreadable.
local function open_value(v)
  local mark, at, ends, seen = sub(v, 1, 1), 2, 0, 0
  local letter = mark:lower()
  if not numbers[letter] then return nil end
  if letter ~= mark then
    if #v < 17 or letter == 'c' or letter == 'x' then return nil end
    ends, seen = unpack('<dd', v, 2)
    if not (is_sound(ends) and is_sound(seen)) then return nil end
    at = 18
  end
  local behind = at + 8 * numbers[letter]
  if #v < behind - 1 then return nil end
  for place = at, behind - 1, 8 do
    local number = unpack('<d', v, place)
    if not is_sound(number) then return nil end
    if letter == 'a' and place > at and number > 4294967295 then return nil end
  end
  if letter == 'c' then
    -- No more than an i64 of nanoseconds holds.
    local seconds, nanos = unpack('<dd', v, at)
    if nanos > 999999999 or seconds > 9223372036 or (seconds == 9223372036 and nanos > 854775807) then return nil end
  end
  if #v >= behind then
    if (letter ~= 's' and letter ~= 'x') or not is_log(v, behind) then return nil end
  elseif mark == 's' then
    return nil
  end
  return letter, at, ends, seen
end

local function keep(key, value, lives_until)
  local ttl = floor((lives_until - now) / 1000) + 1
  if ttl < least then ttl = least end
  call('SET', key, value, 'PX', ttl)
end

local function drop(key)
  call('DEL', key)
end

-- Keeps a counter: its own part, and the window of `after=` while that is open.
local function keep_both(key, letter, own, own_until, ends, seen)
  if ends > now then
    keep(key, pack('<c1dd', letter:upper(), ends, seen) .. own, math.max(own_until, ends))
  elseif own_until > now then
    keep(key, letter .. own, own_until)
  else
    drop(key)
  end
end

-- When the own part of a readable value, which begins at `at`, is as if never used.
local function own_until(letter, v, at)
  if letter == 'c' then
    local seconds, nanos = unpack('<dd', v, at)
    return seconds * 1000000 + math.ceil(nanos / 1000)
  elseif letter == 's' then
    return #v > at and unpack('<d', v, #v - 15) or 0
  elseif letter == 'b' or letter == 'p' then
    -- What is owed beyond the last whole microsecond is owed until the next.
    local full, rest = unpack('<dd', v, at)
    return rest > 0 and full + 1 or full
  end
  return (unpack('<d', v, at))
end

