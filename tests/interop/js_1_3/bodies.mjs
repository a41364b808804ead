// Reads notifications with the types of the JS SDK 1.x, those of 0.3 through its compatibility layer: their bodies as JSON in, what they say as JSON out.

import { readFileSync } from 'node:fs';
import { StreamResponse, taskStateToJSON } from '@a2a-js/sdk';
import { legacyPushNotificationToV1StreamResponse } from '@a2a-js/sdk/compat/v0_3';

const given = JSON.parse(readFileSync(0, 'utf8'));

function said(text) {
  const body = JSON.parse(text);
  const read = given.form === '0.3' ? legacyPushNotificationToV1StreamResponse(body) : StreamResponse.fromJSON(body);
  // What is read and written again says the same: nothing got lost on the way.
  const again = StreamResponse.fromJSON(StreamResponse.toJSON(read));
  const { $case: kind, value } = again.payload;
  const state = value.status ? taskStateToJSON(value.status.state) : null;
  return [kind, kind === 'task' ? value.id : value.taskId, state];
}

console.log(JSON.stringify({ said: given.bodies.map(said) }));
