"""Signs and verifies webhooks with the official Standard Webhooks library: `webhooks.py sign` and `webhooks.py verify`, JSON in and out."""

import json
import sys
from datetime import datetime, timezone

from standardwebhooks import Webhook, WebhookVerificationError

given = json.load(sys.stdin)
webhook = Webhook(given["secret"])

if sys.argv[1] == "sign":
    time = datetime.fromtimestamp(given["timestamp"], tz=timezone.utc)
    answer = {"signature": webhook.sign(given["id"], time, given["body"])}
else:
    try:
        answer = {"verified": webhook.verify(given["body"], given["headers"]) == json.loads(given["body"])}
    except WebhookVerificationError as fault:
        answer = {"verified": False, "reason": str(fault)}

print(json.dumps(answer))
