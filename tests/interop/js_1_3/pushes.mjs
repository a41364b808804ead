// Sends notifications with the push sender of the JS SDK 1.x, in the wire version given as argument: registration as JSON in, what was sent as JSON out.

import { readFileSync } from 'node:fs';
import { TaskState } from '@a2a-js/sdk';
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server';

const [wireVersion] = process.argv.slice(2);
const given = JSON.parse(readFileSync(0, 'utf8'));
const authentication = given.credentials ? { scheme: 'Bearer', credentials: given.credentials } : undefined;
const config = { tenant: '', id: 'hook', taskId: 'task-1', url: given.url, token: given.token, authentication };
const store = { loadWithMetadata: async () => [{ config, wireVersion }] };

const names = { taskId: 'task-1', contextId: 'context-1' };
const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });
const part = { content: { $case: 'text', value: 'héllo' }, filename: '', mediaType: '' };
const artifact = { artifactId: 'artifact-1', name: '', description: '', parts: [part], extensions: [] };
const task = { id: 'task-1', contextId: 'context-1', status: status(TaskState.TASK_STATE_WORKING), artifacts: [], history: [] };
const events = [
  { $case: 'task', value: task },
  { $case: 'artifactUpdate', value: { ...names, artifact, append: false, lastChunk: true } },
  { $case: 'statusUpdate', value: { ...names, status: status(TaskState.TASK_STATE_COMPLETED) } },
];

// The sender reports on the console what it sent; only the answer is wanted there.
console.info = () => {};
const sender = createLegacyAwarePushNotificationSender(store);
for (const payload of events) await sender.send({ payload }, { requestedVersion: wireVersion }, task);
console.log(JSON.stringify({ sent: events.length }));
