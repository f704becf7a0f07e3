
-- Takes a charge back out of what it was put into, if that is still there.
-- KEYS   one per subject
-- ARGV   cells: time cost charged_at, and per counter which key, its name, the name of the charge to the limit's own count and
--        of that to `after=` (0: none)
--        b full_at full_at want want ticks | f ends | s leaves | a forget_at period | n
--        | c until until took took                 each as seconds and nanoseconds
-- Reply  {now}, and a -3 for each value that cannot be read, which is left as it is

read_time(A[1])
local cost, charged, i = A[2], A[3], 4
local key, name

-- Each gives the own part anew and until when it lives.
local undo = {}

-- Of a counter that leaks, and is full at `full`: what has leaked out since was the older part. `at` is the time. Both are
-- pairs of a whole and a rest, of which `base` make a whole.
local function leak_less(letter, own, full, at, base)
  local charge, took = {A[i + 1], A[i + 2]}, {A[i + 3], A[i + 4]}
  if is_before(charge, at) or is_before(full, at) then return own, own_until(letter, own, 1) end
  local undone = undone_open(key, name, letter, own, charge, base)
  local start = micros_of(letter, minus(charge, took, base))
  local leaks = minus(charge, undone_ahead(undone, charged, start, base), base)
  if is_before(at, leaks) then
    local left = minus(leaks, at, base)
    if is_before(left, took) then took = left end
    -- Behind the newest charge there is none to be moved.
    if is_before(leaks, full) or is_before(full, leaks) then
      undone_add(undone, charged, micros_of(letter, leaks), own_until(letter, own, 1), base, took)
    end
    full = minus(full, took, base)
    if not is_before(at, full) then full = {0, 0} end
    own = pack('<dd', full[1], full[2])
  end
  undone_keep(undone)
  return own, own_until(letter, own, 1)
end

function undo.b(own)
  local full, rest = unpack('<dd', own)
  return leak_less('b', own, {full, rest}, {now, 0}, A[i + 5])
end

function undo.f(own)
  local ends, count = unpack('<dd', own)
  if ends == A[i + 1] and now < ends then
    count = count - cost
    if count <= 0 then ends, count = 0, 0 end
  end
  return pack('<dd', ends, count), ends
end

function undo.s(own)
  local charge, log = A[i + 1], log_open(own, 1)
  for at = #log.pairs - 15, 1, -16 do
    local leaves, units = unpack('<dd', log.pairs, at)
    if leaves == charge then
      local taken = math.min(units, cost)
      local left = units > taken and pack('<dd', leaves, units - taken) or ''
      log.pairs, log.used = sub(log.pairs, 1, at - 1) .. left .. sub(log.pairs, at + 16), log.used - taken
    end
    if leaves <= charge then break end
  end
  return log_write(log)
end

function undo.a(own)
  local charge, period = A[i + 1], A[i + 2]
  local forget, previous, current = unpack('<ddd', own)
  if forget == charge then
    current = math.max(current - cost, 0)
  elseif forget == charge + period then
    previous = math.max(previous - cost, 0)
  end
  if current == 0 and previous == 0 then forget = 0 end
  return pack('<ddd', forget, previous, current), forget
end

function undo.c(own)
  local s, n = unpack('<dd', own)
  return leak_less('c', own, {s, n}, {floor(now / 1000000), now % 1000000 * 1000}, 1000000000)
end

-- Only the charge to `after=`.
function undo.n(own, letter)
  return own, own_until(letter, own, 1)
end

local sizes = {b = 6, f = 2, s = 2, a = 3, c = 5, n = 1}
while i <= #A do
  key, name = KEYS[A[i]], name_at(i + 1)
  i = i + 2
  local kind, v = string.char(A[i]), text_at(key, name)
  local letter, at, ends, seen
  if v then
    letter, at, ends, seen = open_value(v)
    if not letter then unreadable = unreadable + 1 end
  end
  if letter and (kind == 'n' or kind == (letter == 'p' and 'b' or letter)) then
    local own, own_until = undo[kind](sub(v, at), letter)
    if ends > 0 and ends == A[i + sizes[kind]] then
      seen = seen - cost
      if seen <= 0 then ends, seen = 0, 0 end
    end
    keep_both(key, name, letter, own, own_until, ends, seen)
  end
  i = i + sizes[kind] + 1
end
write_subjects()
return told({now})
