// The checks every JS SDK driver runs, written against a small neutral view of a client.
//
// A driver supplies an `agent` with methods card, send, stream, get, list, cancel, subscribe, createPush, getPush,
// listPush and deletePush, the SDK's error classes as
// `errors`, and whether the SDK passes on `append` as `showsAppend`. It turns what its SDK returns into plain tasks {id, contextId, state,
// artifacts: [[text]], history} and events {kind, taskId, state, texts, artifactId, append, lastChunk, final}. One line of JSON is
// printed per check.

import { deepStrictEqual } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

const SECONDS_PER_CHECK = 30;

class Failed extends Error {}

export function expect(what, got, wanted) {
  try {
    deepStrictEqual(got, wanted);
  } catch {
    throw new Failed(`${what}: wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`);
  }
}

export function require(what, condition, got) {
  if (!condition) throw new Failed(`${what}: got ${JSON.stringify(got)}`);
}

async function collect(events) {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
}

/** A finished task of our own, its artifact holding a text nobody else uses. */
async function completed(agent, options = {}) {
  const text = `hello ${randomUUID()}`;
  const task = await agent.send(`complete ${text}`, options);
  expect('state', task.state, 'completed');
  expect('artifacts', task.artifacts, [[text]]);
  require('ids', task.id && task.contextId, task);
  return task;
}

async function card(agent) {
  const found = await agent.card();
  require('name', found.name, found);
  require('skills', found.skills > 0, found);
  expect('streaming', found.streaming, true);
  require('push is claimed', found.push, found);
  require('interfaces of this binding and version', found.interfaces.length > 0, found);
}

async function send(agent) {
  const [first, second] = [await completed(agent), await completed(agent)];
  require('two sends make two tasks', first.id !== second.id, first.id);
}

async function message(agent) {
  const reply = await agent.send('message good morning');
  expect('reply', [reply.kind, reply.texts], ['message', ['good morning']]);
}

async function multiTurn(agent) {
  const asked = await agent.send('ask which colour?');
  expect('state', asked.state, 'input-required');
  const done = await agent.send('complete blue', { taskId: asked.id });
  expect('task', [done.id, done.contextId], [asked.id, asked.contextId]);
  expect('outcome', [done.state, done.artifacts], ['completed', [['blue']]]);
}

async function stream(agent) {
  const events = await collect(agent.stream('stream 3'));
  const taskId = events[0].taskId;
  expect('first event', events[0].kind, 'task');
  expect('one task event', events.filter((e) => e.kind === 'task').length, 1);
  expect('task ids', [...new Set(events.map((e) => e.taskId))], [taskId]);
  const chunks = events.filter((e) => e.kind === 'artifact');
  expect('number of chunks', chunks.length, 3);
  if (agent.showsAppend) expect('append', chunks.map((c) => c.append), [false, true, true]);
  expect('last chunk', chunks.map((c) => c.lastChunk), [false, false, true]);
  expect('artifact ids', new Set(chunks.map((c) => c.artifactId)).size, 1);
  const last = events.at(-1);
  expect('last event', [last.kind, last.state], ['status', 'completed']);
  const flags = events.filter((e) => e.kind === 'status' && e.final !== undefined).map((e) => e.final);
  expect('final flags', flags, flags.map((_, i) => i === flags.length - 1));
  const streamed = chunks.flatMap((c) => c.texts);
  expect('stored artifact', (await agent.get(taskId)).artifacts, [streamed]);
}

async function get(agent) {
  const sent = await completed(agent);
  const found = await agent.get(sent.id);
  expect('task', [found.id, found.contextId, found.state, found.artifacts], [sent.id, sent.contextId, 'completed', sent.artifacts]);
  require('history kept', found.history >= 1, found.history);
  expect('history of one', (await agent.get(sent.id, 1)).history, 1);
}

async function list(agent) {
  const contextId = randomUUID();
  const older = await completed(agent, { contextId });
  const newer = await completed(agent, { contextId });
  expect('context', [older.contextId, newer.contextId], [contextId, contextId]);
  const first = await agent.list({ contextId, pageSize: 1, pageToken: '', includeArtifacts: false });
  expect('first page', [first.tasks.map((t) => t.id), first.total, first.pageSize], [[newer.id], 2, 1]);
  require('there is a next page', first.token, first);
  expect('artifacts are left out', first.tasks[0].artifacts, []);
  const second = await agent.list({ contextId, pageSize: 1, pageToken: first.token, includeArtifacts: true });
  expect('second page', second.tasks.map((t) => [t.id, t.artifacts]), [[older.id, older.artifacts]]);
  expect('no page after it', second.token, '');
}

async function cancel(agent) {
  const running = await agent.send('sleep 60000', { wait: false });
  require('still running', ['submitted', 'working'].includes(running.state), running.state);
  const canceled = await agent.cancel(running.id);
  expect('answer', [canceled.id, canceled.state], [running.id, 'canceled']);
  expect('stored state', (await agent.get(running.id)).state, 'canceled');
}

async function resubscribe(agent) {
  const running = await agent.send('sleep 60000', { wait: false });
  const events = agent.subscribe(running.id);
  const { value: first } = await events.next();
  expect('first event', [first?.kind, first?.taskId], ['task', running.id]);
  await agent.cancel(running.id);
  const last = (await collect(events)).at(-1);
  expect('last event', [last?.kind, last?.state, last?.taskId], ['status', 'canceled', running.id]);
}

