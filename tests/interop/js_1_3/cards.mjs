// Signs and verifies a card with the JS SDK 1.x: `cards.mjs sign ALG [object]` and `cards.mjs verify [object]`, JSON in and out.
// The SDK's functions take a card as its JSON and as the SDK's own object. The second loses the security schemes on the way to
// what is signed, so that the two do not verify each other.

import { text } from 'node:stream/consumers';
import { AgentCard, generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';
import * as jose from 'jose';

const KID = 'made-by-js';
const [mode, ...rest] = process.argv.slice(2);
const form = rest.at(-1) === 'object' ? AgentCard : { fromJSON: (json) => json, toJSON: (json) => json };

async function sign(algorithm) {
  const { publicKey, privateKey } = await jose.generateKeyPair(algorithm, { extractable: true });
  const signer = generateAgentCardSignature(privateKey, { alg: algorithm, kid: KID, typ: 'JOSE' });
  const card = await signer(form.fromJSON(JSON.parse(await text(process.stdin))));
  const jwk = { ...(await jose.exportJWK(publicKey)), kid: KID, alg: algorithm };
  return { card: form.toJSON(card), jwks: { keys: [jwk] } };
}

async function verify() {
  // The SDK reports each signature that does not verify here.
  console.debug = () => {};
  const { card, jwks } = JSON.parse(await text(process.stdin));
  const key = async (kid) => {
    const jwk = jwks.keys.find((one) => one.kid === kid);
    if (!jwk) throw new Error(`no key ${kid}`);
    return jose.importJWK(jwk);
  };
  try {
    await verifyAgentCardSignature(key)(form.fromJSON(card));
  } catch (refusal) {
    return { verified: false, detail: refusal.message };
  }
  return { verified: true, detail: '' };
}

process.stdout.write(JSON.stringify(mode === 'sign' ? await sign(rest[0]) : await verify()));
