local call, try, pack, unpack, floor, sub = redis.call, redis.pcall, struct.pack, struct.unpack, math.floor, string.sub
local A, head = ARGV, ARGV[1]
