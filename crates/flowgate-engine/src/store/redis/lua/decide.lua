
-- The long way.
read_time(A[2])
reply[1] = now
op, cost = A[1], A[3]
asks = op ~= RECORD and op ~= REFUND
units = math.min(cost, 1000000000000)

-- Cells: op, time, cost, number of rules; the rules.
local rules, denied, banned = {}, op == DENY, false
for r = 1, A[4] do
  local rule = read_rule()
  if not rule then return {-2} end
  if rule.exceeded and not rule.shadow then denied = true end
  if rule.ban and now < rule.ban.ends then banned = true end
  rules[r] = rule
end
if outside then return {-1, now} end
if op == PEEK or (banned and asks) then return told(reply) end

for _, rule in ipairs(rules) do
  local passes = not denied
  if rule.shadow then passes = not rule.exceeded end
  local counts_denied = rule.exceeded and rule.counts_denied
  for _, h in ipairs(rule) do
    if op == REFUND then
      refund(h)
    elseif op == RECORD or op == CHECK or passes then
      charge(h, false)
    elseif counts_denied then
      charge(h, true)
    end
  end
  if asks and rule.ban and rule.exceeded then strike(rule.ban) end
end
write_subjects()
return told(reply)
