// A worker in JavaScript, over HTTP: Node 18 or newer, nothing to install. It counts words.
//
// AGENTCANVAS_HUB=http://127.0.0.1:7718 AGENTCANVAS_TOKEN=… node worker.mjs

const NAME = "node-worker";
const { AGENTCANVAS_HUB, AGENTCANVAS_TOKEN } = process.env;

async function call(method, path, body) {
  const answer = await fetch(`${AGENTCANVAS_HUB}/api/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${AGENTCANVAS_TOKEN}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.payload.error_message);
  return said;
}

// The answer to a command, in the dialect ACP; an asker of another dialect gets it in its own.
function responseTo(command) {
  const text = command.parameters.input;
  return {
    id: crypto.randomUUID(),
    commandId: command.id,
    timestamp: new Date().toISOString(),
    version: "2.0",
    from: NAME,
    status: "success",
    results: { data: { words: text.split(/\s+/).filter(Boolean).length } },
  };
}

for (;;) {
  // Waits up to 30 seconds for something to do; asking is also a sign of life.
  const { messages } = await call("POST", `/messages/take?agent_id=${NAME}`, {
    wait: 30,
    capabilities: ["text"],
    dialect: "acp",
  });
  for (const message of messages) {
    if (message.action) await call("POST", "/messages", responseTo(message));
    // Until then it would come again.
    await call("POST", "/messages/ack", { ack: [message.delivery.number] });
  }
}
