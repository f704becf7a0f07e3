
-- Values: a letter for the algorithm and doubles. The letter is a capital where the window of `after=` goes first.
-- Times are whole microseconds; a bucket's go with a remainder in ticks. Every number and every sum is below 2^53.

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

local function keep(key, value, lives_until)
  local ttl = floor((lives_until - now) / 1000) + 1
  if ttl < least then ttl = least end
  call('SET', key, value, 'PX', ttl)
end

-- Keeps a counter: its own part, and the window of `after=` while that is open.
local function keep_both(key, letter, own, own_until, ends, seen)
  if ends > now then
    keep(key, pack('<c1dd', letter:upper(), ends, seen) .. own, math.max(own_until, ends))
  elseif own_until > now then
    keep(key, letter .. own, own_until)
  else
    call('DEL', key)
  end
end

-- When a value is as if never used.
local function lives_until(v)
  local mark, at = sub(v, 1, 1), 2
  local last = 0
  if mark ~= 'x' and mark:upper() == mark then
    last, at, mark = unpack('<d', v, 2), 18, mark:lower()
  end
  local own = 0
  if mark == 'c' then
    local seconds, nanos = unpack('<dd', v, at)
    own = seconds * 1000000 + math.ceil(nanos / 1000)
  elseif mark == 's' then
    if #v >= at + 16 then own = unpack('<d', v, #v - 15) end
  elseif mark == 'b' or mark == 'p' then
    -- What is owed beyond the last whole microsecond is owed until the next.
    local full, rest = unpack('<dd', v, at)
    own = rest > 0 and full + 1 or full
  else
    own = unpack('<d', v, at)
  end
  return math.max(own, last)
end
