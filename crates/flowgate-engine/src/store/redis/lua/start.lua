local call, try, pack, unpack, floor, sub, find, format =
  redis.call, redis.pcall, struct.pack, struct.unpack, math.floor, string.sub, string.find, string.format
local Q = ARGV[1]

