-- The value of a subject: a 2, the version of this layout, and entries. Each is the name of a counter (8 bytes), a letter, the
-- size of what follows the next number, the instant from which the counter is as if never used, and its state: doubles.
-- The letter names the algorithm, and is a capital where the window of `after=` goes first. A letter and a state are a *text*.
-- Times are whole microseconds; a bucket's go with a remainder in ticks. Every number and every sum is below 2^53.
-- What none of our scripts can have written is unreadable: it counts as absent, is overwritten by the next
-- charge, and the reply says how many there were. So a foreign write to a key spoils the counts of one subject only.
-- All is read when it is first asked for, and written at the end.

-- The name of the one counter of an ad hoc key. The longest log that stays in a value, in bytes.
local VERSION, AD_HOC, MOST_IN_VALUE = '2', '--------', 256

-- The argument: cells of eight bytes, each a double but for the names of counters.
local A, floor = {}, math.floor
for at = 1, #Q - 7, 8 do A[#A + 1] = unpack('<d', Q, at) end
local function name_at(cell) return sub(Q, 8 * cell - 7, 8 * cell) end

local now, least
-- Tests bring the time along; their keys live for an hour of the real one at least.
local function read_time(given)
  if given < 0 then
    local t = call('TIME')
    now, least = t[1] * 1000000 + t[2], 0
  else
    now, least = given, 3600000
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

-- What a command answers; false where the key holds a list or a hash. Whatever else is wrong, asking again says it to the caller.
local function tried(command, key, ...)
  local v = try(command, key, ...)
  if type(v) ~= 'table' then return v end
  if not v.err:find('WRONGTYPE', 1, true) then call(command, key, ...) end
  unreadable = unreadable + 1
  return false
end

