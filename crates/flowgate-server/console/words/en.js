// The words of the console in English. words/zh.js has the same keys; a test compares them.

export default {
  // names of pages
  "page.overview": "Overview", "page.live": "Live", "page.rules": "Rules", "page.subject": "Subject", "page.bans": "Bans",
  "page.edit": "Editor", "page.try": "Try", "page.store": "Store", "page.koala": "Koala",
  "pages": "pages", "menu": "menu", "skip": "skip to content", "draft": "draft", "range": "range",
  "range.5m": "5m", "range.1h": "1h", "range.24h": "24h",
  "theme.system": "Theme: system", "theme.light": "Theme: light", "theme.dark": "Theme: dark",
  "keys": "Keys", "logOut": "Log out", "viewOnly": "view only", "missing.title": "No such page", "missing.more": "This address leads nowhere.",

  // words of every page
  "Allowed": "Allowed", "Denied": "Denied", "allowed": "allowed", "denied": "denied", "shadow": "shadow", "paused": "paused", "ban": "ban", "banned": "banned",
  "perSecond": "/s", "rate": "{rate}/s", "rate.minute": "{rate} in the last minute", "rule": "rule", "whom": "subject", "times": "times", "last": "last", "time": "time", "since": "since {at}", "sinceHead": "since", "lately": "the last two minutes", "until": "until {at}",
  "ago": "{length} ago", "by": "by", "limits": "limits", "action": "action", "action.deny": "deny", "action.allow": "allow", "field": "field", "value": "value", "atOnce": "at once", "never": "never", "nothing": "nothing",
  "wants": "wants", "has": "has", "inspect": "inspect", "inspect.whom": "Inspect {whom}", "open.rule": "Open {rule}", "open.store": "Open store",
  "copy": "copy", "copied": "copied", "cancel": "Cancel", "close": "Close", "seen": "Seen", "undo": "Undo", "fold": "fold", "unfold": "unfold", "earlier": "earlier", "later": "later",
  "listComma": ", ", "listAnd": ", ", "colon": ": ", "stop": ".", "same": "The same as", "passesIn": "passes in {wait}", "subject.everyone": "everyone",
  "length.s": "{n} s", "length.min": "{n} min", "length.h": "{n} h", "length.1m": "1 min", "length.5m": "5 min", "length.10m": "10 min", "length.1h": "1 h", "length.8h": "8 h", "length.24h": "24 h", "length.1d": "1 day",

  // states
  "state.ready": "ready", "state.degraded": "degraded", "state.draining": "draining", "state.starting": "starting", "state.away": "away", "missing.redis": "redis away", "state.broken": "rules broken", "state.recording": "recording",
  "away.again": "again in", "away.title": "No answer since {at}. What you see is {age} s old.", "away.next": "Next attempt in {s} s.", "away.now": "Try now",
  "away.write": "Nothing can be written until it answers.", "away.draft": "Nothing can be written until it answers; your draft of the rules is kept.",
  "restarted.title": "The server has started anew at {at}.", "restarted.more": "Counts and charts begin anew; what memory held is gone.", "restarted.durable": "Charts begin anew; counters and bans are those of the journal.",
  "error.forbidden": "Not allowed:", "error.again": "Again in {s} s.", "error.unknown": "No answer: it is not known whether it was done. Look before you try again.",
  "degraded.title": "Redis has not answered since {at}; this node decides alone.", "degraded.unanswered": "{n} {n|request|requests} unanswered.",

  // login
  "login": "Log in", "login.token": "admin_token or view_token of this server", "login.wrong": "This token is not right.", "login.tooMany": "Too many wrong tokens. Again in {s} s.",
  "login.unanswered": "The server does not answer.", "login.ended": "Your login has ended. The page below is kept.", "login.once": "The token is sent once and forgotten.", "login.find": "This prints it:",
  "login.plain": "You came over plain HTTP: whoever sits on the way can read the token. Reach this page over TLS, or from the machine itself.",

  // keys
  "keys.list": "this list", "keys.search": "search", "keys.chart": "walk a chart", "keys.pause": "pause Live", "keys.finding": "next finding", "keys.publish": "publish", "keys.leave": "leave the text of the editor", "keys.letters": "single letters are keys",

  // charts
  "chart.bar": "a bar is {length}; the last one is not over yet", "chart.table": "as a table", "chart.drawn": "as a chart", "chart.perSecond": "per second", "chart.ownScale": "per second, own scale",
  "chart.shadow": "shadow would deny", "chart.marks": "what happened", "chart.keys": "Arrow keys walk through it.",
  "mark.published": "v{version} published", "mark.loaded": "rules loaded", "mark.restarted": "started: counts begin here", "mark.paused": "rules paused", "mark.resumed": "pause ended", "mark.outage": "redis away since {at}",

  // overview
  "overview.asks.one": "{rule} asks {whom} for {action}, {rate} since {at}", "overview.asks.more": "{rule} asks {whom} and {more} more for {action}, {rate} since {at}", "overview.asks.mostly": "{rule} asks mostly {whom} for {action}, {rate} since {at}", "overview.actions": "other actions",
  "overview.paused": "Paused: no rule denies until {at}", "overview.paused.nobody": "Nobody would be denied without the pause.", "overview.paused.would": "{rate} would be denied without the pause.", "overview.banned": "{whom} {n|is|and others are} banned by hand", "overview.banned.rate": "Bans by hand deny {rate}.",
  "overview.denies.one": "{rule} denies {whom}, {rate} since {at}", "overview.denies.more": "{rule} denies {whom} and {more} more, {rate} since {at}", "overview.denies.mostly": "{rule} denies mostly {whom}, {rate} since {at}", "overview.loud": "{rule} denies {rate}", "overview.loud.keys": "Limits that callers bring deny {rate}",
  "overview.more": "{all} {n|time|times} in {minutes} min; of the last {lately}, {top} are of {whom}.", "overview.more.top": "{all} {n|time|times} in {minutes} min, {top} of them of {whom}.", "overview.more.one": "{all} {n|time|times} in {minutes} min, all of {whom}.", "overview.keys": "keys of callers", "overview.others": "other rules", "overview.next": "Next: {rule}, {rate}.", "overview.onset": "{rule}, since {at}",
  "overview.part": "Denied: {rate}, {share} of all, by {rule}", "overview.part.most": "Denied: {rate}, {share} of all, most by {rule}", "overview.part.unnamed": "Denied: {rate}, {share} of all",
  "overview.well": "All well: {rate} denied, {share} of all", "overview.well.nobody": "All well: nobody is denied", "overview.well.most": "Most by {rule}: {whom}, {count} {n|time|times} in the last two minutes.", "overview.well.none": "Nobody was denied lately.", "overview.well.share": "No rule denies more than a tenth of what it sees.",
  "overview.turn.start": "The server started at {at}: rates are means of the time since then.", "overview.turn.pause": "The pause began at {at}. Rates are means of the last minute, so they still count denials from before it.", "overview.turn.resume": "The pause ended at {at}. Rates are means of the last minute, so they still count requests from before that.",
  "overview.ofAll": "{share} of {rate}, last minute", "overview.unasked": "nothing in the last minute", "overview.pastShare": "in {range}: {past}", "overview.deniedShare": "{share}; in {range}: {past}", "overview.own": "Asked for {action}", "overview.shadow": "Shadow would deny", "overview.shadow.note": "nobody was denied by it",
  "overview.p50": "{listener}; half within {p50} ms", "overview.unmeasured": "nothing measured yet", "overview.counters": "Counters", "overview.of": "of {most}", "overview.memory": "evicted {evicted}, refused {refused}",
  "overview.chart": "Allowed and denied", "overview.most": "Denied most", "overview.most.foot": "On this node. since: denied in every minute since then. ≤: the count may be too high, never too low.", "overview.most.none": "Nobody was denied since {at}.",
  "overview.rules": "Rules that deny most", "overview.rules.period": "last {range}, every {every}", "overview.rules.none": "No rule has denied in this range.", "overview.share": "of all", "overview.latency": "Latency, ms", "overview.listener": "listener", "overview.store": "store",

  // start card
  "start.waiting": "{count} {n|rule is|rules are} in force, and nothing was asked yet", "start.waiting.more": "Who is denied, and by which rule, stands here once requests come.", "start.waiting.ask": "A request that {rule} counts",
  "start.title": "Send a request, and watch it be denied", "start.what": "Flowgate decides, for any event, whether it may happen now. Here a key of yours may do something five times a minute.",
  "start.ask": "Ask", "start.key": "key", "start.limit": "limit", "start.send": "Send", "start.again": "Send again", "start.sent": "sent {n} {n|time|times}", "start.left": "{left} of {most} left",
  "start.allowed": "Allowed:", "start.allowed.more": "{left} more may pass now. Send again.", "start.denied": "Denied:", "start.denied.more": "{limit} is used up. It passes in {wait}.",
  "start.program": "The same from a program", "start.rule": "Make it a rule", "start.rule.file": "A rule knows whom it counts, so that callers send what happens and not the limit. Add this to the file, in the editor.",
  "start.rule.noFile": "A rule knows whom it counts, so that callers send what happens and not the limit. This server was started without a file: save this as {file}, and start with it.",

  // rules
  "rules.edit": "Edit", "rules.filter": "Filter by any word", "rules.denied": "denied now", "rules.order": "counts of 5 min, in the order of the file, which decides; in force since {at}", "rules.found": "{n} of {all}",
  "rules.matches": "matches, counts by", "rules.never": "no decision yet", "rules.bans": "bans", "rules.would": "would", "rules.nothing": "No rule has these words.",
  "rules.broken": "The file is wrong since {at}. In force are the rules of {loaded}; nothing has changed for anyone.", "rules.mend": "Mend it in the editor",
  "rules.none": "There are no rules", "rules.none.file": "Add one in the editor.", "rules.none.noFile": "This server was started without a file. Start it with one:",

  // one rule
  "rule.asked": "Requests, last {range}", "rule.would": "Would have denied", "rule.would.note": "last {range}; nobody was denied by it", "rule.share": "{share} of what it saw", "rule.bans": "Bans started", "rule.sinceStart": "since the start", "rule.chart": "Over time",
  "rule.denies": "Denies {rate} since {at}, {subjects} {n|subject|subjects}", "rule.denied": "Denied {denied} of {asked} in {range}", "rule.shadow": "Would have denied {denied} {n|time|times} in {range}", "rule.denies.own": "Asks for {action}, {rate} since {at}, {subjects} {n|subject|subjects}", "rule.denied.own": "Asked for {action}: {denied} of {asked} in {range}", "rule.quiet": "Lets everybody pass", "rule.unmatched": "Has decided nothing in {range}",
  "rule.each": "Each {by}", "rule.all": "All together", "rule.byCase": "Limits by case.", "rule.atOnce": "Decides at once: {action}.",
  "rule.ban.sentence": "After {after} denials within {within} it bans: {lengths}.", 
  "rule.edit": "Edit here", "rule.raise": "Raise the count to…", "rule.makeShadow": "Make it a shadow", "rule.endShadow": "End the shadow", "rule.raise.title": "Raise the count of {rule}", "rule.raise.now": "Its first limit is {limit}. The change is a draft; nothing is in force before you publish it.", "rule.raise.count": "Count", "rule.raise.do": "Make a draft",
  "rule.list.denied": "Denied", "rule.list.own": "Asked for {action}", "rule.list.shadow": "Would have been denied", "rule.list.asked": "Most requests", "rule.list.none": "Nobody in the last two minutes.", "rule.list.unasked": "Nobody in the last two minutes.", "rule.of": "{subjects} {n|subject|subjects} in the last two minutes",
  "rule.text": "Text", "rule.place": "{n} of {all}; rules above it decide before it", "rule.text.elsewhere": "Its text is in another file, and is edited on the server.", "rule.gone": "There is no rule {rule} in force", "rule.gone.more": "It was renamed or removed. Its versions are in the history of the",
  "limit.sliding": "{count} in any {period}", "per.unit": "per {unit}", "per.length": "per {length}", "limit.fixed": "{count} {per}", "limit.fixedZone": "{count} {per} of {zone}", "limit.after": "the first {free} freely, then {rest}", "limit.bucket": "{count} {per}, evenly", "limit.bucketBurst": "{count} {per}, at most {burst} at once",
  "unit.s": "second", "unit.min": "minute", "unit.h": "hour", "unit.day": "day", "unit.week": "week", "unit.month": "month", "unit.year": "year",

  // subject
  "subject.ask": "Ask", "subject.cost": "cost", "subject.gate": "as behind the gateway", "subject.watch": "watch, 2 s", "subject.addField": "+ field", "subject.valueOf": "value of {field}", "subject.copyLink": "copy link with values", "subject.linkCopied": "The link is copied. It holds the values.",
  "subject.empty": "Why is a request allowed or denied?", "subject.empty.more": "Fill in its fields, or paste act=reply user=42 or JSON into one of them. Asking counts nothing.", "subject.unknown": "Fill in {fields}, and ask", "subject.unknown.more": "{rule} matches no request without {n|this field|these fields}.", "subject.unkept": "Headers and queries of denied requests are not kept.", "subject.rules": "rules", "subject.ban": "Ban by hand…", "subject.reset": "Reset…",
  "why.denied": "Denied by {rule}, passes in {time}", "why.banned": "Denied by {rule}: banned, passes in {time}", "why.ban": "Denied by a ban by hand, passes in {time}", "why.never": "Denied by {rule}, and no wait helps", "why.asks": "{rule} asks for {action}", "why.asksUntil": "{rule} asks for {action}, passes in {time}", "why.deniedAtOnce": "Denied by {rule}, at once",
  "why.allowed": "Allowed", "why.allowed.left": "Allowed: {left} of {most} left under {rule}", "why.allowedBy": "Allowed by {rule}", "why.unmatched": "Allowed: no rule matches", "why.asOf": "As of {at}.", "why.until": "Until {at}.", "why.action": "The rule asks for {action}.", "why.paused": "{rule}, which is paused, would have denied it.", "why.shadow": "The shadow rule {rule} would have denied it.", "why.degraded": "The shared store is away: this node decides alone.", "why.delay": "It is held for {time} before it goes.",
  "front.allowed": "lets it pass", "front.denied": "denies it by {rule}", "group.decided": "Decided", "group.matched": "Matched", "group.matched.more": "and would let it pass", "group.unreached": "Not reached", "group.unreached.more": "a rule above decided at once", "group.unreached.ban": "the ban decided first", "group.unreached.none": "none: no rule above decided at once", "group.unmatched": "Not matched", "group.unmatched.more": "{n} {n|rule|rules}, each with the first condition that failed", "group.none": "none",
  "limit.left": "{left} of {most} left", "limit.next": "next in {time}", "limit.reset": "all in {time}",
  "reset.title": "Reset the counters of this request", "reset.what": "These rules forget what they have counted for it, and the bans they imposed:", "reset.do": "Reset", "reset.done": "The counters are reset.",

  // bans
  "bans.add": "Ban…", "bans.search": "Whom, rule or reason", "bans.origin": "origin", "bans.all": "all", "bans.rules": "by rules", "bans.byHand": "bans by hand", "origin.hand": "by hand", "bans.whom": "whom", "bans.originHead": "origin", "bans.left": "time left", "bans.until": "until", "bans.reason": "reason",
  "bans.lift": "lift", "bans.lift.of": "lift the ban of {whom}", "bans.lift.this": "Lift this ban", "bans.ofRule": "Bans of this rule", "bans.lifted": "Lifted the ban of {whom}.", "bans.again": "Ban again", "bans.page": "{from} to {to} of {all}",
  "bans.none": "Nobody is banned", "bans.none.view": "A rule with a ban does it, or an admin login.", "bans.none.more": "A rule with a ban does it, or you:", "bans.nothing": "No ban is found.", "bans.incomplete": "This list is incomplete.", "bans.incomplete.more": "The shared store is away; these are the bans that this node knows.",
  "bans.liftAll": "Lift all found…", "bans.liftAll.type": "Type {n} to lift that many", "bans.liftAll.do": "Lift {count} {n|ban|bans}", "bans.liftAll.done": "{n} of {all}", "bans.liftedAll": "Lifted {count} {n|ban|bans}.",
  "ban.title": "Ban by hand", "ban.field": "Field", "ban.value": "Value or network", "ban.for": "For", "ban.other": "other…", "ban.length": "length", "ban.reason": "Reason, for whoever reads the list", "ban.what": "From the next request on.", "ban.what.shared": "Holds on all nodes that share the store.", "ban.what.memory": "Holds on this node.",
  "ban.do": "Ban for {length}", "ban.do.many": "Ban {n} addresses for {length}", "ban.done": "Banned {whom}.", "ban.everywhere": "everywhere",
  "ban.wide": "A /{prefix} holds {n} addresses.", "ban.wide.more": "That is wider than /{least}: is it meant?", "ban.proxy": "This holds a trusted proxy.", "ban.proxy.more": "All requests through it would be denied.", "ban.unused": "No rule uses the field {field}.", "ban.unused.more": "The ban holds for requests that bring it.",

  // pause
  "pause.open": "Pause all rules…", "pause.dialog": "Pause all rules", "pause.what": "For a while no rule of this node denies. Requests are still counted; bans by hand still hold.", "pause.begin": "Pause for {length}", "pause.title": "All rules are paused until {at}, for {left} more: no rule denies.", "pause.more": "Requests are still counted. Bans by hand still hold.", "pause.end": "End the pause", "pause.ended": "The pause has ended.",

  // editor
  "editor.text": "text of the file", "editor.lines": "{n} {n|line|lines}", "editor.draft": "draft on v{version}, kept in this tab", "editor.draft.new": "draft, kept in this tab", "editor.inForce": "v{version}, in force", "editor.rules": "{n} {n|rule|rules} here", "editor.noFile": "This server was started without a file", "editor.noFile.more": "Save this as {file}, and start with it.",
  "editor.discard": "discard draft", "editor.discarded": "The draft is discarded.", "editor.moved": "The file has changed under your draft.", "editor.moved.more": "Somebody has published, or edited it on disk. Your draft is whole; take their parts over before you publish.", "editor.resolve": "Compare",
  "editor.difference": "Difference to v{version}", "editor.difference.file": "Difference to the file", "editor.published": "v{version} is in force with {n} {n|rule|rules}. Used counters are kept.", "editor.published.waits": "The rules of v{version} are in force. Some settings wait for a restart.", "editor.rollBack": "roll back to v{version}",
  "step.check": "Check", "step.difference": "Difference", "step.try": "Try", "step.publish": "Publish",
  "publish": "Publish…", "publish.title": "Publish the draft", "publish.note": "Note, for the history", "publish.what": "The rules come into force at once, all of them or none; used counters are kept.", "publish.waits": "{names} {n|waits|wait} for a restart of the server.", "publish.waits.more": "The rules are in force. {n|This setting is|These settings are} in the file, and the server reads {n|it|them} at its next start.", "publish.do": "Publish", "publish.view": "This login may only look.", "publish.away": "The server is away.", "publish.unchanged": "Nothing is changed.", "publish.mistake": "Publish waits for the mistake in line {line}.", "publish.wrong": "Publish waits for a mistake.", "publish.checking": "Checking…",
  "findings": "Findings", "findings.count": "{errors} {errors|mistake|mistakes}, {warnings} {warnings|warning|warnings}", "findings.next": "next", "findings.waits.more": "The rules do not wait.", "findings.none": "No mistakes.", "findings.checking": "Checking…", "findings.file": "Type, and each mistake is shown here with its place and a hint.",
  "diff.same": "No line differs.", "diff.skipped": "{n} {n|line|lines} the same", "diff.whole": "whole file", "diff.fold": "changes only", "diff.added": "added:", "diff.removed": "removed:",
  "history": "History", "author.token": "admin token", "author.file": "found in the file", "history.version": "version", "history.published": "published", "history.before": "before {at}", "history.note": "note", "history.size": "size", "history.inForce": "in force", "history.again": "v{version} again", "history.difference": "difference", "history.back": "roll back", "history.all": "all {n}", "history.none": "Nothing was published through the server yet.", "history.compared": "Difference to v{version}",
  "history.back.title": "Roll back to v{version}", "history.back.change": "What this changes", "history.back.more": "The old text becomes a new version. Its rules come into force at once; the server reads most other settings at its next start.", "history.back.do": "Roll back to v{version}", "history.rolledBack": "The rules of v{version} are in force as v{next}.",
  "conflict.title": "The file has changed since your draft began.", "conflict.more": "Take their parts over, or leave them out. Nothing of yours is lost, and nothing of theirs is overwritten unseen.", "conflict.parts": "Parts", "conflict.missing": "{n} {n|part|parts} to decide", "conflict.ready": "all decided", "conflict.takeAll": "Take all of theirs", "conflict.done": "Continue with this text",
  "conflict.base": "base", "conflict.theirs": "theirs", "conflict.yours": "yours", "conflict.take": "take theirs", "conflict.keep": "keep mine", "conflict.both": "both", "conflict.kind.yours": "changed by you", "conflict.kind.theirs": "changed by them", "conflict.kind.both": "both made the same change", "conflict.kind.conflict": "changed by both",

  // try
  "try.off": "Recording is switched off by console.sample. A log can be tried on the command line:", "try.view": "Recording needs an admin login.", "try.nothing": "Nothing is recorded.", "try.hint": "For {limit} in {rule}, the longest period that a sample can judge, record {length} at least: the counters begin empty.", "try.hint.beyond": "For {limit} in {rule} no sample is long enough; {command} tries it on a log.", "try.busy": "Trying the draft on the sample…", "try.empty": "Try a draft on recorded traffic", "try.empty.more": "Record some minutes of traffic; then the draft is tried on it. What is kept: the fields of requests, without headers and queries, in memory; forgotten after 30 minutes.", "try.noDraft": "There is no draft: this compares the rules in force with themselves. Change something in the",
  "try.sample": "Sample: {length}, {from} to {to}, {requests} requests, {part}", "try.recording": "Recording: {length}, {requests} requests, {part}", "try.recording.more": "When the recording ends, the rules are tried on it.", "try.allOfThem": "all of them", "try.oneIn": "one {by} in {n}", "try.bytes": "{used} of {most}", "try.length": "length", "try.record": "Record", "try.again": "Record anew", "try.stop": "Stop", "try.forget": "Forget",
  "try.denied": "The draft would have denied {n} more, of {subjects} {count|subject|subjects}", "try.passed": "The draft would have let {n} more pass", "try.same": "The draft would have decided the same", "try.more": "Denied: {now} in force, {then} under the draft; {passed} newly passed.", "try.back": "Back to the draft",
  "try.draft": "denied by the draft", "try.inForce": "denied in force", "try.curve": "{rule}: other counts", "try.requests": "requests denied", "try.subjects": "subjects denied", "try.configured": "in force: {count}", "try.draftCount": "draft: {count}", "try.spares": "spares 99.9 %: {count}", "try.advice": "A count of {count} would have spared 99.9 % of subjects.",
  "try.few": "The sample has {count} {n|subject|subjects} of this rule: too few for advice.", "try.many": "The sample has {count} {n|subject|subjects} of this rule.",
  "try.byRule": "By rule", "try.byRule.foot": "Both sets of rules are run on the sample with counters that begin empty: these are not the denials that happened.", "try.unkept": "Headers and queries are not recorded:", "try.head.now": "in force", "try.head.draft": "draft", "try.head.newly": "newly denied", "try.head.passed": "newly passed", "try.head.spares": "spares 99.9 %", "try.new": "new", "try.cannot": "What this sample cannot judge", "try.longer": "Longer than the sample:", "try.warmUp": "The beginning: counters were empty, so that too few were denied.", "try.newly": "Newly denied", "try.of": "of {n}", "try.nobody": "Nobody.",

  // live
  "live.denied": "denied", "live.denied.minute": " in the last minute", "live.any": "any rule", "live.filter": "Any word of these rows", "live.nothing": "No row has these words.", "live.pause": "Pause", "live.go": "Go on", "live.go.new": "Go on, {n} new", "live.foot": "Newest first. {rows} {n|row|rows}, {lost} lost. ×8: one row stands for eight.", "live.enter": "A click or Enter inspects.", "live.by": "by", "live.wait": "passes in", "live.stands": "stands for", "live.fields": "other fields", "live.lost": "{lost} lost: they came faster than this page asked", "live.none": "Nobody was denied since {at}",
  "by.limit": "limit", "by.rule": "rule", "by.ban": "ban", "by.hand": "by hand",

  // store
  "store.memory": "Counters are in memory", "store.redis": "Redis answers", "store.away": "Redis is away since {at}", "store.node": "This node only.", "store.keys": "in this node's memory", "store.memoryUsed": "Memory", "store.of": "{share} of {most}", "store.evicted": "Evicted", "store.inUse": "{n} of them in use", "store.refused": "Refused", "store.bansRefused": "{n} bans refused", "store.coarsened": "Coarsened", "store.coarsened.note": "logs that became coarser",
  "store.servers": "Redis, as this node sees it", "store.server": "server", "store.state": "state", "store.more": "Requests: {unanswered} unanswered, {degraded} decided without Redis, {hits} answered by the deny cache. Outages: {outages}.", "store.connections": "Connections", "store.connectionsHead": "connections", "store.open": "open", "store.cap": "At most {n} together.", "store.refusedMore": "{refused} refused, {unauthorized} without a right token.", 
  "store.node.title": "Node", "store.node.name": "name", "store.started": "started", "store.uptime": "up for", "store.rules": "rules", "store.reloads": "reloads", "store.reloads.n": "{ok}, {failed} failed", "store.grafana": "For all nodes: Prometheus and the Grafana dashboard in {file}.", "store.settings": "Settings in force", "store.secrets": "Secrets are hidden.",

  // koala
  "koala.broken": "The rule file is wrong; the rules before it are in force.", "koala.number": "rule", "koala.line": "line", "koala.method": "method", "koala.conditions": "conditions", "koala.time": "time", "koala.count": "count", "koala.result": "result", "koala.passed": "passed today", "koala.refused": "refused today", "koala.check": "Check a text", "koala.check.do": "Check", "koala.right": "No mistakes.", "koala.toml": "As TOML",
};
