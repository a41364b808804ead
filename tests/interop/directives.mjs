// What the JS agents understand: the first word says what to do, the rest of the text with what.

const VERBS = new Set(['complete', 'ask', 'stream', 'fail', 'reject', 'sleep', 'message']);

/** A text that tells nothing is completed with, as it is. */
function read(text) {
  const [, verb, rest] = /^(\S*) ?(.*)$/s.exec(text);
  const counts = verb === 'stream' || verb === 'sleep';
  return VERBS.has(verb) && !(counts && !/^\d+$/.test(rest)) ? [verb, rest] : ['complete', text];
}

/** Does what the text says. `task` has start, say, chunk, sleep and end of one SDK; only an answer that is a message has no task. */
export async function obey(text, task) {
  const [verb, rest] = read(text);
  if (verb === 'message') return task.say(rest);
  task.start();
  switch (verb) {
    case 'complete':
      task.chunk(rest, false, true);
      return task.end('completed');
    case 'stream':
      for (let number = 0; number < Number(rest); number += 1) task.chunk(`chunk ${number}`, number > 0, number + 1 === Number(rest));
      return task.end('completed');
    case 'sleep':
      return task.end((await task.sleep(Number(rest))) ? 'completed' : 'canceled');
    case 'ask':
      return task.end('input-required', rest);
    case 'fail':
      return task.end('failed', rest);
    case 'reject':
      return task.end('rejected', rest);
  }
}

/** Sleepers by task. Each can be woken by whoever cancels the task. */
export class Sleepers {
  #wake = new Map();

  /** True after the whole time, false when woken. */
  sleep(task, milliseconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(true), milliseconds);
      this.#wake.set(task, () => {
        clearTimeout(timer);
        resolve(false);
      });
    }).finally(() => this.#wake.delete(task));
  }

  wake(task) {
    this.#wake.get(task)?.();
  }
}

/** Lets an HTTP server listen on a free port. */
export const listen = (app) => new Promise((resolve) => {
  const server = app.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`));
});

/** The same for gRPC, whose addresses have no scheme. */
export const bind = (server, credentials) => new Promise((resolve, reject) => {
  server.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(`127.0.0.1:${port}`)));
});
