local redis, struct, string, Q = redis, struct, string, ARGV[1]
local call, try, pack, unpack, sub, find, format =
  redis.call, redis.pcall, struct.pack, struct.unpack, string.sub, string.find, string.format
