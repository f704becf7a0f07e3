local call, pack, unpack, floor, sub = redis.call, struct.pack, struct.unpack, math.floor, string.sub
local A = ARGV
