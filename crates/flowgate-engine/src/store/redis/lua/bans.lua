-- The bans by hand that all nodes share.
--
-- KEYS   1 bans    a hash: the name of a target -> the ban; and `epoch`, `version`, `floor`, `bytes`
--        2 order   the names by the version that imposed the ban
--        3 ends    the names by the end of the ban
--        4 lifted  names by the version that lifted their ban; those up to version `floor` are forgotten
-- ARGV   time what ...           time: microseconds, for tests; empty: Redis's own
--        get epoch version floor most        what the caller has read, and how many bans it takes
--        set name id length bytes text max_bans max_bytes        length: microseconds
--        del name id                         an empty id stands for any
-- Reply  texts. get: now epoch from version floor whole more {name ban}: the changes after `from` up to
--        `version`; an empty ban was lifted. whole: 1 where the reading starts anew; more: 1 where it goes on
--        set: now epoch version done|bans|bytes end    del: now epoch version done|none
--
-- A ban is `bytes end id text`. Each change has a version of its own, and takes the same time for any number of bans.
-- The epoch is the id of the first ban, so a table that was lost and begun anew is not taken for the old one. A version
-- is the time of its change in microseconds, or one more than the last where that is not later. So a table that has lost
-- its last changes (a replica took over that had not got them) does not give their versions to other changes.

local bans, order, ends, lifted = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call, what = redis.call, ARGV[2]
local DROPPED_AT_ONCE, MOST_LIFTED = 8, 2000

local now, least
if ARGV[1] == '' then
  local t = call('TIME')
  now, least = t[1] * 1000000 + t[2], 0
else
  -- Tests bring the time along; their keys live for an hour of the real one at least.
  now, least = tonumber(ARGV[1]), 3600000
end

local function text(number) return string.format('%.0f', number) end

-- A key of another type counts as absent. An empty text was put there by a node that needs the key to exist while its
-- slot moves; anything else has taken the place of a part of the table, without which the other parts are of no use.
-- Keys are deleted one by one: while a slot moves, Redis refuses a command of several keys unless all exist.
local spoilt = false
for i = 1, 4 do
  local found = call('TYPE', KEYS[i]).ok
  if found ~= 'none' and found ~= (i == 1 and 'hash' or 'zset') then
    spoilt = spoilt or found ~= 'string' or call('STRLEN', KEYS[i]) > 0
    call('DEL', KEYS[i])
  end
end
local function drop_all()
  for i = 1, 4 do call('DEL', KEYS[i]) end
end
if spoilt then drop_all() end

local found = call('HMGET', bans, 'epoch', 'version', 'floor', 'bytes')
local epoch = found[1] or ''
local version, floor, bytes = tonumber(found[2] or 0), tonumber(found[3] or 0), tonumber(found[4] or 0)

local function save()
  call('HSET', bans, 'epoch', epoch, 'version', text(version), 'floor', text(floor), 'bytes', text(bytes))
end

-- The size, the end and the id of a ban. One that cannot be read has ended.
local function parts(ban)
  local size, ends_at, id = (ban or ''):match('^(%d+) (%d+) (%S+) ')
  return tonumber(size or 0), tonumber(ends_at or 0), id
end

local function remove(name, size)
  bytes = bytes - size
  call('HDEL', bans, name)
  call('ZREM', order, name)
  call('ZREM', ends, name)
end

local function drop_ended()
  local name = call('ZRANGEBYSCORE', ends, '-inf', text(now), 'LIMIT', 0, 1)[1]
  if not name then return false end
  local size = parts(call('HGET', bans, name))
  remove(name, size)
  return true
end

if what == 'get' then
  local known, from, known_floor, most = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local whole = known ~= epoch or from > version or (from < floor and known_floor ~= floor)
  if whole then from = 0 end
  local after = '(' .. text(from)
  local names = call('ZRANGEBYSCORE', order, after, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  local more = #names == 2 * most
  local upto = more and names[#names] or text(version)
  local reply = {text(now), epoch, text(from), upto, text(floor), whole and '1' or '0', more and '1' or '0'}
  for i = 1, #names, 2 do
    reply[#reply + 1] = names[i]
    reply[#reply + 1] = call('HGET', bans, names[i]) or ''
  end
  names = call('ZRANGEBYSCORE', lifted, after, upto)
  for i = 1, #names do
    reply[#reply + 1] = names[i]
    reply[#reply + 1] = ''
  end
  return reply
end

local result, end_of_ban = 'none', 0

if what == 'set' then
  local name, id, length, size = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
  local max_bans, max_bytes = tonumber(ARGV[8]), tonumber(ARGV[9])
  if epoch == '' then
    epoch = id
    drop_all()
  end
  local replaced, replaced_size = call('HGET', bans, name), 0
  if replaced then
    local ends_at
    replaced_size, ends_at = parts(replaced)
    -- One that has ended goes as any other that has.
    if ends_at <= now then
      remove(name, replaced_size)
      replaced, replaced_size = false, 0
    end
  end
  local function too_many() return call('ZCARD', order) + (replaced and 0 or 1) > max_bans end
  local function too_much() return bytes - replaced_size + size > max_bytes end
  local dropped = 0
  while (dropped < DROPPED_AT_ONCE or too_many() or too_much()) and drop_ended() do dropped = dropped + 1 end
  if too_many() then
    result = 'bans'
  elseif too_much() then
    result = 'bytes'
  else
    result, version, end_of_ban = 'done', math.max(version + 1, now), now + length
    if replaced then remove(name, replaced_size) end
    bytes = bytes + size
    call('HSET', bans, name, text(size) .. ' ' .. text(end_of_ban) .. ' ' .. id .. ' ' .. ARGV[7])
    call('ZADD', order, text(version), name)
    call('ZADD', ends, text(end_of_ban), name)
    call('ZREM', lifted, name)
  end
  save()
  if result == 'done' then
    -- All of it goes a minute after the last ban has ended.
    local ttl = math.max(call('PTTL', bans), math.floor(length / 1000) + 60000, least)
    for i = 1, #KEYS do call('PEXPIRE', KEYS[i], text(ttl)) end
  end
elseif what == 'del' then
  local name, id = ARGV[3], ARGV[4]
  local ban = call('HGET', bans, name)
  local size, ends_at, found_id
  if ban then size, ends_at, found_id = parts(ban) end
  if ban and (id == '' or id == found_id) then
    remove(name, size)
    if ends_at > now then
      result, version = 'done', math.max(version + 1, now)
      call('ZADD', lifted, text(version), name)
      local ttl = call('PTTL', bans)
      if ttl > 0 then call('PEXPIRE', lifted, text(ttl)) end
      if call('ZCARD', lifted) > MOST_LIFTED then
        floor = tonumber(call('ZRANGE', lifted, MOST_LIFTED / 2 - 1, MOST_LIFTED / 2 - 1, 'WITHSCORES')[2])
        call('ZREMRANGEBYRANK', lifted, 0, MOST_LIFTED / 2 - 1)
      end
    end
    save()
  end
end

return {text(now), epoch, text(version), result, text(end_of_ban)}
