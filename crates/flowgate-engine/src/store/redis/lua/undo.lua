
-- Takes a charge back out of what it was put into, if that is still there.
-- KEYS   the counters
-- ARGV   time cost, and per key the name of the charge to the limit's own count and of that to `after=` (0: none)
--        b full_at full_at want want ticks | f ends | s leaves | a forget_at period | n
--        | c until until took took                 each as seconds and nanoseconds
-- Reply  {now}, and a -3 for each value that cannot be read, which is left as it is

read_time(A[1])
local cost, i = A[2] + 0, 3

-- Each gives the own part anew and until when it lives.
local undo = {}

function undo.b(own)
  local full, rest = unpack('<dd', own)
  local name, name_rest, want, want_rest = A[i + 1] + 0, A[i + 2] + 0, A[i + 3] + 0, A[i + 4] + 0
  if name >= now and full >= now then
    -- What has leaked out since was the older part.
    local left = name - now
    if left < want or (left == want and name_rest < want_rest) then want, want_rest = left, name_rest end
    full, rest = full - want, rest - want_rest
    if rest < 0 then full, rest = full - 1, rest + A[i + 5] end
    if full < now or (full == now and rest == 0) then full, rest = 0, 0 end
  end
  return pack('<dd', full, rest), rest > 0 and full + 1 or full
end

function undo.f(own)
  local ends, count = unpack('<dd', own)
  if ends == A[i + 1] + 0 and now < ends then
    count = count - cost
    if count <= 0 then ends, count = 0, 0 end
  end
  return pack('<dd', ends, count), ends
end

function undo.s(own)
  local name, log = A[i + 1] + 0, log_open(own, 1)
  for at = #log.pairs - 15, 1, -16 do
    local leaves, units = unpack('<dd', log.pairs, at)
    if leaves == name then
      local taken = math.min(units, cost)
      local left = units > taken and pack('<dd', leaves, units - taken) or ''
      log.pairs, log.used = sub(log.pairs, 1, at - 1) .. left .. sub(log.pairs, at + 16), log.used - taken
    end
    if leaves <= name then break end
  end
  return log_write(log)
end

function undo.a(own)
  local name, period = A[i + 1] + 0, A[i + 2] + 0
  local forget, previous, current = unpack('<ddd', own)
  if forget == name then
    current = math.max(current - cost, 0)
  elseif forget == name + period then
    previous = math.max(previous - cost, 0)
  end
  if current == 0 and previous == 0 then forget = 0 end
  return pack('<ddd', forget, previous, current), forget
end

function undo.c(own)
  local s, n = unpack('<dd', own)
  local left_s, left_n = A[i + 1] - floor(now / 1000000), A[i + 2] - now % 1000000 * 1000
  if left_n < 0 then left_s, left_n = left_s - 1, left_n + 1000000000 end
  if left_s >= 0 then
    -- What has passed since was the older part.
    local took_s, took_n = A[i + 3] + 0, A[i + 4] + 0
    if left_s < took_s or (left_s == took_s and left_n < took_n) then took_s, took_n = left_s, left_n end
    s, n = s - took_s, n - took_n
    if n < 0 then s, n = s - 1, n + 1000000000 end
  end
  return pack('<dd', s, n), s * 1000000 + math.ceil(n / 1000)
end

-- Only the charge to `after=`.
function undo.n(own, letter)
  return own, own_until(letter, own, 1)
end

local sizes = {b = 6, f = 2, s = 2, a = 3, c = 5, n = 1}
for k = 1, #KEYS do
  local kind, v = A[i], text_at(KEYS[k])
  local letter, at, ends, seen
  if v then
    letter, at, ends, seen = open_value(v)
    if not letter then unreadable = unreadable + 1 end
  end
  if letter and (kind == 'n' or kind == (letter == 'p' and 'b' or letter)) then
    local own, own_until = undo[kind](sub(v, at), letter)
    if ends > 0 and ends == A[i + sizes[kind]] + 0 then
      seen = seen - cost
      if seen <= 0 then ends, seen = 0, 0 end
    end
    keep_both(KEYS[k], letter, own, own_until, ends, seen)
  end
  i = i + sizes[kind] + 1
end
return told({now})
