
-- Takes a charge back out of what it was put into, if that is still there.
-- KEYS   the counters
-- ARGV   time cost, and per key the name of the charge to the limit's own count and of that to `after=` (0: none)
--        b full_at full_at want want ticks | f ends | s leaves | a forget_at period | n
-- Reply  {now}

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
  if log.used == 0 then return '', 0 end
  return pack('<d', log.used) .. log.pairs, log_last(log)
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

-- Only the charge to `after=`.
function undo.n(own, letter)
  return own, lives_until(letter .. own)
end

local sizes = {b = 6, f = 2, s = 2, a = 3, n = 1}
for k = 1, #KEYS do
  local kind, v = A[i], call('GET', KEYS[k])
  local letter = v and sub(v, 1, 1):lower()
  if letter and (kind == 'n' or kind == (letter == 'p' and 'b' or letter)) then
    local at, ends, seen = 2, 0, 0
    if letter ~= sub(v, 1, 1) then
      ends, seen = unpack('<dd', v, 2)
      at = 18
    end
    local own, own_until = undo[kind](sub(v, at), letter)
    if ends > 0 and ends == A[i + sizes[kind]] + 0 then
      seen = seen - cost
      if seen <= 0 then ends, seen = 0, 0 end
    end
    keep_both(KEYS[k], letter, own, own_until, ends, seen)
  end
  i = i + sizes[kind] + 1
end
return {now}
