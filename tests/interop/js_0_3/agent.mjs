// An agent with the JS SDK 0.3: `agent.mjs BINDING 0.3 STREAMS` serves every binding, prefers that one, and prints its URL. STREAMS is `yes`
// or `no`.

import { randomUUID } from 'node:crypto';
import grpc from '@grpc/grpc-js';
import express from 'express';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { Sleepers, bind, listen, obey } from '../directives.mjs';

const [preferredTransport, , streams] = process.argv.slice(2);
const sleepers = new Sleepers();
const part = (text) => ({ kind: 'text', text });

/** One turn of one task, in the words of `obey`. */
class Work {
  constructor({ taskId, contextId, task, userMessage }, bus) {
    Object.assign(this, { taskId, contextId, known: task, userMessage, bus, artifactId: randomUUID() });
  }

  status(state, text) {
    const message = text ? { ...this.message(text), taskId: this.taskId } : undefined;
    return { state, message, timestamp: new Date().toISOString() };
  }

  message(text) {
    return { kind: 'message', role: 'agent', messageId: randomUUID(), contextId: this.contextId, parts: [part(text)] };
  }

  start() {
    const { taskId: id, contextId } = this;
    if (!this.known) this.bus.publish({ kind: 'task', id, contextId, status: this.status('submitted'), history: [this.userMessage] });
    this.update('working', undefined, false);
  }

  update(state, text, final) {
    const { taskId, contextId } = this;
    this.bus.publish({ kind: 'status-update', taskId, contextId, status: this.status(state, text), final });
  }

  say(text) {
    this.bus.publish(this.message(text));
    this.bus.finished();
  }

  chunk(text, append, lastChunk) {
    const { taskId, contextId, artifactId } = this;
    const artifact = { artifactId, parts: [part(text)] };
    this.bus.publish({ kind: 'artifact-update', taskId, contextId, artifact, append, lastChunk });
  }

  sleep(milliseconds) {
    return sleepers.sleep(this.taskId, milliseconds);
  }

  end(state, text) {
    this.update(state, text, true);
    this.bus.finished();
  }
}

const executor = {
  execute: (context, bus) => obey(context.userMessage.parts.map((one) => one.text ?? '').join(''), new Work(context, bus)),
  cancelTask: async (taskId) => sleepers.wake(taskId),
};

const card = {
  name: 'JS 0.3 agent',
  description: 'Does what it is told.',
  version: '1',
  protocolVersion: '0.3.0',
  capabilities: { streaming: streams === 'yes' },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'obey', name: 'Obey', description: 'Obeys the first word.', tags: ['interop'] }],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler(options));
app.use('/rest', restHandler(options));
const rpc = new grpc.Server();
rpc.addService(A2AService, grpcService(options));
const grpcUrl = await bind(rpc, grpc.ServerCredentials.createInsecure());
const url = await listen(app);
const urls = { JSONRPC: `${url}/rpc`, 'HTTP+JSON': `${url}/rest`, GRPC: grpcUrl };
const additionalInterfaces = Object.entries(urls).map(([transport, at]) => ({ transport, url: at }));
Object.assign(card, { url: urls[preferredTransport], preferredTransport, additionalInterfaces });
console.log(url);
