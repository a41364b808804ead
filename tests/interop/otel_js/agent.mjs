// An agent with OpenTelemetry that never stops by itself: `agent.mjs PEER` calls PEER at the node for every task, and prints its URL.
//
// The text of a message is the address of the node. Nothing here knows of the node's lineage: the instrumentation of `http` and `fetch`
// passes on the trace, as in any instrumented program. The answer is `js(ANSWER)` with what the peer answered, or with the error.

import { randomUUID } from 'node:crypto';
import { register } from 'node:module';
import { registerInstrumentations } from '@opentelemetry/instrumentation';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

register('@opentelemetry/instrumentation/hook.mjs', import.meta.url);
new NodeTracerProvider().register();
registerInstrumentations({ instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation()] });

// What is instrumented has to be imported after the instrumentation.
const { default: express } = await import('express');
const { Role, TaskState } = await import('@a2a-js/sdk');
const { ClientFactory } = await import('@a2a-js/sdk/client');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = await import('@a2a-js/sdk/server');
const { UserBuilder, agentCardHandler, jsonRpcHandler } = await import('@a2a-js/sdk/server/express');
const { listen } = await import('../directives.mjs');

const [peer] = process.argv.slice(2);
// A loop that nobody stops ends by itself.
const MOST_CALLS = 12;
let calls = 0;

const part = (text) => ({ content: { $case: 'text', value: text }, filename: '', mediaType: '' });
const textOf = ({ parts }) => parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

async function passOn(node) {
  if (calls === MOST_CALLS) return 'stopped by itself';
  calls += 1;
  try {
    const client = await new ClientFactory().createFromUrl(`${node}/agents/${peer}/`);
    const ids = { messageId: randomUUID(), contextId: '', taskId: '' };
    const message = { ...ids, role: Role.ROLE_USER, parts: [part(node)], extensions: [], referenceTaskIds: [] };
    const answer = await client.sendMessage({ tenant: '', message, configuration: { acceptedOutputModes: [], returnImmediately: false } });
    return answer.artifacts.map(textOf).join(' ');
  } catch (error) {
    return error.message;
  }
}

const executor = {
  execute: async ({ taskId, contextId, userMessage }, bus) => {
    const status = (state) => ({ state: TaskState[`TASK_STATE_${state}`], message: undefined, timestamp: new Date().toISOString() });
    bus.publish(AgentEvent.task({ id: taskId, contextId, artifacts: [], history: [userMessage], status: status('WORKING') }));
    const text = `js(${await passOn(textOf(userMessage))})`;
    const artifact = { artifactId: randomUUID(), name: '', description: '', parts: [part(text)], extensions: [] };
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true }));
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status('COMPLETED') }));
    bus.finished();
  },
  cancelTask: async () => {},
};

const card = {
  name: 'Instrumented JS agent',
  description: 'Calls its peer for everything.',
  version: '1',
  supportedInterfaces: [],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'relay', name: 'Relay', description: 'Calls its peer.', tags: ['interop'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
  signatures: [],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const url = await listen(app);
card.supportedInterfaces.push({ url: `${url}/rpc`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' });
console.log(url);
