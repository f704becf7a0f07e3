// 控制台的中文文案。键与 words/en.js 相同，由测试比对。

export default {
  // 页面名
  "page.overview": "概览", "page.live": "实时", "page.rules": "规则", "page.subject": "主体", "page.bans": "封禁",
  "page.edit": "编辑", "page.try": "试运行", "page.store": "存储", "page.koala": "Koala",
  "pages": "页面", "menu": "菜单", "skip": "跳到正文", "draft": "草稿", "range": "时间范围",
  "range.5m": "5 分钟", "range.1h": "1 小时", "range.24h": "24 小时",
  "theme.system": "主题：跟随系统", "theme.light": "主题：浅色", "theme.dark": "主题：深色",
  "keys": "快捷键", "viewOnly": "只读", "logOut": "退出登录", "leave.title": "仍有草稿，确定退出？", "leave.what": "规则草稿尚未发布，退出登录后会丢失。草稿位于：", "leave.elsewhere": "另有 {n} 个标签页中的规则草稿尚未发布，退出登录后也会丢失。", "leave.do": "放弃草稿并退出", "missing.title": "没有这个页面", "missing.more": "这个地址没有对应的页面。",

  // 通用
  "Allowed": "放行", "Denied": "拒绝", "allowed": "放行", "denied": "拒绝", "shadow": "影子", "paused": "已暂停", "ban": "封禁", "banned": "封禁中",
  "perSecond": "/秒", "rate": "每秒 {rate} 次", "rate.minute": "最近一分钟平均{rate}", "rule": "规则", "whom": "主体", "times": "次数", "last": "最近一次", "time": "时间", "since": "自 {at} 起", "sinceHead": "始于", "lately": "最近两分钟", "until": "至 {at}",
  "ago": "{length}前", "by": "按", "limits": "限额", "action.deny": "拒绝", "action.allow": "放行", "action": "动作", "field": "字段", "value": "值", "atOnce": "匹配即生效", "never": "永不放行", "nothing": "无",
  "wants": "要求", "has": "实际为", "inspect": "查看", "inspect.whom": "查看 {whom}", "open.rule": "打开 {rule}", "open.store": "查看存储", "open.bans": "查看封禁", "inspect.of": "查看 {whom}", "ban.of": "封禁 {whom}",
  "copy": "复制", "copied": "已复制", "cancel": "取消", "close": "关闭", "seen": "知道了", "undo": "撤销", "fold": "收起", "unfold": "展开", "earlier": "上一页", "later": "下一页",
  "listComma": "，", "listAnd": "、", "colon": "：", "stop": "。", "same": "等同于", "passesIn": "还需等待 {wait}", "subject.everyone": "所有请求",
  "length.s": "{n} 秒", "length.min": "{n} 分钟", "length.h": "{n} 小时", "length.1m": "1 分钟", "length.5m": "5 分钟", "length.10m": "10 分钟", "length.1h": "1 小时", "length.8h": "8 小时", "length.24h": "24 小时", "length.1d": "1 天",

  // 状态
  "state.ready": "就绪", "state.degraded": "降级", "state.draining": "正在退出", "state.starting": "启动中", "state.away": "失联", "missing.redis": "Redis 失联", "state.broken": "规则有误", "state.recording": "录制中",
  "away.again": "重试倒计时", "away.title": "自 {at} 起没有响应，当前显示的是 {age} 秒前的数据。", "away.next": "{s} 秒后重试。", "away.now": "立即重试",
  "away.write": "恢复之前无法写入。", "away.draft": "恢复之前无法写入；规则草稿已保留。",
  "restarted.title": "服务端已于 {at} 重启。", "restarted.more": "计数与图表从头开始，原来内存中的内容已丢失。", "restarted.durable": "图表从头开始；计数器与封禁已从日志文件恢复。",
  "error.forbidden": "没有权限：", "error.again": "请在 {s} 秒后重试。", "error.unknown": "没有收到响应，无法确定操作是否已执行。请先核实，再重试。",
  "degraded.title": "Redis 自 {at} 起没有响应，本节点正在独立判定。", "degraded.unanswered": "{n} 个请求未得到响应。",

  // 登录
  "login": "登录", "login.token": "本服务端的 admin_token 或 view_token", "login.wrong": "token 不正确。", "login.tooMany": "错误次数过多，请在 {s} 秒后重试。",
  "login.again": "错误次数过多，现在可以重试。",
  "login.unanswered": "服务端没有响应。", "login.ended": "登录已过期，下方页面的内容不会丢失。", "login.once": "token 只发送一次，不会保存。", "login.find": "用以下命令查看：",
  "login.plain": "当前通过明文 HTTP 访问，链路上的任何人都能读到 token。请改用 TLS，或在本机访问。",

  // 快捷键
  "keys.list": "显示此列表", "keys.search": "搜索", "keys.chart": "在图表中移动", "keys.pause": "暂停实时列表", "keys.finding": "下一处问题", "keys.publish": "发布", "keys.leave": "离开编辑区", "keys.letters": "启用单字母快捷键",

  // 图表
  "chart.bar": "每柱 {length}；最后一柱尚未结束", "chart.table": "以表格显示", "chart.drawn": "以图表显示", "chart.perSecond": "每秒", "chart.ownScale": "每秒，独立刻度",
  "chart.shadow": "影子本会拒绝", "chart.marks": "事件", "chart.keys": "可用方向键逐格查看。",
  "mark.published": "v{version} 已发布", "mark.loaded": "规则已加载", "mark.restarted": "启动，重新计数", "mark.paused": "规则已暂停", "mark.resumed": "暂停结束", "mark.ban": "已封禁 {whom}", "mark.lift": "已解除 {whom} 的封禁", "mark.bans": "{n} 次手动封禁", "mark.lifts": "解除 {n} 个封禁", "mark.outage": "Redis 自 {at} 起失联",

  // 概览
  "overview.asks.one": "{rule} 自 {at} 起要求 {whom} 进行 {action}，{rate}", "overview.asks.more": "{rule} 自 {at} 起要求 {whom} 及另外 {more} 个主体进行 {action}，{rate}", "overview.asks.mostly": "{rule} 自 {at} 起主要要求 {whom} 进行 {action}，{rate}", "overview.actions": "其他动作",
  "overview.paused": "已暂停：{at} 之前没有规则会拒绝请求", "overview.paused.nobody": "即使未暂停，也没有请求会被拒绝。", "overview.paused.would": "若未暂停，{rate}会被拒绝。", "overview.banned": "{whom} {n|已被手动封禁|等主体已被手动封禁}", "overview.banned.rate": "自 {at} 起，手动封禁{rate}拒绝。", "overview.bans": "手动封禁", "overview.bans.since": "{bans} 自 {at} 起拒绝请求，{rate}", "overview.bans.deny": "{bans} 正在拒绝请求，{rate}", "overview.bans.more": "当前有 {count} 个手动封禁。速率是最近四秒的平均值。",
  "overview.denies.one": "{rule} 自 {at} 起拒绝 {whom}，{rate}", "overview.denies.more": "{rule} 自 {at} 起拒绝 {whom} 及另外 {more} 个主体，{rate}", "overview.denies.mostly": "{rule} 自 {at} 起主要拒绝 {whom}，{rate}", "overview.loud": "{rule} 正在拒绝，{rate}", "overview.loud.keys": "调用方自带的限额正在拒绝，{rate}",
  "overview.more": "{minutes} 分钟内共 {all} 次；最近 {lately} 次中有 {top} 次来自 {whom}。", "overview.more.top": "{minutes} 分钟内共 {all} 次，其中 {top} 次来自 {whom}。", "overview.more.one": "{minutes} 分钟内共 {all} 次，全部来自 {whom}。", "overview.keys": "调用方的 key", "overview.others": "其他规则", "overview.next": "其次：{rule}，{rate}。", "overview.onset": "{rule}，自 {at}",
  "overview.part": "{rate}被拒绝，占 {share}，均由 {rule} 拒绝", "overview.part.most": "{rate}被拒绝，占 {share}，主要由 {rule} 拒绝", "overview.part.unnamed": "{rate}被拒绝，占 {share}",
  "overview.well": "一切正常：{rate}被拒绝，占 {share}", "overview.well.nobody": "一切正常：没有请求被拒绝", "overview.well.most": "最多的是 {rule}：{whom}，最近两分钟 {count} 次。", "overview.well.none": "近期没有请求被拒绝。", "overview.well.share": "没有规则的拒绝比例超过十分之一。",
  "overview.turn.start": "服务端于 {at} 启动，速率是启动以来的平均值。", "overview.turn.pause": "暂停始于 {at}。速率是最近一分钟的平均值，仍包含暂停之前的拒绝。", "overview.turn.resume": "暂停已于 {at} 结束。速率是最近一分钟的平均值，仍包含暂停期间的请求。",
  "overview.ofAll": "近一分钟 {rate} 的 {share}", "overview.unasked": "近一分钟没有请求", "overview.pastShare": "{range}内 {past}", "overview.deniedShare": "占 {share}；{range}内 {past}", "overview.own": "要求 {action}", "overview.shadow": "影子规则本会拒绝", "overview.shadow.note": "未实际拒绝任何请求",
  "overview.p50": "{listener}；半数在 {p50} ms 以内", "overview.unmeasured": "暂无测量数据", "overview.counters": "计数器", "overview.of": "/ {most}", "overview.memory": "淘汰 {evicted}，拒收 {refused}",
  "overview.chart": "放行与拒绝", "overview.most": "被拒绝最多", "overview.most.foot": "仅本节点。始于：从该时刻起每分钟都被拒绝。≤：计数可能偏高，不会偏低。", "overview.most.none": "自 {at} 起没有主体被拒绝。",
  "overview.rules": "拒绝最多的规则", "overview.rules.period": "最近 {range}，每 {every}更新", "overview.rules.none": "此时间段内没有规则拒绝过请求。", "overview.share": "占比", "overview.latency": "延迟（毫秒）", "overview.listener": "监听协议", "overview.store": "存储",

  // 起步
  "start.waiting": "{count} 条规则已生效，尚未收到请求", "start.waiting.more": "收到请求后，这里会显示谁被拒绝、被哪条规则拒绝。", "start.waiting.ask": "由 {rule} 计数的请求",
  "start.title": "发送一个请求，看它如何被拒绝", "start.what": "Flowgate 判断任意事件此刻能否放行。下面这个 key 每分钟放行 5 次。",
  "start.ask": "发起请求", "start.key": "key", "start.limit": "限额", "start.send": "发送", "start.again": "再次发送", "start.sent": "已发送 {n} 次", "start.left": "剩余 {left} / {most}",
  "start.allowed": "已放行：", "start.allowed.more": "现在还可放行 {left} 次，请再次发送。", "start.denied": "已拒绝：", "start.denied.more": "{limit} 已用完，还需等待 {wait}。",
  "start.program": "在程序中调用", "start.rule": "写成规则", "start.rule.file": "规则定义按什么计数，调用方只需说明发生了什么，不必携带限额。在编辑器中把下面的内容加入文件即可。",
  "start.rule.noFile": "规则定义按什么计数，调用方只需说明发生了什么，不必携带限额。本服务端启动时没有指定配置文件：请将以下内容保存为 {file}，再用它启动。",

  // 规则
  "rules.edit": "编辑", "rules.filter": "按任意词筛选", "rules.denied": "正在拒绝", "rules.order": "最近 5 分钟的计数；按文件中的顺序依次判定；{at} 起生效", "rules.found": "{n} / {all}",
  "rules.matches": "条件与计数维度", "rules.never": "尚未判定", "rules.bans": "会封禁", "rules.would": "本会拒绝", "rules.nothing": "没有符合的规则。",
  "rules.broken": "配置文件自 {at} 起有误。生效的仍是 {loaded} 的规则，没有任何变化。", "rules.mend": "在编辑器中修正",
  "rules.none": "还没有规则", "rules.none.file": "请在编辑器中添加。", "rules.none.noFile": "本服务端启动时没有指定配置文件。请指定配置文件启动：",

  // 单条规则
  "rule.asked": "请求数，最近 {range}", "rule.would": "本会拒绝", "rule.would.note": "最近 {range}；未实际拒绝任何请求", "rule.share": "占其请求的 {share}", "rule.bans": "触发封禁", "rule.sinceStart": "自启动以来", "rule.chart": "随时间变化",
  "rule.denies": "自 {at} 起持续拒绝，{rate}，涉及 {subjects} 个主体", "rule.denied": "最近 {range}的 {asked} 次请求中拒绝了 {denied} 次", "rule.shadow": "最近 {range}本会拒绝 {denied} 次", "rule.denies.own": "自 {at} 起持续要求 {action}，{rate}，涉及 {subjects} 个主体", "rule.denied.own": "最近 {range}的 {asked} 次请求中有 {denied} 次被要求 {action}", "rule.quiet": "全部放行", "rule.unmatched": "最近 {range}没有作出判定",
  "rule.each": "每个 {by}", "rule.all": "全部合计", "rule.byCase": "按情况使用不同限额。", "rule.atOnce": "匹配即生效：{action}。",
  "rule.ban.sentence": "{within}内拒绝 {after} 次后封禁，时长依次为 {lengths}。", 
  "rule.edit": "在此编辑", "rule.raise": "调高次数…", "rule.makeShadow": "改为影子规则", "rule.endShadow": "结束影子模式", "rule.raise.title": "调高 {rule} 的次数", "rule.raise.now": "第一个限额是 {limit}。修改会成为草稿，发布之前不生效。", "rule.raise.count": "次数", "rule.raise.do": "生成草稿",
  "rule.list.denied": "被拒绝的主体", "rule.list.own": "被要求 {action} 的主体", "rule.list.shadow": "本会被拒绝的主体", "rule.list.asked": "请求最多的主体", "rule.list.none": "最近两分钟没有。", "rule.list.unasked": "最近两分钟没有请求。", "rule.of": "最近两分钟 {subjects} 个主体",
  "rule.text": "规则文本", "rule.place": "第 {n} 条，共 {all} 条；在它之前的规则先判定", "rule.text.elsewhere": "规则文本在另一个文件中，请在服务器上编辑。", "rule.gone": "规则 {rule} 已不在生效的规则中", "rule.gone.more": "它已改名或删除，旧版本见历史记录：",
  "limit.sliding": "任意 {period}内 {count} 次", "per.unit": "每{unit}", "per.length": "每 {length}", "limit.fixed": "{per} {count} 次", "limit.fixedZone": "{per} {count} 次（按 {zone} 时区）", "limit.after": "{free}以内不限，之后{rest}", "limit.bucket": "{per} {count} 次，匀速", "limit.bucketBurst": "{per} {count} 次，允许突发 {burst} 次",
  "unit.s": "秒", "unit.min": "分钟", "unit.h": "小时", "unit.day": "天", "unit.week": "周", "unit.month": "月", "unit.year": "年",

  // 主体
  "subject.ask": "查询", "subject.cost": "消耗", "subject.gate": "模拟网关请求", "subject.watch": "持续刷新（2 秒）", "subject.addField": "+ 字段", "subject.valueOf": "{field} 的值", "subject.copyLink": "复制带值的链接", "subject.linkCopied": "链接已复制，其中包含字段的值。",
  "subject.empty": "一个请求为什么被放行或拒绝？", "subject.empty.more": "填写请求的字段，或把 act=reply user=42 或 JSON 粘贴到任一输入框。查询不计数。", "subject.unknown": "请填写 {fields} 后查询", "subject.unknown.more": "缺少{n|该字段|这些字段}时，{rule} 不会匹配。", "subject.unkept": "被拒绝请求的 header 与 query 不会保留。", "subject.rules": "规则", "subject.ban": "手动封禁…", "subject.reset": "重置…",
  "why.denied": "被 {rule} 拒绝，还需等待 {time}", "why.banned": "被 {rule} 封禁，剩余 {time}", "why.ban": "被手动封禁，剩余 {time}", "why.never": "被 {rule} 拒绝，等待也无法放行", "why.asks": "{rule} 要求 {action}", "why.asksUntil": "{rule} 要求 {action}，还需等待 {time}", "why.deniedAtOnce": "被 {rule} 直接拒绝",
  "why.allowed": "放行", "why.allowed.left": "放行：{rule} 剩余 {left} / {most}", "why.allowedBy": "由 {rule} 放行", "why.unmatched": "放行：没有匹配的规则", "why.asOf": "更新于 {at}。", "why.until": "持续到 {at}。", "why.action": "该规则要求 {action}。", "why.paused": "规则 {rule} 已暂停，否则会拒绝它。", "why.shadow": "影子规则 {rule} 本会拒绝它。", "why.degraded": "共享存储失联，本节点正在独立判定。", "why.delay": "放行前延迟 {time}。",
  "front.allowed": "放行", "front.denied": "由 {rule} 拒绝", "group.decided": "作出判定", "group.matched": "已匹配", "group.matched.more": "且允许放行", "group.wouldDeny": "本会拒绝，但它是影子规则或已暂停", "group.unreached": "未执行到", "group.unreached.more": "前面的规则已直接判定", "group.unreached.ban": "封禁已先行判定", "group.unreached.none": "无：前面没有规则直接判定", "group.unmatched": "未匹配", "group.unmatched.more": "{n} 条规则，列出各自第一个不满足的条件", "group.none": "无",
  "limit.left": "剩余 {left} / {most}", "limit.next": "下一次还需 {time}", "limit.reset": "全部恢复还需 {time}",
  "reset.title": "重置此请求的计数", "reset.what": "以下规则将清除为它记录的计数及触发的封禁：", "reset.do": "重置", "reset.done": "计数已重置。",

  // 封禁
  "bans.add": "封禁…", "bans.search": "主体、规则、原因或操作者", "bans.origin": "来源", "bans.all": "全部", "bans.rules": "规则触发", "bans.byHand": "手动封禁", "origin.hand": "手动", "bans.whom": "主体", "bans.originHead": "来源", "bans.left": "剩余时间", "bans.until": "结束时间", "bans.reason": "原因",
  "bans.lift": "解除", "bans.lift.of": "解除对 {whom} 的封禁", "bans.lift.this": "解除此封禁", "bans.ofRule": "此规则的封禁", "bans.lifted": "已解除对 {whom} 的封禁。", "bans.again": "重新封禁", "bans.page": "第 {from} 至 {to} 条，共 {all} 条",
  "bans.none": "当前没有封禁", "bans.none.view": "封禁由带 ban 的规则触发，或由管理员手动执行。", "bans.none.more": "封禁由带 ban 的规则触发，也可以手动执行：", "bans.nothing": "没有找到封禁。", "bans.incomplete": "此列表不完整。", "bans.incomplete.more": "共享存储失联，这里只有本节点已知的封禁。",
  "bans.liftAll": "全部解除…", "bans.liftAll.type": "输入 {n} 以确认解除的数量", "bans.liftAll.do": "解除 {count} 个封禁", "bans.liftAll.done": "{n} / {all}", "bans.liftedAll": "已解除 {count} 个封禁。",
  "ban.title": "手动封禁", "ban.field": "字段", "ban.value": "值或网段", "ban.for": "时长", "ban.other": "其他…", "ban.length": "时长", "ban.reason": "原因（供查看列表的人参考）", "ban.what": "从下一个请求起生效。", "ban.what.shared": "对共享此存储的所有节点有效。", "ban.what.memory": "仅在本节点有效。",
  "ban.do": "封禁 {length}", "ban.do.many": "封禁 {n} 个地址 {length}", "ban.done": "已封禁 {whom}。", "ban.everywhere": "对所有请求生效", "wide.title": "手动封禁正在拒绝{whom}，持续到 {at}。", "wide.every": "所有 IPv{version} 地址", "wide.more": "ip={value}，始于 {since}。",
  "ban.isAddress": "{value} 是 IP 地址或网段，而当前字段是 {field}。", "ban.useAddress": "改为封禁 ip={value}", "ban.noAddress": "不是有效的 IP 地址或网段。示例：1.2.3.4、1.2.3.0/24、2001:db8::/32。", "ban.noLength": "请填写数字加单位，最长 366d，例如 90s、10m、1h、7d。",
  "ban.wide": "/{prefix} 包含 {n} 个地址。", "ban.wide.more": "范围超过 /{least}，请确认。", "ban.proxy": "其中包含受信任的代理。", "ban.proxy.more": "经过该代理的所有请求都会被拒绝。", "ban.unused": "没有规则使用字段 {field}。", "ban.unused.more": "封禁只对带有该字段的请求有效。",

  // 暂停
  "pause.open": "暂停所有规则…", "pause.dialog": "暂停所有规则", "pause.what": "在此期间，本节点的规则不拒绝任何请求。请求照常计数，手动封禁仍然有效。", "pause.begin": "暂停 {length}", "pause.title": "所有规则已暂停至 {at}（还剩 {left}），期间规则不会拒绝任何请求。", "pause.more": "请求照常计数，手动封禁仍然有效。", "pause.end": "结束暂停", "pause.ended": "暂停已结束。",

  // 编辑
  "editor.text": "文件内容", "editor.lines": "{n} 行", "editor.draft": "基于 v{version} 的草稿，保存在此标签页", "editor.draft.new": "草稿，保存在此标签页", "editor.inForce": "v{version}，生效中", "editor.rules": "此文件有 {n} 条规则", "editor.changing": "文件正在写入，稍后会重新读取。", "editor.noFile": "本服务端启动时没有指定配置文件", "editor.noFile.more": "请将以下内容保存为 {file}，再用它启动。",
  "editor.discard": "放弃草稿", "editor.discarded": "草稿已放弃。", "editor.moved": "文件在你编辑期间已被修改。", "editor.moved.more": "有人发布了新版本，或直接修改了磁盘上的文件。你的草稿完好，请先合并对方的修改再发布。", "editor.resolve": "比较",
  "editor.difference": "与 v{version} 的差异", "editor.difference.file": "与文件的差异", "editor.published": "v{version} 已生效，共 {n} 条规则，已有计数保留。", "editor.published.waits": "v{version} 的规则已生效，部分设置需要重启后生效。", "editor.rollBack": "回滚到 v{version}",
  "step.check": "检查", "step.difference": "差异", "step.try": "试运行", "step.publish": "发布",
  "publish": "发布…", "publish.title": "发布草稿", "publish.note": "备注（记入历史）", "publish.what": "规则立即生效，要么全部生效，要么全不生效；已有计数保留。", "publish.waits": "{names} 需要重启服务端才会生效。", "publish.waits.more": "规则已经生效。这些设置已写入文件，服务端下次启动时读取。", "publish.do": "发布", "publish.view": "当前登录只有查看权限。", "publish.away": "服务端失联。", "publish.unchanged": "没有改动。", "publish.mistake": "第 {line} 行有错误，修正后才能发布。", "publish.wrong": "有错误，修正后才能发布。", "publish.checking": "检查中…",
  "severity.error": "错误", "severity.warning": "警告", "findings": "检查结果", "findings.count": "{errors} 个错误，{warnings} 个警告", "findings.next": "下一处", "findings.waits.more": "规则不受影响，发布后立即生效。", "findings.none": "没有错误。", "findings.checking": "检查中…", "findings.view": "检查需要管理员登录。", "findings.file": "生效的文件没有问题。编辑时，错误及其位置和提示会显示在这里。",
  "diff.same": "没有差异。", "diff.skipped": "{n} 行相同", "diff.whole": "完整文件", "diff.fold": "只看改动", "diff.added": "新增：", "diff.removed": "删除：",
  "history": "历史", "author.token": "管理员 token", "author.file": "来自磁盘上的文件", "history.version": "版本", "history.published": "发布时间", "history.before": "{at} 之前", "history.note": "备注", "history.size": "大小", "history.inForce": "生效中", "history.again": "恢复自 v{version}", "history.difference": "差异", "history.changes": "改动", "history.changed": "v{version} 相对 v{before} 的改动", "history.back": "回滚", "history.all": "全部 {n} 个", "history.none": "尚未通过服务端发布过。", "history.compared": "与 v{version} 的差异",
  "history.back.title": "回滚到 v{version}", "history.back.change": "回滚带来的改动", "history.back.more": "旧内容将成为新版本。规则立即生效；其他设置大多在服务端下次启动时生效。", "history.back.do": "回滚到 v{version}", "history.rolledBack": "v{version} 的规则已作为 v{next} 生效。",
  "conflict.title": "文件在草稿开始之后已被修改。", "conflict.more": "逐处采纳或不采纳对方的修改。你的内容不会丢失，对方的修改也不会在未经查看时被覆盖。", "conflict.parts": "改动", "conflict.missing": "还有 {n} 处待决定", "conflict.ready": "全部已决定", "conflict.takeAll": "全部采纳对方", "conflict.done": "以此内容继续", "conflict.merged": "草稿已改为以对方的内容为基础。",
  "conflict.base": "原文", "conflict.theirs": "对方", "conflict.yours": "我的", "conflict.take": "采纳对方", "conflict.keep": "保留我的", "conflict.both": "两者都要", "conflict.kind.yours": "你修改的", "conflict.kind.theirs": "对方修改的", "conflict.kind.both": "双方改动相同", "conflict.kind.conflict": "双方都有修改",

  // 试运行
  "try.off": "录制已由 console.sample 关闭。可以在命令行中用日志试运行：", "try.view": "录制需要管理员登录。", "try.nothing": "尚未录制。", "try.hint": "样本能判断的最长时间窗口是 {rule} 的 {limit}：录制开始时计数器为空，建议至少录制 {length}。", "try.hint.beyond": "{rule} 的 {limit} 超出样本所能判断的范围，可用 {command} 在日志上试运行。", "try.busy": "正在用样本试运行草稿…", "try.retry": "重新试运行", "try.empty": "用录制的流量试运行草稿", "try.empty.more": "先录制几分钟流量，再在其上试运行草稿。只在内存中保存请求的字段，不含 header 与 query，30 分钟后清除。", "try.noDraft": "当前没有可供比较的草稿。请先修改规则：", "try.inForceDenied": "生效的规则在此样本上拒绝 {all} 次请求中的 {n} 次", "try.newlyPassed": "新增放行的主体", "try.spares.foot": "99.9% 不受影响：第一个限额取此次数（或更高）时，样本中每 1,000 个主体有 999 个从不被拒绝。",
  "try.sample": "样本：{length}，{from} 至 {to}，{requests} 个请求，{part}", "try.recording": "录制中：{length}，{requests} 个请求，{part}", "try.recording.more": "录制结束后，会用这些请求试运行规则。", "try.allOfThem": "全部请求", "try.oneIn": "每 {n} 个 {by} 取一个", "try.bytes": "{used} / {most}", "try.length": "时长", "try.record": "录制", "try.again": "重新录制", "try.stop": "停止", "try.forget": "清除",
  "try.denied": "草稿会多拒绝 {n} 次，涉及 {subjects} 个主体", "try.passed": "草稿会多放行 {n} 次", "try.same": "草稿的判定结果相同", "try.more": "拒绝率：当前 {now}，草稿 {then}；新放行 {passed} 次。", "try.back": "返回草稿",
  "try.draft": "草稿拒绝", "try.inForce": "当前规则拒绝", "try.curve": "{rule}：换成其他次数", "try.requests": "被拒绝的请求", "try.subjects": "被拒绝的主体", "try.configured": "当前：{count}", "try.draftCount": "草稿：{count}", "try.spares": "99.9% 不受影响：{count}", "try.advice": "次数为 {count} 时，99.9% 的主体不受影响。",
  "try.few": "样本中此规则只有 {count} 个主体，不足以给出建议。", "try.many": "样本中此规则有 {count} 个主体。",
  "try.byRule": "按规则", "try.byRule.foot": "两套规则都从空计数器开始在样本上重新计算，并非线上实际的拒绝数。", "try.unkept": "不录制 header 与 query：", "try.head.now": "当前规则", "try.head.draft": "草稿", "try.head.newly": "新增拒绝", "try.head.passed": "新增放行", "try.head.spares": "99.9% 不受影响", "try.new": "新规则", "try.cannot": "此样本无法判断的内容", "try.longer": "时间窗口比样本更长：", "try.warmUp": "开头一段：计数器为空，拒绝数偏少。", "try.newly": "新增被拒绝的主体", "try.of": "共 {n} 个", "try.nobody": "没有。",

  // 实时
  "live.denied": "被拒绝", "live.denied.minute": "（最近一分钟）", "live.any": "全部规则", "live.filter": "在这些行中搜索", "live.nothing": "没有符合的行。", "live.pause": "暂停", "live.go": "继续", "live.go.new": "继续，{n} 条新记录", "live.foot": "最新在前。{rows} 行，丢失 {lost} 行。×8：一行代表八次。", "live.enter": "单击或按 Enter 查看。", "live.by": "依据", "live.wait": "等待", "live.stands": "代表", "live.fields": "其他字段", "live.lost": "丢失 {lost} 行：产生速度超过了本页的读取速度", "live.none": "自 {at} 起没有请求被拒绝",
  "by.limit": "限额", "by.rule": "规则", "by.ban": "封禁", "by.hand": "手动封禁",

  // 存储
  "store.memory": "计数保存在内存中", "store.redis": "Redis 正常响应", "store.away": "Redis 自 {at} 起失联", "store.node": "仅本节点。", "store.keys": "在本节点内存中", "store.memoryUsed": "内存", "store.of": "占 {most} 的 {share}", "store.evicted": "淘汰", "store.inUse": "其中 {n} 个仍在使用", "store.refused": "拒收", "store.bansRefused": "拒收封禁 {n} 个", "store.coarsened": "降低精度", "store.coarsened.note": "精度已降低的滑动日志",
  "store.servers": "本节点看到的 Redis", "store.server": "服务器", "store.state": "状态", "store.more": "请求：{unanswered} 个未响应，{degraded} 个在没有 Redis 时判定，{hits} 个由拒绝缓存应答。中断：{outages} 次。", "store.connections": "连接", "store.connectionsHead": "连接", "store.open": "当前", "store.cap": "合计上限 {n}。", "store.refusedMore": "拒绝 {refused} 个，token 不正确 {unauthorized} 个。", 
  "store.node.title": "节点", "store.node.name": "名称", "store.started": "启动时间", "store.uptime": "已运行", "store.rules": "规则", "store.reloads": "重新加载", "store.reloads.n": "{ok} 次，失败 {failed} 次", "store.grafana": "所有节点的数据见 Prometheus 与 {file} 中的 Grafana 面板。", "store.settings": "生效的设置", "store.unset": "未配置", "store.secrets": "密钥已隐藏。",

  // Koala
  "koala.broken": "规则文件有误，生效的仍是之前的规则。", "koala.number": "规则", "koala.line": "行", "koala.method": "方法", "koala.conditions": "条件", "koala.time": "时间", "koala.count": "次数", "koala.result": "结果", "koala.passed": "今日通过", "koala.refused": "今日拒绝", "koala.check": "检查一段规则", "koala.check.do": "检查", "koala.right": "没有错误。", "koala.toml": "转换为 TOML",
};
