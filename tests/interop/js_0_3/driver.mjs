// Drives a server with the JS SDK 0.3: `driver.mjs BASE_URL [without-credentials]`, every binding, no version header anywhere.

import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import * as sdk from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { asked, require, run } from '../checks.mjs';

const PROTOCOL = '0.3';

const texts = (parts) => parts.map((part) => part.text);

const neutralTask = (task) => ({
  kind: 'task',
  id: task.id,
  contextId: task.contextId,
  state: task.status.state,
  artifacts: (task.artifacts ?? []).map((artifact) => texts(artifact.parts)),
  history: task.history?.length ?? 0,
});

function neutralEvent(event) {
  switch (event.kind) {
    case 'task':
      return { kind: 'task', taskId: event.id, state: event.status.state };
    case 'message':
      return { kind: 'message', taskId: event.taskId, texts: texts(event.parts) };
    case 'status-update':
      return { kind: 'status', taskId: event.taskId, state: event.status.state, final: event.final };
    case 'artifact-update':
      return {
        kind: 'artifact',
        taskId: event.taskId,
        texts: texts(event.artifact.parts),
        artifactId: event.artifact.artifactId,
        append: event.append ?? false,
        lastChunk: event.lastChunk ?? false,
      };
  }
}

async function* neutralEvents(events) {
  for await (const event of events) yield neutralEvent(event);
}

class Agent {
  constructor(base, binding) {
    // The SDK drops `append` when it translates protobuf events.
    Object.assign(this, { base, binding, errors: sdk, showsAppend: binding === 'JSONRPC' });
    this.factory = new sdk.ClientFactory({
      transports: [sdk.JsonRpcTransportFactory, sdk.RestTransportFactory, GrpcTransportFactory].map((Transport) => new Transport()),
      preferredTransports: [binding],
    });
  }

  fetchCard() {
    return new sdk.DefaultAgentCardResolver().resolve(this.base);
  }

  async client() {
    this.made ??= await this.factory.createFromAgentCard(await this.fetchCard());
    return this.made;
  }

  request(text, { contextId, taskId, wait = true } = {}) {
    const part = { kind: 'text', text };
    return {
      message: { kind: 'message', messageId: randomUUID(), role: 'user', parts: [part], contextId, taskId },
      configuration: { blocking: wait },
    };
  }

  async card() {
    const card = await this.fetchCard();
    require('protocol version', card.protocolVersion.startsWith(PROTOCOL), card.protocolVersion);
    const offered = [{ transport: card.preferredTransport ?? 'JSONRPC', url: card.url }, ...(card.additionalInterfaces ?? [])];
    return {
      name: card.name,
      skills: card.skills.length,
      streaming: card.capabilities.streaming,
      push: card.capabilities.pushNotifications,
      interfaces: offered.filter((i) => i.transport === this.binding).map((i) => i.url),
    };
  }

  async send(text, options) {
    const answer = await (await this.client()).sendMessage(this.request(text, options));
    return answer.kind === 'message' ? neutralEvent(answer) : neutralTask(answer);
  }

  async *stream(text, options) {
    yield* neutralEvents((await this.client()).sendMessageStream(this.request(text, options)));
  }

  async get(id, historyLength) {
    return neutralTask(await (await this.client()).getTask({ id, historyLength }));
  }

  async cancel(id) {
    return neutralTask(await (await this.client()).cancelTask({ id }));
  }

  async *subscribe(id) {
    yield* neutralEvents((await this.client()).resubscribeTask({ id }));
  }

  async createPush(taskId, url) {
    const set = await (await this.client()).setTaskPushNotificationConfig({ taskId, pushNotificationConfig: { id: 'hook', url } });
    return set.pushNotificationConfig.url;
  }

  async getPush(id) {
    const found = await (await this.client()).getTaskPushNotificationConfig({ id, pushNotificationConfigId: 'hook' });
    return found.pushNotificationConfig.url;
  }

  async listPush(id) {
    const all = await (await this.client()).listTaskPushNotificationConfig({ id });
    return all.map((one) => one.pushNotificationConfig.url);
  }

  async deletePush(id) {
    await (await this.client()).deleteTaskPushNotificationConfig({ id, pushNotificationConfigId: 'hook' });
  }
}

const { version: sdkVersion } = JSON.parse(await readFile(new URL('node_modules/@a2a-js/sdk/package.json', import.meta.url)));
const { operations, bindings } = asked(process.argv[3]);
for (const binding of bindings) {
  await run(new Agent(process.argv[2], binding), { sdkVersion, protocol: PROTOCOL, binding, operations });
}
process.exit(0); // open channels would keep the process alive
