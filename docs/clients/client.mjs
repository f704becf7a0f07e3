import net from "node:net";

const [host, port] = (process.env.FLOWGATE_RESP ?? "127.0.0.1:7071").split(":");
const http = process.env.FLOWGATE_SERVER ?? "http://127.0.0.1:7070";

// A Redis client does this and more: await client.sendCommand(["FG.LIMIT", "node:42", "2/60s"]).
const ask = (command) => new Promise((resolve, reject) => {
  const socket = net.connect({ host, port }, () => socket.end(command + "\r\nQUIT\r\n")).setTimeout(1000, () => socket.destroy());
  let reply = "";
  socket.on("data", (data) => (reply += data)).on("error", reject);
  socket.on("close", () => resolve(reply.split("\r\n").slice(1, 7).map((line) => Number(line.slice(1)))));
});
for (let i = 0; i < 3; i++) {
  const [allowed, limit, remaining, retryMs] = await ask("FG.LIMIT node:42 2/60s");
  console.log(allowed ? "go" : "wait", remaining);
}

const body = JSON.stringify({ key: "node:42", limit: "2/60s" });
const headers = { "content-type": "application/json" };
const decision = await (await fetch(http + "/v1/limit", { method: "POST", headers, body })).json();
console.log(decision.allowed ? "go" : "wait", decision.remaining);
