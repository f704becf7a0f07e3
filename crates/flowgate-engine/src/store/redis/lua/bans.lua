-- The bans by hand that all nodes share: a hash from whom a ban is on to the ban.
--
-- KEYS   the hash; its field `v` counts changes, `i` numbers bans
-- ARGV   what known ...: what is to be done, and the version that the caller has read
--        get | set name until text most now | del name...     until, now: milliseconds
-- Reply  {version, result, name, text, name, text...}, all as texts; no bans where the version is the known one.
--        result: of `set` the ban's number, or `full`; of `del` how many there were.

local key, what, known = KEYS[1], ARGV[1], ARGV[2]
local result = '0'

-- A text begins with the ban's number and its end in milliseconds.
local function drop_ended(now)
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local ends = all[i + 1]:match('^%d+ (%d+) ')
    if ends and tonumber(ends) <= now then redis.call('HDEL', key, all[i]) end
  end
end

if what == 'set' then
  local name, ends, text, most, now = ARGV[3], tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
  local is_new = redis.call('HEXISTS', key, name) == 0
  if is_new and redis.call('HLEN', key) >= most + 2 then drop_ended(now) end
  if is_new and redis.call('HLEN', key) >= most + 2 then
    result = 'full'
  else
    local id = string.format('%.0f', redis.call('HINCRBY', key, 'i', 1))
    redis.call('HSET', key, name, id .. ' ' .. ARGV[4] .. ' ' .. text)
    redis.call('HINCRBY', key, 'v', 1)
    -- It goes with the last of its bans. A version that began anew would not be noticed, so it stays a day longer
    -- than any node could sleep.
    local ttl = redis.call('PTTL', key)
    redis.call('PEXPIRE', key, string.format('%.0f', math.max(ttl, ends - now + 86400000)))
    result = id
  end
elseif what == 'del' then
  local lifted = 0
  for i = 3, #ARGV do lifted = lifted + redis.call('HDEL', key, ARGV[i]) end
  if lifted > 0 then redis.call('HINCRBY', key, 'v', 1) end
  result = tostring(lifted)
end

local version = redis.call('HGET', key, 'v') or '0'
local reply = {version, result}
if version ~= known then
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    if all[i] ~= 'v' and all[i] ~= 'i' then
      reply[#reply + 1] = all[i]
      reply[#reply + 1] = all[i + 1]
    end
  end
end
return reply
