-- Decides several requests, the parts, in one step: all of them pass, or none is charged. Answers with the states it
-- FOUND, part by part; the caller derives the decisions. The order of the steps is that of joint.rs in the library.
--
-- Cells: time, 1 if something other than a limit denies, number of parts; per part: op, cost, number of rules, number of keys,
-- and its rules as decide.lua has them.

read_time(A[1])
reply[1] = now

-- The values before the step, and those that it leaves (false: the key goes). All parts read and write these; Redis gets
-- them at the end.
local found, left, lives = {}, {}, {}
local stored_text, store, delete = text_at, keep, drop
-- By place: the key and the name of a counter in one.
local places = {}
text_at = function(key, name)
  local place = key .. name
  if left[place] ~= nil then return left[place] end
  if found[place] == nil then
    found[place], places[#places + 1] = stored_text(key, name), {key = key, name = name}
  end
  return found[place]
end
keep = function(key, name, text, lives_until) left[key .. name], lives[key .. name] = text, lives_until end
drop = function(key, name) left[key .. name] = false end

local function copy(values)
  local all = {}
  for key, value in pairs(values) do all[key] = value end
  return all
end

-- The parts ask about several places of a log, so all of it is told.
log_entries = function(h)
  local entries, used = {}, 0
  for at = 1, #h.log.pairs, 16 do
    local leaves, units = unpack('<dd', h.log.pairs, at)
    if not (is_sound(leaves) and is_sound(units)) then return nil end
    used = used + units
    entries[#entries + 1] = leaves
    entries[#entries + 1] = used
  end
  if used ~= h.log.used then
    -- Later looks find it empty, too.
    found[h.key .. h.name] = false
    return nil
  end
  return entries
end

-- Reads the rules of a part with their counters as they are now; nil where a counter is of another algorithm.
local function look(part)
  op, cost, i, first_key = part.op, part.cost, part.at, part.first_key
  asks, units = op ~= RECORD and op ~= REFUND, math.min(cost, 1000000000000)
  local rules = {}
  for r = 1, part.rules do
    rules[r] = read_rule()
    if not rules[r] then return nil end
    -- What costs nothing passes.
    if cost == 0 then rules[r].exceeded = false end
  end
  return rules
end

local parts, denied, keys = {}, A[2] == 1, 0
i = 4
for p = 1, A[3] do
  local part = {op = A[i], cost = A[i + 1], rules = A[i + 2], at = i + 4, first_key = keys, exceeded = {}}
  keys = keys + A[i + 3]
  local rules = look(part)
  if not rules then return {-2} end
  for _, rule in ipairs(rules) do
    if asks and rule.ban and now < rule.ban.ends then part.banned = true end
  end
  if part.banned then denied = true end
  part.asks, part.counts = asks, op ~= REFUND and op ~= PEEK and cost > 0
  parts[p] = part
end
if outside then return {-1, now} end
local unreadable_values = unreadable
say = function() end
log_entries = function() return {} end

local function charge_all(rule, is_denied)
  for _, h in ipairs(rule) do charge(h, is_denied) end
end

-- Refunds come first and count in any case.
for _, part in ipairs(parts) do
  if part.op == REFUND and part.cost > 0 then
    for _, rule in ipairs(look(part)) do
      for _, h in ipairs(rule) do refund(h) end
    end
  end
end

-- Each part is asked as if those before it were counted, whether these pass or not.
local left_before, lives_before = left, lives
left, lives = copy(left), copy(lives)
for _, part in ipairs(parts) do
  if part.op ~= REFUND then
    for r, rule in ipairs(look(part)) do
      if not rule.shadow then
        if asks and rule.exceeded then part.exceeded[r], denied = true, true end
        if part.counts then charge_all(rule, false) end
      end
    end
  end
end
left, lives = left_before, lives_before

local struck = {}
for _, part in ipairs(parts) do
  if part.counts and not part.banned then
    for r, rule in ipairs(look(part)) do
      if rule.shadow then
        -- A shadow rule sees each part by itself, whatever the step decides.
        if op == RECORD or not rule.exceeded then
          charge_all(rule, false)
        elseif rule.counts_denied then
          charge_all(rule, true)
        end
      elseif not denied then
        charge_all(rule, false)
      elseif part.exceeded[r] then
        if rule.counts_denied then charge_all(rule, true) end
        local record = rule.ban and rule.ban.key .. rule.ban.name
        if record and not struck[record] then
          struck[record] = true
          strike(rule.ban)
        end
      end
    end
  end
end

for _, at in ipairs(places) do
  local place = at.key .. at.name
  if left[place] then
    store(at.key, at.name, left[place], lives[place])
  elseif left[place] == false then
    delete(at.key, at.name)
  end
end
write_subjects()
unreadable = unreadable_values
return told(reply)
