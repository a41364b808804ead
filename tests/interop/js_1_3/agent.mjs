// An agent with the JS SDK 1.x: `agent.mjs BINDING PROTOCOL` serves every binding, lists that one first, and prints its URL. With PROTOCOL
// 0.3 it lists the SDK's compatibility layer, which has JSON-RPC and HTTP+JSON here.

import { randomUUID } from 'node:crypto';
import grpc from '@grpc/grpc-js';
import express from 'express';
import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { Sleepers, bind, listen, obey } from '../directives.mjs';

const [first, protocolVersion] = process.argv.slice(2);
const sleepers = new Sleepers();
const part = (text) => ({ content: { $case: 'text', value: text }, filename: '', mediaType: '' });

/** One turn of one task, in the words of `obey`. */
class Work {
  constructor({ taskId, contextId, task, userMessage }, bus) {
    Object.assign(this, { taskId, contextId, known: task, userMessage, bus, artifactId: randomUUID() });
  }

  status(state, text) {
    const message = text ? this.message(text) : undefined;
    const name = `TASK_STATE_${state.toUpperCase().replace('-', '_')}`;
    return { state: TaskState[name], message, timestamp: new Date().toISOString() };
  }

  message(text, taskId = this.taskId) {
    const ids = { messageId: randomUUID(), contextId: this.contextId, taskId };
    return { ...ids, role: Role.ROLE_AGENT, parts: [part(text)], extensions: [], referenceTaskIds: [] };
  }

  /** The SDK wants the task first in every turn. */
  start() {
    const { taskId: id, contextId } = this;
    const fresh = { id, contextId, artifacts: [], history: [this.userMessage] };
    this.bus.publish(AgentEvent.task({ ...(this.known ?? fresh), status: this.status('working') }));
  }

  say(text) {
    this.bus.publish(AgentEvent.message(this.message(text, '')));
    this.bus.finished();
  }

  chunk(text, append, lastChunk) {
    const { taskId, contextId, artifactId } = this;
    const artifact = { artifactId, name: '', description: '', parts: [part(text)], extensions: [] };
    this.bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk }));
  }

  sleep(milliseconds) {
    return sleepers.sleep(this.taskId, milliseconds);
  }

  end(state, text) {
    const { taskId, contextId } = this;
    this.bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: this.status(state, text) }));
    this.bus.finished();
  }
}

const executor = {
  execute: (context, bus) => {
    const text = context.userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
    return obey(text, new Work(context, bus));
  },
  cancelTask: async (taskId) => sleepers.wake(taskId),
};

const card = {
  name: 'JS 1.3 agent',
  description: 'Does what it is told.',
  version: '1',
  supportedInterfaces: [],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'obey', name: 'Obey', description: 'Obeys the first word.', tags: ['interop'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
  signatures: [],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const legacyCompat = { enabled: protocolVersion === '0.3' };
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat };
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler(options));
app.use('/rest', restHandler(options));
const rpc = new grpc.Server();
rpc.addService(A2AService, grpcService(options));
const grpcUrl = await bind(rpc, grpc.ServerCredentials.createInsecure());
const url = await listen(app);
const urls = { JSONRPC: `${url}/rpc`, 'HTTP+JSON': `${url}/rest` };
if (protocolVersion === '1.0') urls.GRPC = grpcUrl;
for (const protocolBinding of [first, ...Object.keys(urls).filter((binding) => binding !== first)]) {
  card.supportedInterfaces.push({ url: urls[protocolBinding], protocolBinding, tenant: '', protocolVersion });
}
console.log(url);
