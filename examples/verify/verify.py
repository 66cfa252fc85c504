# Verifies webhooks of Switchyard with nothing but Python's standard library. Copy the functions above `main` into your
# receiver and give them the body as the bytes that arrived. Each gives None for a request that is genuine, else what is
# wrong with it.

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import time

TOLERANCE_SECONDS = 300


def verify_standard_webhook(body, header, secrets, now=None):
    """Standard Webhooks. `header` gives a header by its lower-case name; `secrets` are one or more whsec_…, two while rotating."""
    id, timestamp, signatures = (header(name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not id or not timestamp or not signatures:
        return "signature_missing"
    if not re.fullmatch("[0-9]{1,12}", timestamp):
        return "header_invalid"
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        return "timestamp_outside_tolerance"
    genuine = False
    for secret in secrets:
        signed = f"{id}.{timestamp}.".encode() + body
        digest = base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()
        # No way out of the loop before its end: how long it takes must not tell which one matched.
        for signature in signatures.split(" "):
            if is_equal(signature, "v1," + digest):
                genuine = True
    return None if genuine else "signature_invalid"


def verify_x_signature(body, header, shared_secret, is_body_proven=False):
    """X-Signature. Of a batch it proves the first message and nothing after it, so a batch of several is refused, unless
    Standard Webhooks has proven the whole body already."""
    signature = header("x-signature")
    if not signature:
        return "signature_missing"
    signed = first_message(body) if is_batch(body) else body
    if signed is None:
        return "signature_invalid"
    digest = hmac.new(shared_secret.encode(), signed, hashlib.sha1).hexdigest()
    if not is_equal(signature, digest):
        return "signature_invalid"
    return None if is_body_proven or not is_batch(body) or body == b"[" + signed + b"]" else "batch_unproven"


def is_batch(body):
    return body[:1] == b"["


def first_message(body):
    # Cut out, not parsed and written again: json.dumps would write numbers and spaces in another way than they came.
    try:
        text = body.decode()
        _, end = json.JSONDecoder().raw_decode(text, 1)
        return text[1:end].encode()
    except (ValueError, RecursionError):
        return None


def key_of(secret):
    text = secret.removeprefix("whsec_")
    key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    if len(key) < 24:
        raise ValueError("A signing secret is whsec_ and base64 of at least 24 bytes.")
    return key


def is_equal(received, computed):
    return hmac.compare_digest(received.encode("utf-8", "replace"), computed.encode())


# What follows is for trying it: the body on stdin, headers as arguments, secrets in SIGNING_SECRETS and SHARED_SECRET.
def main():
    secrets = os.environ.get("SIGNING_SECRETS", "").split()
    shared_secret = os.environ.get("SHARED_SECRET", "")
    if not secrets and not shared_secret:
        print("Set SIGNING_SECRETS or SHARED_SECRET.", file=sys.stderr)
        return 2
    headers = {}
    for line in sys.argv[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.lstrip(" ")
    body = sys.stdin.buffer.read()
    now = os.environ.get("NOW")
    problem = None
    if secrets:
        problem = verify_standard_webhook(body, headers.get, secrets, int(now) if now else None)
    if shared_secret and problem is None:
        problem = verify_x_signature(body, headers.get, shared_secret, bool(secrets))
    if problem is not None:
        print(f"invalid: {problem}")
        return 1
    print("valid")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
