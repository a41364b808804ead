// Signs and verifies webhooks with the official Standard Webhooks library: `webhooks.mjs sign` and `webhooks.mjs verify`, JSON in and out.
import { readFileSync } from "node:fs";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const given = JSON.parse(readFileSync(0, "utf8"));
const webhook = new Webhook(given.secret);

function verify() {
  try {
    const read = webhook.verify(given.body, given.headers);
    return { verified: JSON.stringify(read) === JSON.stringify(JSON.parse(given.body)) };
  } catch (fault) {
    if (!(fault instanceof WebhookVerificationError)) throw fault;
    return { verified: false, reason: fault.message };
  }
}

const answer =
  process.argv[2] === "sign"
    ? { signature: webhook.sign(given.id, new Date(given.timestamp * 1000), given.body) }
    : verify();
console.log(JSON.stringify(answer));
