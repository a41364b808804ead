// Drives a server with the JS SDK 1.x: `driver.mjs BASE_URL`, both protocol versions, every binding.

import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import * as errors from '@a2a-js/sdk/errors';
import { Role, TaskState } from '@a2a-js/sdk';
import { asked, run } from '../checks.mjs';

const state = (status) => TaskState[status.state].replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');
const texts = (parts) => parts.map((part) => (part.content?.$case === 'text' ? part.content.value : undefined));

const neutralTask = (task) => ({
  kind: 'task',
  id: task.id,
  contextId: task.contextId,
  state: state(task.status),
  artifacts: task.artifacts.map((artifact) => texts(artifact.parts)),
  history: task.history.length,
});

const neutralMessage = (message) => ({ kind: 'message', taskId: message.taskId, texts: texts(message.parts) });

function neutralEvent({ payload: { $case, value } }) {
  switch ($case) {
    case 'task':
      return { kind: 'task', taskId: value.id, state: state(value.status) };
    case 'message':
      return neutralMessage(value);
    case 'statusUpdate':
      return { kind: 'status', taskId: value.taskId, state: state(value.status) };
    case 'artifactUpdate':
      return {
        kind: 'artifact',
        taskId: value.taskId,
        texts: texts(value.artifact.parts),
        artifactId: value.artifact.artifactId,
        append: value.append,
        lastChunk: value.lastChunk,
      };
  }
}

async function* neutralEvents(responses) {
  for await (const response of responses) yield neutralEvent(response);
}

class Agent {
  constructor(base, protocol, binding) {
    // The SDK drops `append` when it translates 0.3 protobuf events.
    const showsAppend = protocol === '1.0' || binding === 'JSONRPC';
    Object.assign(this, { base, protocol, binding, errors, showsAppend });
    const legacyCompat = { enabled: protocol === '0.3' };
    const fetchImpl = (url, init) => fetch(url, { ...init, headers: { ...init?.headers, 'A2A-Version': protocol } });
    this.resolver = new DefaultAgentCardResolver({ legacyCompat });
    this.resolverInProtocol = new DefaultAgentCardResolver({ legacyCompat, fetchImpl });
    this.factory = new ClientFactory({
      transports: [JsonRpcTransportFactory, RestTransportFactory, GrpcTransportFactory].map((Transport) => new Transport({ legacyCompat })),
      preferredTransports: [binding],
      cardResolver: this.resolver,
    });
  }

  /** The card as the SDK asks for it, with only the interfaces of the version under test left to choose from. */
  async fetchCard(resolver = this.resolver) {
    const card = await resolver.resolve(this.base);
    const supportedInterfaces = card.supportedInterfaces.filter((i) => i.protocolVersion.startsWith(this.protocol));
    return { ...card, supportedInterfaces };
  }

  async client() {
    this.made ??= await this.factory.createFromAgentCard(await this.fetchCard());
    return this.made;
  }

  request(text, { contextId = '', taskId = '', wait = true } = {}) {
    const part = { content: { $case: 'text', value: text }, filename: '', mediaType: '' };
    const ids = { messageId: randomUUID(), contextId, taskId };
    return {
      tenant: '',
      message: { ...ids, role: Role.ROLE_USER, parts: [part], extensions: [], referenceTaskIds: [] },
      configuration: { acceptedOutputModes: [], returnImmediately: !wait },
    };
  }

  /** This check reads the card as that version writes it. */
  async card() {
    const card = await this.fetchCard(this.resolverInProtocol);
    return {
      name: card.name,
      skills: card.skills.length,
      streaming: card.capabilities.streaming,
      push: card.capabilities.pushNotifications,
      interfaces: card.supportedInterfaces.filter((i) => i.protocolBinding === this.binding).map((i) => i.url),
    };
  }

  async send(text, options) {
    const answer = await (await this.client()).sendMessage(this.request(text, options));
    return 'messageId' in answer ? neutralMessage(answer) : neutralTask(answer);
  }

  async *stream(text, options) {
    yield* neutralEvents((await this.client()).sendMessageStream(this.request(text, options)));
  }

  async get(id, historyLength) {
    return neutralTask(await (await this.client()).getTask({ tenant: '', id, historyLength }));
  }

  async list(params) {
    const page = await (await this.client()).listTasks({ tenant: '', status: TaskState.TASK_STATE_UNSPECIFIED, ...params });
    return { tasks: page.tasks.map(neutralTask), token: page.nextPageToken, total: page.totalSize, pageSize: page.pageSize };
  }

  async cancel(id) {
    return neutralTask(await (await this.client()).cancelTask({ tenant: '', id }));
  }

  async *subscribe(id) {
    yield* neutralEvents((await this.client()).resubscribeTask({ tenant: '', id }));
  }

  async createPush(taskId, url) {
    const made = await (await this.client()).createTaskPushNotificationConfig({ tenant: '', id: 'hook', taskId, url, token: '' });
    return made.url;
  }

  async getPush(taskId) {
    return (await (await this.client()).getTaskPushNotificationConfig({ tenant: '', id: 'hook', taskId })).url;
  }

  async listPush(taskId) {
    const page = await (await this.client()).listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' });
    return page.configs.map((one) => one.url);
  }

  async deletePush(taskId) {
    await (await this.client()).deleteTaskPushNotificationConfig({ tenant: '', id: 'hook', taskId });
  }
}

const { version: sdkVersion } = JSON.parse(await readFile(new URL('node_modules/@a2a-js/sdk/package.json', import.meta.url)));
const { operations, bindings } = asked(process.argv[3]);
for (const protocol of ['1.0', '0.3']) {
  for (const binding of bindings) {
    await run(new Agent(process.argv[2], protocol, binding), { sdkVersion, protocol, binding, operations });
  }
}
process.exit(0); // open channels would keep the process alive
