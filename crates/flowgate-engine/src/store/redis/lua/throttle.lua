-- redis-cell's arithmetic, in seconds and nanoseconds: together they hold whatever an i64 of nanoseconds does.
-- KEYS   the key
-- ARGV   cells: increment tolerance now, each as seconds (rounded down) and nanoseconds of the next; seconds of -1 are Redis's
--        own time
-- Reply  {now, what was found}, each as seconds and nanoseconds, and a -3 if the value cannot be read;
--        {-2}: the key is in use by a limit

local add_s, add_n, most_s, most_n, s, n = unpack('<dddddd', Q)
local least = 3600000
if s < 0 then
  local t = call('TIME')
  s, n, least = t[1] + 0, t[2] * 1000, 0
end
local key, now = KEYS[1], s * 1000000 + math.floor(n / 1000)
local v = try('GET', key)

-- The value, entry by entry, as value.lua has it. Beside the counter there may be what was undone in it, which stays.
local old_s, old_n, rest, lives, is_readable, is_in_use = 0, 0, '', 0, true, false
if type(v) == 'table' then
  -- A list or a hash. Whatever else is wrong with the key, asking again says it to the caller.
  if not v.err:find('WRONGTYPE', 1, true) then call('GET', key) end
  is_readable = false
elseif v and v ~= '' then
  local at, size = 2, #v
  is_readable = size > 19 and sub(v, 1, 1) == '2'
  while is_readable and at <= size do
    if at + 18 > size then is_readable = false break end
    local name, letter, length, till = unpack('<c8BHd', v, at)
    local behind = at + 19 + length
    if behind > size + 1 or not (till >= 0 and till < 9007199254740992) then is_readable = false break end
    if name ~= '--------' then
      if till >= now then
        rest = rest .. sub(v, at, behind - 1)
        if till > lives then lives = till end
      end
    elseif letter == 99 and length == 16 then
      old_s, old_n = unpack('<dd', v, at + 19)
      -- No more than an i64 of nanoseconds holds.
      is_readable = old_s >= 0 and old_s % 1 == 0 and old_n >= 0 and old_n <= 999999999 and old_n % 1 == 0
        and (old_s < 9223372036 or (old_s == 9223372036 and old_n <= 854775807))
    else
      is_in_use = till > now
    end
    at = behind
  end
end
if not is_readable then
  old_s, old_n, rest, lives = 0, 0, '', 0
elseif is_in_use then
  return {-2}
end

local new_s, new_n = old_s, old_n
if new_s < s or (new_s == s and new_n < n) then new_s, new_n = s, n end
new_s, new_n = new_s + add_s, new_n + add_n
if new_n >= 1000000000 then new_s, new_n = new_s + 1, new_n - 1000000000 end
-- An i64 ends here. What does not fit is an error, which the caller finds from what was found.
local fits = new_s < 9223372036 or (new_s == 9223372036 and new_n <= 854775807)
if new_s < s or (new_s == s and new_n < n) then new_s, new_n = s, n end
most_s, most_n = s + most_s, n + most_n
if most_n >= 1000000000 then most_s, most_n = most_s + 1, most_n - 1000000000 end
if fits and (add_s < 0 or new_s < most_s or (new_s == most_s and new_n <= most_n)) then
  local new = '2'
  if new_s ~= s or new_n ~= n then
    -- Centuries from now there are instants beyond 2^53 microseconds, which no entry has.
    local till = math.min(new_s * 1000000 + math.ceil(new_n / 1000), 9007199254740991)
    new = pack('<c9BHddd', '2--------', 99, 16, till, new_s, new_n)
    if till > lives then lives = till end
  end
  if rest ~= '' then new = new .. rest end
  if new ~= '2' then
    local ttl = (lives - now) / 1000
    ttl = ttl - ttl % 1 + 1
    if ttl < least then ttl = least end
    call('SET', key, new, 'PX', format('%d', ttl))
  elseif v then
    call('DEL', key)
  end
end
if is_readable then return pack('<dddd', s, n, old_s, old_n) end
return {s, n, old_s, old_n, -3}
