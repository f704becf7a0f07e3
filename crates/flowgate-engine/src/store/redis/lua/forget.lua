
-- Forgets counters of a subject.
-- KEYS   the subject's
-- ARGV   cells: the time, the names
-- Reply  how many of them there were

read_time(A[1])
local forgotten = 0
for cell = 2, #A do
  local name = name_at(cell)
  if text_at(KEYS[1], name) then forgotten = forgotten + 1 end
  drop(KEYS[1], name)
end
write_subjects()
return forgotten