-- The entries of a value that still matter, in order; nil where it is not a value of ours.
local function entries_of(v)
  local names, texts, lives, at, size = {}, {}, {}, 2, #v
  if sub(v, 1, 1) ~= VERSION or size < 20 then return nil end
  while at <= size do
    if at + 18 > size then return nil end
    local name, letter, length, till = unpack('<c8c1Hd', v, at)
    local behind = at + 19 + length
    if behind > size + 1 or texts[name] or not is_sound(till) then return nil end
    if till >= now then
      names[#names + 1], texts[name], lives[name] = name, letter .. sub(v, at + 19, behind - 1), till
    end
    at = behind
  end
  return names, texts, lives
end

-- The subjects that were asked for, by their keys and in order. A node that needs a key to exist puts an empty value there.
local subjects = {}
local function subject_at(key)
  local subject = subjects[key]
  if subject then return subject end
  local v = tried('GET', key)
  local names, texts, lives
  if v and v ~= '' then
    names, texts, lives = entries_of(v)
    if not names then unreadable = unreadable + 1 end
  end
  subject = {key = key, names = names or {}, texts = texts or {}, lives = lives or {}, logs = {}, is_changed = false}
  subjects[key], subjects[#subjects + 1] = subject, subject
  return subject
end

-- The text of a log that has a key of its own, of which the entry has: the newest pair, the sum, the oldest pair, from where to
-- where the key holds pairs, and until when the key lives at least. Where those pairs were lost, all units leave with the newest.
local function whole_log(key, name, entry)
  if #entry ~= 65 then return nil end
  local last, units, used, _, _, from, size = unpack('<ddddddd', entry, 2)
  if not (is_sound(last) and is_sound(units) and is_sound(used) and is_sound(from) and is_sound(size))
    or from > size or units == 0 or units > used then
    return nil
  end
  local known = unreadable
  local older = from < size and tried('GETRANGE', key .. ':' .. name, from, size - 1) or ''
  if #older ~= size - from then
    unreadable, older, units = known + 1, '', used
  end
  return 's' .. pack('<d', used) .. older .. pack('<dd', last, units)
end

-- The text of a counter; false where there is none.
local function text_at(key, name)
  local subject = subject_at(key)
  local text = subject.texts[name]
  if text and sub(text, 1, 1) == 'l' then
    local whole = whole_log(key, name, text)
    if not whole then unreadable = unreadable + 1 end
    subject.logs[name] = {entry = text, whole = whole}
    subject.texts[name] = whole
    text = whole
  end
  return text or false
end

-- How many numbers the own part of a text has before its log, if it has one.
local numbers = {b = 2, p = 2, f = 2, a = 3, c = 2, s = 0, x = 3}

-- Whether a log may lie at a place: its sum and at least one pair, whose last is looked at.
local function is_log(v, at)
  local size = #v - at + 1
  if size < 24 or size % 16 ~= 8 then return false end
  local used = unpack('<d', v, at)
  local last, units = unpack('<dd', v, #v - 15)
  return is_sound(used) and is_sound(last) and is_sound(units) and used > 0 and units > 0
end

-- The letter of a text in lower case, where its own part begins, and the end and the count of the window of
-- `after=`; nil where the text is unreadable.
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

local function keep(key, name, text, lives_until)
  local subject = subject_at(key)
  if not subject.texts[name] then
    for at = #subject.names, 1, -1 do
      if subject.names[at] == name then table.remove(subject.names, at) end
    end
    subject.names[#subject.names + 1] = name
  end
  subject.texts[name], subject.lives[name], subject.is_changed = text, lives_until, true
end

local function drop(key, name)
  local subject = subject_at(key)
  subject.texts[name], subject.is_changed = nil, true
end

local function ttl_of(lives_until)
  return math.max(floor((lives_until - now) / 1000) + 1, least)
end

-- Gives a log a key of its own, which lives as long again; the text of its entry. A slot that is moving may refuse the key.
local function move_out(key, name, text)
  local last, units = unpack('<dd', text, #text - 15)
  local first, first_units = unpack('<dd', text, 10)
  local older, expires = sub(text, 10, -17), 2 * last - now
  local set = try('SET', key .. ':' .. name, older, 'PX', ttl_of(expires))
  if set.err then return text end
  return 'l' .. pack('<dddddddd', last, units, unpack('<d', text, 2), first, first_units, 0, #older, expires)
end

-- Writes what has changed.
local function write_subjects()
  for _, subject in ipairs(subjects) do
    local key, v, lives_until = subject.key, VERSION, 0
    for _, name in ipairs(subject.is_changed and subject.names or {}) do
      local text, log, lives = subject.texts[name], subject.logs[name], subject.lives[name]
      if text then
        if log and text == log.whole then
          text = log.entry
        elseif #text > MOST_IN_VALUE + 9 and sub(text, 1, 1) == 's' then
          text = move_out(key, name, text)
        elseif log then
          try('DEL', key .. ':' .. name)
        end
        v = v .. pack('<c8c1Hd', name, sub(text, 1, 1), #text - 1, lives) .. sub(text, 2)
        lives_until = math.max(lives_until, lives)
      elseif log then
        try('DEL', key .. ':' .. name)
      end
    end
    if v ~= VERSION then
      call('SET', key, v, 'PX', ttl_of(lives_until))
    elseif subject.is_changed then
      call('DEL', key)
    end
  end
end

-- Keeps a counter: its own part, and the window of `after=` while that is open.
local function keep_both(key, name, letter, own, own_until, ends, seen)
  if ends > now then
    keep(key, name, pack('<c1dd', letter:upper(), ends, seen) .. own, math.max(own_until, ends))
  elseif own_until > now then
    keep(key, name, letter .. own, own_until)
  else
    drop(key, name)
  end
end

-- When the own part of a readable text, which begins at `at`, is as if never used.
local function own_until(letter, v, at)
  if letter == 'c' then
    local seconds, nanos = unpack('<dd', v, at)
    return math.min(seconds * 1000000 + math.ceil(nanos / 1000), 9007199254740991)
  elseif letter == 's' then
    return #v > at and unpack('<d', v, #v - 15) or 0
  elseif letter == 'b' or letter == 'p' then
    -- What is owed beyond the last whole microsecond is owed until the next.
    local full, rest = unpack('<dd', v, at)
    return rest > 0 and full + 1 or full
  end
  return (unpack('<d', v, at))
end

