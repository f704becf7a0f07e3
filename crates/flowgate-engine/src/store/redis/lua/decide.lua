
read_time(A[2])
reply[1] = now
cost, asks = A[3] + 0, head ~= 'record' and head ~= 'refund'
units = math.min(cost, 1000000000000)

-- ARGV: op, time, cost, number of rules; the rules.
local rules, denied, banned = {}, head == 'deny', false
for r = 1, A[4] + 0 do
  local rule = read_rule()
  if not rule then return {-2} end
  if rule.exceeded and not rule.shadow then denied = true end
  if rule.ban and now < rule.ban.ends then banned = true end
  rules[r] = rule
end
if outside then return {-1, now} end
if head == 'peek' or (banned and asks) then return told(reply) end

for _, rule in ipairs(rules) do
  local passes = not denied
  if rule.shadow then passes = not rule.exceeded end
  local counts_denied = rule.exceeded and rule.counts_denied
  for _, h in ipairs(rule) do
    if head == 'refund' then
      refund(h)
    elseif head == 'record' or head == 'check' or passes then
      charge(h, false)
    elseif counts_denied then
      charge(h, true)
    end
  end
  if asks and rule.ban and rule.exceeded then strike(rule.ban) end
end
return told(reply)
