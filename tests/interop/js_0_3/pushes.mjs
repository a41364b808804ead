// Sends notifications with the push sender of the JS SDK 0.3: registration as JSON in, what was sent as JSON out.

import { readFileSync } from 'node:fs';
import { DefaultPushNotificationSender, InMemoryPushNotificationStore } from '@a2a-js/sdk/server';

const given = JSON.parse(readFileSync(0, 'utf8'));
const store = new InMemoryPushNotificationStore();
await store.save('task-1', { url: given.url, token: given.token });

const names = { kind: 'task', id: 'task-1', contextId: 'context-1' };
const artifacts = [{ artifactId: 'artifact-1', parts: [{ kind: 'text', text: 'héllo' }] }];
const tasks = [
  { ...names, status: { state: 'working' } },
  { ...names, status: { state: 'completed' }, artifacts },
];

// The sender reports on the console what it sent; only the answer is wanted there.
console.info = () => {};
const sender = new DefaultPushNotificationSender(store);
for (const task of tasks) await sender.send(task);
console.log(JSON.stringify({ sent: tasks.length }));
