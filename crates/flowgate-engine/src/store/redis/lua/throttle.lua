
-- redis-cell's arithmetic, in seconds and nanoseconds: together they hold whatever an i64 of nanoseconds does.
-- KEYS   the key
-- ARGV   increment tolerance [now], each as seconds (rounded down) and nanoseconds of the next
-- Reply  {now, what was found}, each as seconds and nanoseconds, and a -3 if the value cannot be read;
--        {-2}: the key is in use by a limit

local s, n
if A[5] then
  s, n, least = A[5] + 0, A[6] + 0, 3600000
else
  local t = call('TIME')
  s, n, least = t[1] + 0, t[2] * 1000, 0
end
now = s * 1000000 + floor(n / 1000)
local v, old_s, old_n = text_at(KEYS[1]), 0, 0
if v then
  local letter, at, ends = open_value(v)
  if letter == 'c' then
    old_s, old_n = unpack('<dd', v, at)
  elseif not letter then
    unreadable = unreadable + 1
  elseif math.max(ends, own_until(letter, v, at)) > now then
    return {-2}
  end
end
local from_s, from_n = old_s, old_n
if from_s < s or (from_s == s and from_n < n) then from_s, from_n = s, n end
local new_s, new_n = from_s + A[1], from_n + A[2]
if new_n >= 1000000000 then new_s, new_n = new_s + 1, new_n - 1000000000 end
-- An i64 ends here. What does not fit is an error, which the caller finds from what was found.
local fits = new_s < 9223372036 or (new_s == 9223372036 and new_n <= 854775807)
if new_s < s or (new_s == s and new_n < n) then new_s, new_n = s, n end
local most_s, most_n = s + A[3], n + A[4]
if most_n >= 1000000000 then most_s, most_n = most_s + 1, most_n - 1000000000 end
local gives_back = sub(A[1], 1, 1) == '-'
if fits and (gives_back or new_s < most_s or (new_s == most_s and new_n <= most_n)) then
  if new_s == s and new_n == n then
    if v or unreadable > 0 then call('DEL', KEYS[1]) end
  else
    local ttl = (new_s - s) * 1000 + floor((new_n - n) / 1000000) + 1
    call('SET', KEYS[1], pack('<c1dd', 'c', new_s, new_n), 'PX', math.max(ttl, least))
  end
end
return told({s, n, old_s, old_n})