async function resubscribeParked(agent) {
  const asked = await agent.send('ask which colour?');
  const events = agent.subscribe(asked.id);
  const { value: first } = await events.next();
  expect('first event', [first?.kind, first?.taskId, first?.state], ['task', asked.id, 'input-required']);
  await agent.send('complete blue', { taskId: asked.id });
  const rest = await collect(events);
  expect('artifacts', rest.filter((e) => e.kind === 'artifact').map((e) => e.texts), [['blue']]);
  const last = rest.at(-1);
  expect('last event', [last?.kind, last?.state], ['status', 'completed']);
}

async function refused(agent, call, wanted) {
  let answer;
  try {
    answer = await call();
  } catch (error) {
    // The SDK of 0.3 wraps an error that comes as an event.
    const is = [error, error.cause].some((one) => one instanceof agent.errors[wanted]);
    return require(`wanted ${wanted}`, is, `${error.name}: ${error.message}`);
  }
  throw new Failed(`wanted ${wanted}, got an answer: ${JSON.stringify(answer)}`);
}

async function taskNotFound(agent) {
  await refused(agent, () => agent.get(randomUUID()), 'TaskNotFoundError');
}

async function refusedStream(agent) {
  await refused(agent, () => collect(agent.stream('complete hello', { taskId: randomUUID() })), 'TaskNotFoundError');
  await refused(agent, () => collect(agent.subscribe(randomUUID())), 'TaskNotFoundError');
}

async function taskNotCancelable(agent) {
  const done = await completed(agent);
  await refused(agent, () => agent.cancel(done.id), 'TaskNotCancelableError');
}

/** Registers a webhook, reads it, lists it, deletes it; each answered with its URL. */
async function push(agent) {
  const [done, url] = [await completed(agent), 'https://example.invalid/hook'];
  expect('registered', await agent.createPush(done.id, url), url);
  expect('read back', await agent.getPush(done.id), url);
  expect('listed', await agent.listPush(done.id), [url]);
  await agent.deletePush(done.id);
  expect('listed after it was deleted', await agent.listPush(done.id), []);
  await refused(agent, () => agent.createPush(randomUUID(), url), 'TaskNotFoundError');
}

const CHECKS = {
  card,
  send,
  message,
  'multi-turn': multiTurn,
  stream,
  get,
  list,
  cancel,
  resubscribe,
  'resubscribe-parked': resubscribeParked,
  'task-not-found': taskNotFound,
  'refused-stream': refusedStream,
  'task-not-cancelable': taskNotCancelable,
  push,
};

/** A server that knows its callers: the client says that credentials are missing, whatever it asks for. */
async function withoutCredentials(agent) {
  const calls = [
    () => agent.send('complete hello'),
    () => collect(agent.stream('complete hello')),
    () => agent.get('x'),
    () => agent.cancel('x'),
    () => collect(agent.subscribe('x')),
  ];
  for (const call of calls) {
    const said = await call().then((answer) => `an answer: ${JSON.stringify(answer)}`, (error) => `${error.name}: ${error.message}`);
    require('missing credentials', /401|credential|unauthenticated/i.test(said), said);
  }
}

/** What a server is asked that was started with callers, when the driver's second argument says so. */
const OF_STRANGERS = { 'without-credentials': withoutCredentials };

/** The card of an agent's own address names that address in every interface that a client may choose. */
async function cardAtAddress(agent) {
  const found = await agent.card();
  require('interfaces of this binding and version', found.interfaces.length > 0, found);
  for (const url of found.interfaces) require('the address goes on in the card', `${url}/`.startsWith(agent.base), found);
}

/** What is asked at the address of an agent (`/via/SECRET`), when the driver's second argument says so. */
const AT_ADDRESS = { card: cardAtAddress, send, 'multi-turn': multiTurn, stream, get, cancel };

/** The bindings that have a path to put an address in. */
const WITH_PATH = ['JSONRPC', 'HTTP+JSON'];

/** The checks and the bindings that a driver's argument behind the address asks for. */
export function asked(argument) {
  switch (argument) {
    case 'without-credentials':
      return { operations: OF_STRANGERS, bindings: [...WITH_PATH, 'GRPC'] };
    case 'at-address':
      return { operations: AT_ADDRESS, bindings: WITH_PATH };
    default:
      return { operations: undefined, bindings: [...WITH_PATH, 'GRPC'] };
  }
}

async function withDeadline(work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Failed(`no end after ${SECONDS_PER_CHECK} s`)), SECONDS_PER_CHECK * 1000);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Runs every check that exists in this protocol version and prints its line. */
export async function run(agent, { sdkVersion, protocol, binding, operations = CHECKS }) {
  for (const [operation, check] of Object.entries(operations)) {
    if (operation === 'list' && protocol === '0.3') continue; // 0.3 has no list operation in any SDK
    let detail = '';
    try {
      await withDeadline(check(agent));
    } catch (error) {
      detail = error instanceof Failed ? error.message : `${error?.name}: ${error?.message}`;
    }
    console.log(JSON.stringify({ sdk: 'js', sdk_version: sdkVersion, protocol, binding, operation, ok: detail === '', detail }));
  }
}
